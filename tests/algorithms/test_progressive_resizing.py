from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from expkit.algorithms.progressive_resizing import ProgressiveResizing
from expkit.errors import PluginError
from expkit.loggers.memory import Memory
from expkit.testing.training import TOKENS, train
from expkit.trainer.algorithm import Algorithm


@dataclass
class Watch(Algorithm):
    """Writes down the size of the images that go into the network."""

    sizes: Any = field(default_factory=list, init=False)

    def before_forward(self, state: Any, logger: Any) -> None:
        self.sizes.append(tuple(state.inputs.shape[-2:]))


def sizes(method: ProgressiveResizing, num_batches: int = 10) -> list[int]:
    watch = Watch()
    train([method, watch], num_batches=num_batches)
    assert all(height == width for height, width in watch.sizes)
    return [height for height, _ in watch.sizes]


def test_images_grow_with_progress_inside_an_epoch_hand_computed() -> None:
    method = ProgressiveResizing(size_increment=2)  # 16 px; steps 0.0, 0.1, ... of the training
    assert sizes(method) == [8, 8, 8, 8, 8, 8, 10, 14, 16, 16]  # at 0.6: 16 * 0.667 = 10.67 -> 10
    assert method.effective


def test_delay_plus_finetune_of_one_trains_defect_D16() -> None:
    assert sizes(ProgressiveResizing(delay_fraction=0.5, finetune_fraction=0.5)) == [8] * 5 + [16] * 5
    assert sizes(ProgressiveResizing(delay_fraction=1.0, finetune_fraction=0.0)) == [8] * 10
    assert sizes(ProgressiveResizing(delay_fraction=0.9, finetune_fraction=0.1)) == [8] * 9 + [16]


def test_delay_plus_finetune_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at most 1, but got 0\.9 \+ 0\.2"):
        ProgressiveResizing(delay_fraction=0.9, finetune_fraction=0.2)


@pytest.mark.parametrize("bad", [{"delay_fraction": -0.1}, {"initial_scale": 0.0}, {"initial_scale": 1.5},
                                 {"size_increment": 0}, {"mode": "stretch"}])  # fmt: skip
def test_ranges_are_checked_also_where_composer_forgets_the_delay(bad: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=next(iter(bad))):
        ProgressiveResizing(**bad)


def test_scale_one_all_along_has_no_effect_and_says_so() -> None:
    method = ProgressiveResizing(initial_scale=1.0)
    assert train([method]).losses == train().losses
    assert not method.effective


def test_tokens_are_no_images_which_has_no_effect_and_says_so() -> None:
    method = ProgressiveResizing()
    assert train([method], bench=TOKENS).losses == train(bench=TOKENS).losses
    assert not method.effective


def test_crop_windows_come_from_its_own_stream_batch_by_batch() -> None:
    losses = train([ProgressiveResizing(mode="crop")]).losses
    assert losses == train([ProgressiveResizing(mode="crop")]).losses
    assert losses != train([ProgressiveResizing(mode="crop")], seed=2).losses


def test_a_crop_of_the_whole_image_does_not_raise() -> None:
    assert sizes(ProgressiveResizing(mode="crop", initial_scale=0.99)) == [16] * 10


def test_sizes_are_recorded_where_they_change() -> None:
    memory = Memory()
    train([ProgressiveResizing(size_increment=2)], loggers=[memory], num_batches=10)
    series = memory.get_timeseries("progressive_resizing/height")
    assert (series["batch"], series["value"]) == ([0, 6, 7, 8], [8.0, 10.0, 14.0, 16.0])
