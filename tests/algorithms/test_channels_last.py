from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.algorithms.channels_last import ChannelsLast
from expkit.algorithms.colout import ColOut
from expkit.algorithms.progressive_resizing import ProgressiveResizing
from expkit.loggers.memory import Memory
from expkit.models.mlp import MLP
from expkit.testing.training import IMAGES, train
from expkit.trainer.algorithm import Algorithm


@dataclass
class Watch(Algorithm):
    """Writes down whether images come channels last."""

    seen: Any = field(default_factory=list, init=False)

    def before_forward(self, state: Any, logger: Any) -> None:
        self.seen.append(state.inputs.is_contiguous(memory_format=torch.channels_last))


def test_weights_and_batches_are_laid_out_anew_and_the_numbers_are_equal_but_for_rounding() -> None:
    method, watch, network = ChannelsLast(), Watch(), IMAGES.network()
    done = train([method, watch], model=network)
    assert method.effective
    assert watch.seen == [True] * 3
    assert all(p.is_contiguous(memory_format=torch.channels_last) for p in network.parameters() if p.ndim == 4)
    assert done.losses == pytest.approx(train().losses, rel=1e-4)


def test_images_come_last_from_whatever_else_works_on_them() -> None:
    watch = Watch()
    train([ChannelsLast(), ColOut(), ProgressiveResizing(), watch])
    assert watch.seen == [True] * 3


def test_a_model_without_convolutions_has_no_effect_and_says_so() -> None:
    def network() -> torch.nn.Module:
        torch.manual_seed(0)
        return MLP(num_inputs=16 * 16 * 16, hidden=(8,), num_classes=4).build()  # type: ignore[no-any-return]

    method = ChannelsLast()
    assert train([method], model=network()).losses == train(model=network()).losses
    assert not method.effective


def test_the_count_is_recorded() -> None:
    memory = Memory()
    train([ChannelsLast()], loggers=[memory])
    assert memory.hyperparameters == {"channels_last/num_tensors": 7}  # two 1x1 shortcuts have one pixel
