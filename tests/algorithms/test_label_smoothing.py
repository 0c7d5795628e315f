from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.errors import PluginError
from expkit.testing.training import train
from expkit.trainer.algorithm import Algorithm


@dataclass
class Watch(Algorithm):
    """Writes down the targets that the loss sees and those after it."""

    after = frozenset({"label_smoothing"})
    seen: Any = field(default_factory=list, init=False)
    left: Any = field(default_factory=list, init=False)

    def before_loss(self, state: Any, logger: Any) -> None:
        self.seen.append(state.targets)

    def before_backward(self, state: Any, logger: Any) -> None:
        self.left.append(state.targets)


def test_the_loss_sees_soft_targets_and_everybody_after_it_the_given_ids() -> None:
    method, watch = LabelSmoothing(0.2), Watch()
    done = train([method, watch])
    assert method.effective
    for seen, left, (_, given) in zip(watch.seen, watch.left, done.given, strict=True):
        torch.testing.assert_close(seen, torch.nn.functional.one_hot(given, 4) * 0.8 + 0.05)
        assert torch.equal(left, given)


def test_the_loss_is_that_of_torchs_own_label_smoothing() -> None:
    def losses(network: torch.nn.Module, algorithms: list[Algorithm]) -> list[float]:
        return train(algorithms, model=network).losses

    torch.manual_seed(0)
    plain = _Linear(0.3)
    smoothed = _Linear(0.0)
    smoothed.load_state_dict(plain.state_dict())
    assert losses(smoothed, [LabelSmoothing(0.3)]) == pytest.approx(losses(plain, []), rel=1e-6)


class _Linear(torch.nn.Sequential):
    def __init__(self, smoothing: float) -> None:
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(16 * 16 * 16, 4))
        self.smoothing = smoothing

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(outputs, targets, label_smoothing=self.smoothing)


def test_no_smoothing_has_no_effect_and_says_so() -> None:
    method = LabelSmoothing(0.0)
    assert train([method]).losses == train().losses
    assert not method.effective


@pytest.mark.parametrize("smoothing", [-0.1, 1.1, float("nan")])
def test_range_is_checked_where_composer_checks_none(smoothing: float) -> None:
    with pytest.raises(PluginError, match="smoothing"):
        LabelSmoothing(smoothing)
