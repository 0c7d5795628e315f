from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.algorithms.seq_length_warmup import SeqLengthWarmup
from expkit.errors import PluginError
from expkit.loggers.memory import Memory
from expkit.testing.training import IMAGES, TOKENS, TokenNetwork, train
from expkit.trainer.algorithm import Algorithm


@dataclass
class Watch(Algorithm):
    """Writes down the shape of what goes into the network."""

    shapes: Any = field(default_factory=list, init=False)

    def before_forward(self, state: Any, logger: Any) -> None:
        self.shapes.append(tuple(state.inputs.shape))


def shapes(method: SeqLengthWarmup, num_batches: int = 10) -> list[tuple[int, int]]:
    watch = Watch()
    train([method, watch], num_batches=num_batches)
    return list(watch.shapes)


def test_sequences_grow_with_progress_hand_computed() -> None:
    method = SeqLengthWarmup(min_seq_length=4, step_size=4)  # 16 tokens: 3 rises in 0.3 of 10 batches
    assert [length for _, length in shapes(method)] == [4, 8, 12] + [16] * 7
    assert method.effective


def test_sequences_are_cut_into_more_and_shorter_ones_where_nothing_is_left_out() -> None:
    method = SeqLengthWarmup(min_seq_length=4, step_size=4, truncate=False)
    assert shapes(method)[:4] == [(32, 4), (16, 8), (8, 12), (8, 16)]


def test_the_loss_of_a_short_batch_is_that_of_its_first_tokens() -> None:
    torch.manual_seed(0)
    network = TokenNetwork()
    inputs, targets = next(iter(TOKENS.data(1)))
    expected = network.loss(network(inputs[:, :8]), targets[:, :8]).item()
    assert train([SeqLengthWarmup()], model=network, num_batches=1).losses == pytest.approx([expected])


@pytest.mark.parametrize(
    "settings",
    [
        {"min_seq_length": 16},
        {"min_seq_length": 16, "max_seq_length": 16},
        {"min_seq_length": 64, "max_seq_length": 128},
        {"duration": 0.0},
        {"duration": 0.05, "min_seq_length": 1, "step_size": 1, "max_seq_length": 1},
    ],
)
def test_boundary_settings_train_defect_D16(settings: dict[str, Any]) -> None:
    method = SeqLengthWarmup(**settings)
    lengths = {length for _, length in shapes(method, num_batches=3)}
    assert lengths == {min(16, method.max_seq_length or 16)}
    assert method.effective == (lengths != {16})


def test_a_longest_length_below_that_of_the_data_holds_to_the_end() -> None:
    assert {length for _, length in shapes(SeqLengthWarmup(max_seq_length=8))} == {8}


def test_nothing_to_shorten_changes_no_bit_and_says_so() -> None:
    method = SeqLengthWarmup(min_seq_length=16)
    assert train([method]).losses == train(bench=TOKENS).losses
    assert not method.effective


def test_images_are_left_alone_which_is_said_once() -> None:
    method = SeqLengthWarmup()
    with pytest.warns(
        UserWarning, match=r"found no sequences .* inputs of shape \[8, 16, 16, 16\] are no token ids"
    ) as said:
        done = train([method], bench=IMAGES)
    assert len(said) == 1
    assert done.losses == train().losses
    assert not method.effective


def test_lengths_are_recorded_where_they_change() -> None:
    memory = Memory()
    train([SeqLengthWarmup()], loggers=[memory], num_batches=10)
    series = memory.get_timeseries("seq_length_warmup/length")
    assert (series["batch"], series["value"]) == ([0, 3], [8.0, 16.0])


def test_a_longest_length_below_the_shortest_is_refused() -> None:
    with pytest.raises(ValueError, match="max_seq_length must be at least min_seq_length, but got 4 < 8"):
        SeqLengthWarmup(max_seq_length=4)


@pytest.mark.parametrize("bad", [{"duration": 1.1}, {"duration": -0.1}, {"min_seq_length": 0}, {"step_size": 0}])
def test_ranges_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=next(iter(bad))):
        SeqLengthWarmup(**bad)
