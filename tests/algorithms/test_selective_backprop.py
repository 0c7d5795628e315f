from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.algorithms.colout import ColOut
from expkit.algorithms.progressive_resizing import ProgressiveResizing
from expkit.algorithms.selective_backprop import SelectiveBackprop
from expkit.algorithms.seq_length_warmup import SeqLengthWarmup
from expkit.errors import PluginError
from expkit.functional.selective_backprop import score, select
from expkit.testing.training import IMAGES, TOKENS, train
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.event import Event
from expkit.trainer.streams import generator
from expkit.trainer.trainer import Trainer

ALWAYS = {"start": 0.0, "end": 1.0, "interrupt": 0}


@dataclass
class Watch(Algorithm):
    """Writes down what goes into the network."""

    inputs: Any = field(default_factory=list, init=False)

    def before_forward(self, state: Any, logger: Any) -> None:
        self.inputs.append(state.inputs)


def sizes(method: SelectiveBackprop, num_batches: int = 10) -> list[int]:
    watch = Watch()
    train([method, watch], num_batches=num_batches)
    return [len(inputs) for inputs in watch.inputs]


def test_half_of_every_other_batch_between_start_and_end_hand_computed() -> None:
    method = SelectiveBackprop()  # epochs of 4 batches; the fifth of ten is at 0.5, the first of its epoch is the 5th
    assert sizes(method) == [8, 8, 8, 8, 8, 8, 4, 8, 4, 8]
    assert method.effective


def test_what_is_trained_on_is_what_losses_and_stream_choose() -> None:
    network, watch = IMAGES.network(), Watch()
    inputs, targets = next(iter(IMAGES.data(1)))
    losses = score(network, network.loss, inputs, targets)  # type: ignore[arg-type]
    chosen = select(losses, 0.25, generator(1, "selective_backprop", 0, 0))
    train([SelectiveBackprop(keep=0.25, **ALWAYS), watch], model=network, num_batches=1)
    assert torch.equal(watch.inputs[0], inputs[chosen])


def test_the_scoring_pass_moves_no_running_statistic_where_composer_moves_them() -> None:
    network = IMAGES.network()

    @dataclass
    class Before(Algorithm):
        after = frozenset({"selective_backprop"})
        kept: Any = field(default_factory=list, init=False)

        def before_dataloader(self, state: Any, logger: Any) -> None:
            self.kept.append({n: b.clone() for n, b in state.model.named_buffers()})

        def batch_start(self, state: Any, logger: Any) -> None:
            assert state.num_samples == 4
            assert all(torch.equal(b, self.kept[-1][n]) for n, b in state.model.named_buffers())
            assert all(module.training for module in state.model.modules())

    train([SelectiveBackprop(**ALWAYS), Before()], model=network)
    assert int(network.get_buffer("norm.num_batches_tracked")) == 3


@dataclass
class AtAfterDataloader(Algorithm):
    """Looks at the batch right before and right after another method, on AFTER_DATALOADER itself."""

    seen: Any = field(default_factory=list, init=False)

    def after_dataloader(self, state: Any, logger: Any) -> None:
        self.seen.append(tuple(state.inputs.shape))


@dataclass
class Before(AtAfterDataloader):
    before = frozenset({"colout", "progressive_resizing", "seq_length_warmup"})
    after = frozenset({"selective_backprop"})


@pytest.mark.parametrize("reverse", [False, True])
def test_it_selects_whole_images_before_they_shrink_on_after_dataloader_defect_D1(reverse: bool) -> None:
    scored, between = [], Before()
    network = IMAGES.network()
    network.register_forward_pre_hook(
        lambda module, given: None if torch.is_grad_enabled() else scored.append(tuple(given[0].shape))
    )
    methods = [ColOut(), ProgressiveResizing(size_increment=1), SelectiveBackprop(**ALWAYS), between]
    train(methods[::-1] if reverse else methods, model=network, num_batches=1)
    assert scored[0] == (8, 16, 16, 16)  # all samples, at full size
    assert between.seen == [(4, 16, 16, 16)]  # selected when those that shrink have their turn


def test_it_selects_before_sequences_are_cut_short_defect_D1() -> None:
    between = Before()
    train([SeqLengthWarmup(), SelectiveBackprop(**ALWAYS), between], num_batches=1)
    assert between.seen == [(4, 16)]


def test_after_dataloader_is_no_way_back_in_the_engine_either_defect_D1() -> None:
    network = IMAGES.network()
    trainer = Trainer(
        model=network, train_dataloader=IMAGES.data(0), optimizers=torch.optim.SGD(network.parameters(), lr=0.1),
        max_duration="1ba", algorithms=[ProgressiveResizing(), ColOut(), SelectiveBackprop()], device="cpu",
    )  # fmt: skip
    order = trainer._engine.order(Event.AFTER_DATALOADER)
    assert order[:3] == ["selective_backprop", "colout", "progressive_resizing"]


def test_the_forward_pass_for_scoring_is_billed_to_algorithms() -> None:
    network = IMAGES.network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    trainer = Trainer(model=network, train_dataloader=IMAGES.data(0), optimizers=optimizer, max_duration="4ba",
                      algorithms=[SelectiveBackprop(**ALWAYS)], device="cpu")  # fmt: skip
    trainer.fit()
    clocks = trainer.clocks
    assert clocks["algorithms_s"] > 0.1 * clocks["forward_s"]
    parts = ("data_wait_s", "forward_s", "backward_s", "optimizer_s", "algorithms_s")
    assert clocks["train_s"] >= sum(clocks[part] for part in parts)


def test_the_train_loss_is_that_of_the_samples_chosen() -> None:
    whole = train(num_batches=1).losses[0]
    torch.manual_seed(0)
    network = IMAGES.without_statistics()
    inputs, targets = next(iter(IMAGES.data(1)))
    losses = torch.nn.functional.cross_entropy(network(inputs), targets, reduction="none")
    chosen = select(losses.detach(), 0.5, generator(1, "selective_backprop", 0, 0))
    done = train([SelectiveBackprop(**ALWAYS)], model=network, num_batches=1)
    assert done.losses == pytest.approx([losses[chosen].mean().item()])
    assert done.losses[0] != whole


class Summed(torch.nn.Sequential):
    """A loss of a user's own that knows nothing of reduction."""

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (outputs.logsumexp(1) - outputs.gather(1, targets[:, None])[:, 0]).mean()


def test_a_loss_without_reduction_selects_the_same_samples() -> None:
    def losses(cls: type[torch.nn.Sequential]) -> list[float]:
        return train([SelectiveBackprop(**ALWAYS)], model=cls(*IMAGES.without_statistics())).losses  # type: ignore[misc]

    assert losses(Summed) == pytest.approx(losses(torch.nn.Sequential), rel=1e-5)


def test_scoring_small_images_selects_all_the_same_from_whole_ones() -> None:
    watch = Watch()
    train([SelectiveBackprop(scale_factor=0.5, **ALWAYS), watch], num_batches=1)
    assert watch.inputs[0].shape == (4, 16, 16, 16)


def test_sequences_are_selected_too() -> None:
    method = SelectiveBackprop(**ALWAYS)
    train([method], bench=TOKENS)
    assert method.effective


@pytest.mark.parametrize("settings", [{"keep": 1.0}, {"interrupt": 1, "start": 0.0}, {"start": 0.95, "end": 0.99}])
def test_nothing_to_select_changes_no_bit_and_says_so(settings: dict[str, Any]) -> None:
    method = SelectiveBackprop(**settings)
    assert train([method], bench=IMAGES).losses == train(bench=IMAGES).losses
    assert not method.effective


def test_of_a_small_share_one_sample_is_left_where_composer_selects_none() -> None:
    assert sizes(SelectiveBackprop(keep=0.01, **ALWAYS), num_batches=2) == [1, 1]


def test_start_is_below_end() -> None:
    with pytest.raises(ValueError, match=r"start must be below end, but got 0\.9 and 0\.9"):
        SelectiveBackprop(start=0.9, end=0.9)


@pytest.mark.parametrize("bad", [{"keep": 0.0}, {"keep": 1.1}, {"start": -0.1}, {"end": 1.1}, {"scale_factor": 0.0},
                                 {"interrupt": -1}])  # fmt: skip
def test_ranges_are_checked_where_composer_checks_none(bad: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=next(iter(bad))):
        SelectiveBackprop(**bad)
