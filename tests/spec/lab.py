"""A lab in a temporary folder: a recipe, a sweep, and declarations-only doubles of methods that are not built yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from expkit import plugins
from expkit.duration import Time
from expkit.errors import SpecError
from expkit.spec.files import load_recipe
from expkit.spec.recipe import Recipe
from expkit.spec.sweep import Sweep
from expkit.spec.sweep_file import load_sweep
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback

RECIPE = """\
version: 1
name: fashion-resnet
vars: {lr: 0.2}
model: {resnet: {depth: 8, width: 8, stem_stride: 2, num_classes: 10, in_channels: 1}}
data:
  train: {fashion_mnist_10k: {split: train, batch_size: 128, shuffle: true}}
  eval: {fashion_mnist_10k: {split: validation, batch_size: 500}}
optimizer: {sgd: {lr: "${vars.lr}", momentum: 0.9, weight_decay: 5e-4, nesterov: true}}
scheduler: {cosine: {warmup: 0.1dur}}
algorithms: {}
callbacks: {speed_monitor: {}, lr_monitor: {}}
trainer:
  max_duration: 2ep
  eval_interval: 0.125ep
  checkpoint: {every: null, keep: none}
metrics:
  primary: {name: eval/accuracy, mode: max}
  target: {pilot: {seeds: 5, rule: lowest_final}}
seed: 17
runtime: {nproc: 1, threads: 1, device: auto, parallel: ddp}
presets: {smoke: {trainer.max_duration: 4ba}}
"""

SWEEP = """\
version: 1
name: ablate
recipe: ../recipes/fashion_resnet.yaml
set: {}
ablate:
  baseline: []
  always: []
  candidates: {label_smoothing: {}, progressive_resizing: {}, ema: {half_life: 12ba}}
  design: full
  constraints: []
seeds: {count: 5, base: 17}
order: {kind: blocked_random, seed: 0}
run: {executor: local, jobs: 1, timing: exclusive}
report: {clock: train_s, ci: 0.95, non_inferiority: 0.005}
"""

GOLDEN = """\
version: 1
name: golden
recipe: ../recipes/fashion_resnet.yaml
ablate:
  candidates:
    label_smoothing: {}
    colout: {p_row: [0.1, 0.15], p_col: "${.p_row}"}
    blurpool: {}
    selective_backprop: {}
    ema: {}
  constraints:
    - {conflicts: [selective_backprop, colout], because: the loss of a dropped row says nothing}
parameters:
  optimizer.sgd.lr: [1.0, 2.0]
exclude:
  - {when: "has('selective_backprop') and optimizer.sgd.lr > 1.5", because: it diverges there}
seeds: 3
"""


@dataclass
class ColOutDouble(Algorithm):
    """Settings of colout, nothing else."""

    p_row: Annotated[float, Field(ge=0, lt=1)] = 0.15
    p_col: Annotated[float, Field(ge=0, lt=1)] = 0.15


@dataclass
class SelectiveBackpropDouble(Algorithm):
    """Settings of selective_backprop, nothing else."""

    exact_under_microbatching: ClassVar[bool] = False
    keep: Annotated[float, Field(gt=0, le=1)] = 0.5
    interrupt: int = 2


@dataclass
class NastyDouble(Algorithm):
    """A field of every type that a file can fill."""

    text: str = ""
    number: float = 0.0
    whole: int = 0
    flag: bool = False
    maybe: str | None = None
    span: Time | None = None
    words: tuple[str, ...] = ()
    table: dict[str, float] | None = None
    weights: Path | None = None
    anything: Any = None


@dataclass
class RivalDouble(Algorithm):
    """Declares a conflict and a need that convolutional models do not meet."""

    conflicts: ClassVar[frozenset[str]] = frozenset({"ema"})
    requires: ClassVar[frozenset[str]] = frozenset({"attention"})


@dataclass
class StopperDouble(Callback):
    """A callback that changes training."""

    changes_training: ClassVar[bool] = True
    patience: int = 3


DOUBLES: dict[str, dict[str, type]] = {
    "algorithms": {"colout": ColOutDouble, "selective_backprop": SelectiveBackpropDouble, "nasty": NastyDouble,
                   "rival": RivalDouble},
    "callbacks": {"stopper": StopperDouble},
}  # fmt: skip


class _Entry:
    """What importlib.metadata gives for an installed plug-in."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def load(self) -> type:
        return self.cls


def install_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package with these plug-ins were installed."""
    own = plugins._own
    monkeypatch.setattr(plugins, "_own", lambda kind: own(kind) - DOUBLES.get(kind, {}).keys())
    monkeypatch.setattr(plugins, "_outside", lambda kind: {n: _Entry(c) for n, c in DOUBLES.get(kind, {}).items()})


@dataclass
class Lab:
    """Files of a project."""

    folder: Path

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def recipe(self, text: str = RECIPE, **options: Any) -> Recipe:
        return load_recipe(self.write("recipes/fashion_resnet.yaml", text), **options)

    def sweep(self, text: str = SWEEP, recipe: str = RECIPE, **options: Any) -> Sweep:
        self.write("recipes/fashion_resnet.yaml", recipe)
        return load_sweep(self.write("sweeps/ablate.yaml", text), **options)

    def recipe_problems(self, text: str = RECIPE, **options: Any) -> list[str]:
        """What is wrong with a recipe, without the folder's name."""
        with pytest.raises(SpecError) as caught:
            self.recipe(text, **options)
        return self.said(caught.value)

    def sweep_problems(self, text: str = SWEEP, recipe: str = RECIPE, **options: Any) -> list[str]:
        with pytest.raises(SpecError) as caught:
            self.sweep(text, recipe, **options)
        return self.said(caught.value)

    def said(self, error: SpecError) -> list[str]:
        return [str(p).replace(f"{self.folder}/", "") for p in error.problems]


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """A file with some of its lines changed; each must be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text
