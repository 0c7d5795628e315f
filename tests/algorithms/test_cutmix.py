from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.algorithms.cutmix import CutMix
from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.errors import PluginError
from expkit.functional.cutmix import draw_mix, paste
from expkit.testing.training import IMAGES, NUM_CLASSES, TOKENS, train
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.streams import generator
from expkit.trainer.trainer import Trainer


@dataclass
class Watch(Algorithm):
    """Writes down what the network and the loss see, and what is left for metrics."""

    after = frozenset({"cutmix", "label_smoothing"})
    inputs: Any = field(default_factory=list, init=False)
    targets: Any = field(default_factory=list, init=False)
    left: Any = field(default_factory=list, init=False)

    def before_forward(self, state: Any, logger: Any) -> None:
        self.inputs.append(state.inputs)

    def before_loss(self, state: Any, logger: Any) -> None:
        self.targets.append(state.targets)

    def before_backward(self, state: Any, logger: Any) -> None:
        self.left.append(state.targets)


def one_hot(ids: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(ids, NUM_CLASSES).float()


@pytest.mark.parametrize("microbatch", [None, 4])
@pytest.mark.parametrize("uniform", [False, True])
def test_one_box_and_one_pairing_a_microbatch_from_its_stream(microbatch: int | None, uniform: bool) -> None:
    method, watch = CutMix(uniform_sampling=uniform), Watch()
    done = train([method, watch], microbatch=microbatch)
    assert method.effective
    size = microbatch or 8
    parts = [(b, i, x[i * size :][:size], y[i * size :][:size]) for b, (x, y) in enumerate(done.given)
             for i in range(8 // size)]  # fmt: skip
    for (batch, index, images, ids), inputs, targets, left in zip(
        parts, watch.inputs, watch.targets, watch.left, strict=True
    ):
        by, box = draw_mix(images, 1.0, uniform, generator(1, "cutmix", index, batch))
        assert torch.equal(inputs, paste(images, by.partners, box))
        torch.testing.assert_close(targets, (1 - by.share) * one_hot(ids) + by.share * one_hot(ids)[by.partners])
        cut = (inputs[0] != images[0]).any(0).float().mean().item()
        assert cut in (pytest.approx(by.share), 0.0)  # 0 where a sample is its own partner
        assert torch.equal(left, ids)  # metrics see what the data set gave


class Pixels(torch.nn.Conv2d):
    """Tells black from white, pixel by pixel."""

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(outputs, targets)


@pytest.mark.parametrize("interpolate", [False, True])
def test_targets_that_are_images_get_the_box_in_place(interpolate: bool) -> None:
    watch, network = Watch(), Pixels(1, 2, 1)
    labels = torch.randint(2, (4, 8, 8), generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    Trainer(model=network, train_dataloader=[(labels.float().unsqueeze(1), labels)], optimizers=optimizer,
            max_duration="1ba", algorithms=[CutMix(interpolate_loss=interpolate), watch], device="cpu",
            seed=1).fit()  # fmt: skip
    assert torch.equal(watch.targets[0], watch.inputs[0].squeeze(1).long())  # still one label a pixel
    assert not torch.equal(watch.targets[0], labels)
    assert watch.left[0] is labels


def test_a_loss_that_knows_class_ids_only_is_mixed_itself_to_the_same_end() -> None:
    def losses(interpolate: bool) -> list[float]:
        return train([CutMix(alpha=1.0, interpolate_loss=interpolate)]).losses

    assert losses(True) == pytest.approx(losses(False), rel=1e-4)


@pytest.mark.parametrize("interpolate", [False, True])
def test_label_smoothing_comes_after_it_whichever_way_it_mixes(interpolate: bool) -> None:
    watch = Watch()
    method = CutMix(alpha=1.0, interpolate_loss=interpolate)
    done = train([LabelSmoothing(0.4), method, watch])
    smoothed = train([LabelSmoothing(0.4), CutMix(alpha=1.0)])
    assert done.losses == pytest.approx(smoothed.losses, rel=1e-4)
    assert watch.targets[0].min().item() == pytest.approx(0.1)  # smoothed last: no class has less than 0.4 / 4
    for left, (_, given) in zip(watch.left, done.given, strict=True):
        assert torch.equal(left, given)


def test_the_loss_function_is_put_back_also_after_an_attempt_that_broke_off() -> None:
    method = CutMix(alpha=1.0, interpolate_loss=True)

    class Broken(torch.nn.Sequential):
        tries = 0

        def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            self.tries += 1
            if self.tries == 2:
                raise MemoryError
            return torch.nn.functional.cross_entropy(outputs, targets)

    network = Broken(*IMAGES.without_statistics())  # type: ignore[misc]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    trainer = Trainer(model=network, train_dataloader=IMAGES.data(1), optimizers=optimizer, max_duration="2ba",
                      algorithms=[method], device="cpu")  # fmt: skip
    given = trainer.state.loss_fn
    with pytest.raises(MemoryError):
        trainer.fit()
    trainer.fit()
    assert trainer.state.loss_fn == given
    assert network.tries == 2 + 2 * 2


def test_alpha_zero_changes_no_bit_and_says_so() -> None:
    method = CutMix(alpha=0.0)
    assert train([method]).losses == train().losses
    assert not method.effective


def test_ids_of_tokens_cannot_be_mixed_which_has_no_effect_and_says_so() -> None:
    method = CutMix()
    assert train([method], bench=TOKENS).losses == train(bench=TOKENS).losses
    assert not method.effective


def test_a_microbatch_of_one_sample_has_no_partner() -> None:
    method = CutMix(alpha=1.0)
    assert train([method], microbatch=1).losses == train(microbatch=1).losses
    assert not method.effective


def test_soft_targets_are_needed_unless_losses_are_mixed() -> None:
    assert "soft_targets" in CutMix().needs()
    assert "soft_targets" not in CutMix(interpolate_loss=True).needs()


@pytest.mark.parametrize("alpha", [-0.1, float("nan"), float("inf")])
def test_range_is_checked(alpha: float) -> None:
    with pytest.raises(PluginError, match="alpha"):
        CutMix(alpha=alpha)
