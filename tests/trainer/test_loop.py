"""The loop: exact accumulation, durations in every unit, the same bits twice, ways to end early."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.errors import ExpkitError, Interruption, UsageError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from tests.trainer.doubles import Memory, Net, batches, net, recorder, trainer, weights


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 100])
@pytest.mark.parametrize("last", [6, 5, 1])
def test_microbatches_also_uneven_ones_equal_the_whole_batch(size: int, last: int) -> None:
    whole, parts = Memory(), Memory()
    a = trainer(net().double(), train_dataloader=doubled(batches(last=last)), loggers=[whole])
    b = trainer(net().double(), train_dataloader=doubled(batches(last=last)), loggers=[parts],
                device_train_microbatch_size=size)  # fmt: skip
    a.fit()
    b.fit()
    assert relative(weights(b), weights(a)) < 1e-12
    assert [v for _, v in parts.series("train/loss")] == pytest.approx([v for _, v in whole.series("train/loss")])


def test_microbatches_in_single_precision_are_within_1e_5() -> None:
    a, b = trainer(max_duration="5ep"), trainer(max_duration="5ep", device_train_microbatch_size=4)
    a.fit()
    b.fit()
    assert relative(weights(b), weights(a)) < 1e-5


def doubled(data: list[Any]) -> list[Any]:
    return [(inputs.double(), targets) for inputs, targets in data]


def test_the_loop_is_plain_sgd() -> None:
    t = trainer(net(), momentum=0.9)
    t.fit()
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for inputs, targets in batches() * 2:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    assert torch.equal(weights(t), torch.cat([p.detach().flatten() for p in model.parameters()]))


def test_the_same_settings_give_the_same_bits() -> None:
    runs = []
    for _ in range(2):
        torch.rand(5)  # what happened before does not matter
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*batches(1, 24)[0]), 5, shuffle=True)
        t = trainer(net(dropout=0.3), train_dataloader=data, eval_dataloader=batches(2), eval_interval="0.3ep", seed=4)
        t.fit()
        runs.append(weights(t))
    assert torch.equal(*runs)


def test_who_watches_changes_no_bit() -> None:
    alone = trainer(net(dropout=0.3))
    alone.fit()
    watched = trainer(net(dropout=0.3), callbacks=[recorder()], loggers=[Memory()], eval_dataloader=batches(2))
    watched.fit()
    assert torch.equal(weights(alone), weights(watched))


@pytest.mark.parametrize(
    ("duration", "steps"),
    [("1ep", 4), ("2.5ep", 10), ("0.1ep", 1), ("7ba", 7), ("21sp", 4), ("22sp", 5), ("18sp", 3), ("24sp", 5)],
)
def test_durations_use_every_batch_of_6_6_6_3_samples(duration: str, steps: int) -> None:
    t = trainer(train_dataloader=batches(last=3), max_duration=duration)
    t.fit()
    assert t.state.timestamp.batch == steps
    assert t.state.progress == 1.0


def test_a_duration_in_tokens_counts_ids() -> None:
    data = [(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, dtype=torch.long))] * 3
    model = torch.nn.Sequential(torch.nn.Embedding(3, 4), torch.nn.Flatten(), torch.nn.Linear(20, 2))
    t = trainer(model, train_dataloader=data, max_duration="41tok")
    t.fit()
    assert (t.state.timestamp.token, t.state.timestamp.batch, t.state.max_steps) == (50, 5, 5)


@pytest.mark.parametrize(
    ("duration", "says"), [("1dur", "1dur"), ("2iter", "2iter"), ("0ep", "0ep"), ("5", "not a dur")]
)
def test_durations_that_make_no_sense_are_refused(duration: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(max_duration=duration)


def test_progress_moves_inside_epochs() -> None:
    seen = []

    class Watch(Callback):
        def batch_end(self, state: Any, logger: Any) -> None:
            seen.append(state.progress)

    trainer(callbacks=[dataclass(Watch)()], max_duration="1ep").fit()
    assert seen == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("cut", ["1ba", "3ba", "1ep", "1.3ep"])
def test_two_fits_are_one_long_fit(cut: str) -> None:
    once = trainer(net(dropout=0.3), max_duration="3ep")
    once.fit()
    twice = trainer(net(dropout=0.3), max_duration=cut)
    twice.fit()
    twice.fit(f"{12 - twice.state.timestamp.batch}ba")
    assert torch.equal(weights(once), weights(twice))
    with pytest.raises(UsageError, match="goes on"):
        twice.fit()


def test_a_loss_that_is_not_finite_is_logged_and_ends_training() -> None:
    memory, listener = Memory(), recorder()
    data = batches()
    data[2] = (data[2][0] * math.inf, data[2][1])
    t = trainer(train_dataloader=data, eval_dataloader=batches(1), loggers=[memory], callbacks=[listener])
    t.fit()
    assert t.diverged
    assert t.state.stop_reason == "diverged"
    assert [math.isnan(v) for _, v in memory.series("train/loss")] == [False, False, True]
    assert listener.seen[-1] is Event.FIT_END
    assert Event.EVAL_START not in listener.seen  # there is nothing left to evaluate


def test_a_callback_may_stop_and_the_end_is_evaluated_once() -> None:
    class Enough(Callback):
        def batch_end(self, state: Any, logger: Any) -> None:
            if state.timestamp.batch == 3:
                state.stop("enough")

    memory = Memory()
    t = trainer(callbacks=[dataclass(Enough)()], loggers=[memory], eval_dataloader=batches(1))
    t.fit()
    assert (t.state.timestamp.batch, t.state.stop_reason, t.diverged) == (3, "enough", False)
    assert [batch for batch, _ in memory.series("eval/accuracy")] == [3]


def test_a_stop_at_the_end_of_an_epoch_is_evaluated_too() -> None:
    class Enough(Callback):
        def epoch_end(self, state: Any, logger: Any) -> None:
            state.stop("enough")

    memory = Memory()
    trainer(callbacks=[dataclass(Enough)()], loggers=[memory], eval_dataloader=batches(1), eval_interval="3ba").fit()
    assert [batch for batch, _ in memory.series("eval/accuracy")] == [3, 4]


def test_request_stop_finishes_the_step_and_leaves_with_interruption() -> None:
    listener = recorder()

    class Signalled(Callback):
        def after_forward(self, state: Any, logger: Any) -> None:
            if state.timestamp.batch == 2:
                t.request_stop("SIGTERM")

    t = trainer(callbacks=[dataclass(Signalled)(), listener])
    with pytest.raises(Interruption, match="SIGTERM") as caught:
        t.fit()
    assert caught.value.exit_code == 143
    assert t.state.timestamp.batch == 3
    assert listener.seen[-2:] == [Event.BATCH_CHECKPOINT, Event.FIT_ERROR]


def test_a_closure_only_where_an_algorithm_needs_one_and_it_gives_the_same_weights() -> None:
    @dataclass
    class Wants(Algorithm):
        needs_closure = True

    class Counting(torch.optim.SGD):
        closures = 0

        def step(self, closure: Any = None) -> Any:
            self.closures += closure is not None
            return super().step(closure)

    results = []
    for algorithms in ([], [Wants()]):
        model = net(dropout=0.3)
        optimizer = Counting(model.parameters(), lr=0.1)
        from expkit.trainer.trainer import Trainer

        t = Trainer(model=model, train_dataloader=batches(), optimizers=optimizer, max_duration="1ep", device="cpu",
                    algorithms=algorithms)  # fmt: skip
        t.fit()
        results.append(weights(t))
        assert optimizer.closures == (4 if algorithms else 0)
    assert torch.equal(*results)


def test_gradients_are_gone_before_a_batch_and_there_at_its_end() -> None:
    seen: dict[str, list[bool]] = {"before": [], "end": []}

    class Watch(Callback):
        def before_forward(self, state: Any, logger: Any) -> None:
            seen["before"].append(all(p.grad is None for p in state.model.parameters()))

        def batch_end(self, state: Any, logger: Any) -> None:
            seen["end"].append(all(p.grad is not None for p in state.model.parameters()))

    trainer(callbacks=[dataclass(Watch)()], max_duration="3ba").fit()
    assert seen == {"before": [True] * 3, "end": [True] * 3}


def test_a_loader_that_lies_about_its_length_is_named() -> None:
    class Short(list[Any]):
        def __len__(self) -> int:
            return 9

    class Wrapped:
        batch_size = 6

        def __len__(self) -> int:
            return 9

        def __iter__(self) -> Any:
            return iter(batches())

    with pytest.raises(ExpkitError, match="an epoch has 9 batches, but the train loader ended after 4 in epoch 0"):
        trainer(train_dataloader=Wrapped()).fit()


@pytest.mark.parametrize(("given", "says"), [(iter([]), "needs a length"), ([], "at least one batch")])
def test_loaders_without_length_or_batch_are_refused(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(train_dataloader=given)


def test_soft_targets_and_a_loss_of_the_models_own() -> None:
    soft = [(x, torch.nn.functional.one_hot(y, 4).float()) for x, y in batches()]
    a, b = trainer(), trainer(train_dataloader=soft)
    a.fit()
    b.fit()
    assert relative(weights(b), weights(a)) < 1e-6

    class Own(Net):
        def loss(self, outputs: Any, targets: Any) -> Any:
            return 0 * outputs.sum()

    own = trainer(Own(), momentum=0)
    before = weights(own)
    own.fit()
    assert torch.equal(weights(own), before)


def test_bf16_trains_and_keeps_weights_in_fp32_and_fp16_says_what_it_needs() -> None:
    @dataclass
    class Types(Callback):
        seen: Any = field(default_factory=set, init=False)

        def after_forward(self, state: Any, logger: Any) -> None:
            self.seen.add(state.outputs.dtype)

    types = Types()
    t = trainer(precision="amp_bf16", callbacks=[types], max_duration="10ep")
    t.fit()
    assert types.seen == {torch.bfloat16}
    assert weights(t).dtype == torch.float32
    assert math.isfinite(t.state.train_loss)
    with pytest.raises(UsageError, match="amp_fp16 needs a CUDA device"):
        trainer(precision="amp_fp16")


def test_train_loss_is_logged_for_the_batch_just_done() -> None:
    memory = Memory()
    trainer(loggers=[memory], max_duration="1ep").fit()
    assert [batch for batch, _ in memory.series("train/loss")] == [1, 2, 3, 4]


def test_numbers_of_a_batch_end_are_one_record_before_the_loggers_own_batch_end() -> None:
    records: list[Any] = []

    @dataclass
    class Records(Memory):
        def log_metrics(self, metrics: Any, state: Any) -> None:
            records.append((state.timestamp.batch, dict(metrics)))

        def batch_end(self, state: Any, logger: Any) -> None:
            records.append("batch_end")

    class Speed(Callback):
        def batch_end(self, state: Any, logger: Any) -> None:
            logger.log_metrics({"speed": 1.0})
            if state.timestamp.batch == 2:
                raise ZeroDivisionError

    t = trainer(loggers=[Records()], callbacks=[dataclass(Speed)()], max_duration="1ep")
    with pytest.raises(ZeroDivisionError):
        t.fit()
    assert [(r[0], set(r[1])) if r != "batch_end" else r for r in records] == [
        (1, {"train/loss", "speed"}),
        "batch_end",
        (2, {"train/loss", "speed"}),  # not lost, though the batch end was not finished
    ]
