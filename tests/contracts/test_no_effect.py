"""Every method where it can do nothing: no bit of training changes, `effective` is false, and the store says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from expkit import plugins
from expkit.testing.training import IMAGES, TOKENS, Bench
from expkit.trainer.trainer import Trainer
from tests.launch.lab import CODE, Lab

pytestmark = pytest.mark.filterwarnings("ignore:seq_length_warmup found no sequences")  # it meets images here

Batches = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Case:
    """A model and data on which a method finds nothing to do, or settings that leave it nothing."""

    bench: Bench
    settings: dict[str, Any] = field(default_factory=dict)
    shrink: Callable[[Batches], Batches] = lambda batches: batches


def singly(batches: Batches) -> Batches:
    """Batches of one sample."""
    return [(inputs[:1], targets[:1]) for inputs, targets in batches]


CASES = {
    "blurpool": Case(TOKENS),
    "channels_last": Case(TOKENS),
    "colout": Case(TOKENS),
    "cutmix": Case(TOKENS),
    "ema": Case(IMAGES, {"ema_start": "100ba"}),  # any model has an average
    "label_smoothing": Case(IMAGES, {"smoothing": 0}),  # any target can be smoothed
    "mixup": Case(TOKENS),
    "progressive_resizing": Case(TOKENS),
    "selective_backprop": Case(TOKENS, {"start": 0.0, "end": 1.0, "interrupt": 0}, shrink=singly),
    "seq_length_warmup": Case(IMAGES),
}


def test_every_method_has_a_case() -> None:
    assert sorted(CASES) == plugins.names("algorithms")


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_method_that_can_do_nothing_changes_no_bit_and_says_so(name: str) -> None:
    case = CASES[name]
    plain, with_it = trained(case), trained(case, name)
    assert with_it.effective == {name: False}
    for (key, a), b in zip(
        plain.state.model.state_dict().items(), with_it.state.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), key


def trained(case: Case, *names: str) -> Trainer:
    network: nn.Module = case.bench.network()
    methods: list[Any] = [plugins.build("algorithms", name, case.settings) for name in names]
    trainer = Trainer(
        model=network, train_dataloader=case.shrink(list(case.bench.data(1))), max_duration="4ba", device="cpu",
        optimizers=torch.optim.SGD(network.parameters(), lr=0.05), algorithms=methods,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "seq_length_warmup found no sequences")
        trainer.fit()
    return trainer


SENTENCES = """
class Guess(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 5)
    def forward(self, ids):
        return self.embedding(ids).transpose(1, 2)

class Sentences:
    batch_size, num_samples = 1, 4
    def set_epoch(self, epoch):
        pass
    def __len__(self):
        return 4
    def __iter__(self):
        for first in range(4):
            ids = torch.arange(first, first + 7).view(1, 7) % 5
            yield ids[:, :6], ids[:, 1:]
"""
RECIPE = """
version: 1
name: sentences
model: {"py:own:Guess": {}}
data:
  train: {"py:own:Sentences": {}}
  eval: {"py:own:Sentences": {}}
optimizer: {sgd: {lr: 0.1}}
algorithms: {ALGORITHMS}
trainer: {max_duration: 8ba, eval_interval: 8ba}
metrics: {primary: {name: eval/accuracy, mode: max}, target: 0.6}
"""


@pytest.mark.parametrize("mixing", ["mixup", "cutmix"])
def test_the_store_keeps_which_methods_found_nothing_to_do(tmp_path: Path, mixing: str) -> None:
    lab = Lab(tmp_path / "lab")
    (lab.folder / "own.py").write_text(CODE + SENTENCES)
    idle = sorted({*CASES} - {"ema", "label_smoothing", "mixup", "cutmix"} | {mixing})
    settings = {"label_smoothing": "{smoothing: 0}", "ema": "{half_life: 2ba}",
                "selective_backprop": "{start: 0.0, end: 1.0, interrupt: 0}"}  # fmt: skip
    algorithms = ", ".join(f"{name}: {settings.get(name, '{}')}" for name in [*idle, "ema", "label_smoothing"])
    (lab.folder / "recipes" / "sentences.yaml").write_text(RECIPE.replace("ALGORITHMS", algorithms))
    done = lab.call("run", "sentences")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = lab.json("query", "SELECT name, effective FROM algorithms ORDER BY name")
    found = {row["name"]: row["effective"] for row in rows}
    assert found == {**dict.fromkeys([*idle, "label_smoothing"], False), "ema": True}
