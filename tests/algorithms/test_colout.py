from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import nn

from expkit.algorithms.colout import ColOut
from expkit.errors import PluginError
from expkit.functional.colout import draw_kept
from expkit.testing.training import TOKENS, train
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.streams import generator
from expkit.trainer.trainer import Trainer


@dataclass
class Watch(Algorithm):
    """Writes down what goes into the network."""

    inputs: Any = field(default_factory=list, init=False)
    targets: Any = field(default_factory=list, init=False)

    def before_forward(self, state: Any, logger: Any) -> None:
        self.inputs.append(state.inputs)
        self.targets.append(state.targets)


def test_all_images_of_a_batch_lose_the_rows_and_columns_that_its_stream_draws() -> None:
    method, watch = ColOut(p_row=0.25, p_col=0.5), Watch()
    done = train([method, watch])
    assert method.effective
    for batch, (images, _) in enumerate(done.given):
        rng = generator(1, "colout", batch)
        rows, columns = draw_kept(16, 12, rng), draw_kept(16, 8, rng)
        assert torch.equal(watch.inputs[batch], images[..., rows, :][..., columns])


def test_each_image_may_lose_its_own() -> None:
    watch = Watch()
    done = train([ColOut(p_row=0.25, p_col=0.0, batch=False), watch])
    lost = set()
    for image, left in zip(done.given[0][0], watch.inputs[0], strict=True):
        rows = [row for row in range(16) if any(torch.equal(image[:, row], left[:, i]) for i in range(12))]
        assert torch.equal(image[:, rows], left)
        lost.add(tuple(rows))
    assert len(lost) == 8


@pytest.mark.parametrize("settings", [{}, {"batch": False}])
def test_in_parts_as_in_one_because_it_draws_before_the_split(settings: dict[str, Any]) -> None:
    whole, parts = Watch(), Watch()
    train([ColOut(**settings), whole])
    train([ColOut(**settings), parts], microbatch=3)
    assert torch.equal(torch.cat(whole.inputs), torch.cat(parts.inputs))


@pytest.mark.parametrize(("resize_target", "width"), [("auto", 6), (True, 6), (False, 8)])
def test_targets_of_the_inputs_height_and_width_lose_them_too(resize_target: Any, width: int) -> None:
    watch = Watch()
    labels = torch.arange(2 * 8 * 8).view(2, 8, 8) % 3
    segment(ColOut(p_row=0, p_col=0.25, resize_target=resize_target), watch, labels.float().unsqueeze(1), labels)
    assert watch.targets[0].shape == (2, 8, width)
    if width == 6:
        assert torch.equal(watch.targets[0], watch.inputs[0].squeeze(1).long())


def test_targets_that_are_no_images_cannot_lose_rows() -> None:
    with pytest.raises(ValueError, match=r"targets \[2\] have not the height and width"):
        segment(ColOut(resize_target=True), Watch(), torch.randn(2, 1, 8, 8), torch.zeros(2).long())


def segment(method: ColOut, watch: Watch, images: torch.Tensor, labels: torch.Tensor) -> None:
    class Pixels(nn.Conv2d):
        def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return outputs.square().mean()

    network = Pixels(1, 3, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    Trainer(model=network, train_dataloader=[(images, labels)], optimizers=optimizer, max_duration="1ba",
            algorithms=[method, watch], device="cpu").fit()  # fmt: skip


def test_nothing_to_drop_changes_no_bit_and_says_so() -> None:
    method = ColOut(p_row=0, p_col=0)
    assert train([method]).losses == train().losses
    assert not method.effective


def test_tokens_have_no_rows_which_has_no_effect_and_says_so() -> None:
    method = ColOut()
    assert train([method], bench=TOKENS).losses == train(bench=TOKENS).losses
    assert not method.effective


@pytest.mark.parametrize("bad", [{"p_row": 1.0}, {"p_col": -0.1}, {"resize_target": "maybe"}])
def test_ranges_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=next(iter(bad))):
        ColOut(**bad)
