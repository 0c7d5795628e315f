"""Iterations: stretches of training of a length of their own, across epochs; no batch comes twice or goes missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.errors import UsageError
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from tests.trainer.doubles import Memory, batches, net, recorder, trainer, weights


@dataclass
class Diary(Callback):
    """Which samples were trained on, and where iterations began and ended, counted in batches."""

    samples: Any = field(default_factory=list, init=False)
    starts: Any = field(default_factory=list, init=False)
    ends: Any = field(default_factory=list, init=False)
    numbers: Any = field(default_factory=list, init=False)

    def iteration_start(self, state: Any, logger: Any) -> None:
        self.starts.append(state.timestamp.batch)

    def batch_end(self, state: Any, logger: Any) -> None:
        self.samples.append((state.timestamp.epoch, state.batch[0].flatten().tolist()))
        self.numbers.append(state.timestamp.iteration)

    def iteration_end(self, state: Any, logger: Any) -> None:
        self.ends.append(state.timestamp.batch)


def fitted(length: str | None, data: list[Any], duration: str = "3ep", **settings: Any) -> Any:
    diary = Diary()
    model = settings.pop("model", None) or net(dropout=0.3)
    t = trainer(
        model, train_dataloader=data, max_duration=duration, iteration_length=length, callbacks=[diary], **settings
    )
    t.fit()
    return t, diary


@pytest.mark.parametrize(
    ("length", "ends"),
    [("3ba", [3, 6, 9, 12]), ("5ba", [5, 10]), ("1ep", [4, 8, 12]), ("0.5ep", [2, 4, 6, 8, 10, 12]), ("1.5ep", [6, 12]),
     ("7sp", [2, 3, 4, 6, 7, 8, 10, 11, 12]), ("40ba", [])],
)  # fmt: skip
def test_an_iteration_ends_with_the_first_batch_that_crosses(length: str, ends: list[int]) -> None:
    data = batches(4, size=6, last=3)  # 63 samples in 3 epochs: after 6 12 18 21, 27 33 39 42, 48 54 60 63
    _, diary = fitted(length, data)
    assert diary.ends == ends
    assert diary.starts == [0, *(end for end in ends if end < 12)]


@pytest.mark.parametrize("length", [None, "3ba", "7sp", "1.5ep", "9tok"])
def test_no_data_are_repeated_and_the_same_weights_come_out(length: str | None) -> None:
    """D8: token-length iterations began the loader again within the same epoch of its sampler."""
    ids = torch.arange(24).reshape(12, 2)
    make = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(ids, torch.arange(12) % 2), 3, shuffle=True)

    def model() -> Any:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Embedding(24, 4), torch.nn.Flatten(), torch.nn.Linear(8, 2))

    plain, expected = fitted(None, make, model=model())
    t, diary = fitted(length, make, model=model())
    assert diary.samples == expected.samples
    assert torch.equal(weights(t), weights(plain))
    for epoch in range(3):
        seen = [sample for e, batch in diary.samples for sample in batch if e == epoch]
        assert sorted(seen) == list(range(24))


def test_tokens_are_counted_where_iterations_cross_epochs() -> None:
    data = [(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, dtype=torch.long))] * 3
    model = torch.nn.Sequential(torch.nn.Embedding(3, 4), torch.nn.Flatten(), torch.nn.Linear(20, 2))
    t, diary = fitted("25tok", data, "2ep", model=model)
    assert diary.ends == [3, 5]  # 30 of 25 and 50 of 50 tokens
    assert (t.state.timestamp.iteration, t.state.timestamp.batch_in_iteration) == (2, 1)


def test_events_nest_where_an_iteration_ends_with_an_epoch() -> None:
    listener = recorder()
    trainer(train_dataloader=batches(2), iteration_length="1ep", callbacks=[listener]).fit()
    seen = [event for event in listener.seen if event.value.startswith(("epoch", "iteration"))]
    assert seen == [Event.ITERATION_START, Event.EPOCH_START, Event.EPOCH_END, Event.EPOCH_CHECKPOINT,
                    Event.ITERATION_END, Event.ITERATION_CHECKPOINT] * 2  # fmt: skip


def test_epochs_complete_again_after_one_that_an_iteration_cut() -> None:
    """D8: the flag that an epoch ended early was never taken back."""
    listener = recorder()
    trainer(train_dataloader=batches(4), max_duration="4ep", iteration_length="6ba", callbacks=[listener]).fit()
    count = listener.seen.count
    assert (count(Event.EPOCH_START), count(Event.EPOCH_END)) == (4, 4)
    assert (count(Event.ITERATION_START), count(Event.ITERATION_END)) == (3, 2)


def test_the_next_fit_goes_on_inside_an_iteration() -> None:
    diary = Diary()
    t = trainer(train_dataloader=batches(4), max_duration="5ba", iteration_length="4ba", callbacks=[diary])
    t.fit()
    t.fit("5ba")
    assert (diary.starts, diary.ends) == ([0, 4, 8], [4, 8])
    assert diary.numbers == [0] * 4 + [1] * 4 + [2] * 2


def test_an_error_leaves_the_iteration_open() -> None:
    class Once(Diary):
        def batch_start(self, state: Any, logger: Any) -> None:
            if state.timestamp.batch == 2 and not self.ends and len(self.starts) == 1 and len(self.samples) == 2:
                self.samples.append("failed")
                raise ZeroDivisionError

    diary = Once()
    t = trainer(train_dataloader=batches(5), max_duration="4ba", callbacks=[diary])
    with pytest.raises(ZeroDivisionError):
        t.fit()
    t.fit()
    assert (diary.starts, diary.ends) == ([0], [4])


@pytest.mark.parametrize("moment", ["batch_end", "batch_checkpoint", "epoch_end", "epoch_checkpoint"])
@pytest.mark.parametrize("length", ["4ba", "1ep", "24sp"])
def test_an_iteration_that_an_error_kept_from_ending_ends_first_in_the_next_fit(moment: str, length: str) -> None:
    def boom(self: Any, state: Any, logger: Any) -> None:
        if state.timestamp.batch == 4 and not self.failed:
            self.failed = True
            raise ZeroDivisionError

    broken = dataclass(type("Broken", (Callback,), {moment: boom, "failed": False}))()
    diary, listener = Diary(), recorder()
    t = trainer(train_dataloader=batches(4), iteration_length=length, callbacks=[broken, diary, listener])
    with pytest.raises(ZeroDivisionError):
        t.fit()
    assert diary.ends == []
    t.fit()
    assert diary.ends == [4, 8] and diary.starts == [0, 4]
    assert listener.seen.count(Event.EPOCH_END) == (1 if moment == "epoch_end" else 2)  # it had failed there


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("length", ["3ba", "1ep", "22sp"])
def test_a_resumed_training_ends_its_iterations_where_it_would_have(tmp_path: Path, length: str, batch: int) -> None:
    given = {"train_dataloader": batches(4), "iteration_length": length, "max_duration": "3ep"}
    through, after = Diary(), Diary()
    trainer(**given, callbacks=[through], save_folder=tmp_path, save_interval="1ba").fit()
    (saved,) = tmp_path.glob(f"ep*-ba{batch}")
    trainer(**given, callbacks=[after], load_path=saved).fit()
    number = sum(end < batch for end in through.ends)  # the checkpoint of a batch comes before the end of its iteration
    assert after.ends == through.ends[number:]
    assert after.starts == [start for start in through.starts if start >= batch]
    assert after.numbers == through.numbers[batch:]


@pytest.mark.parametrize(("interval", "at"), [("1iter", [3, 6, 9, 12]), ("2iter", [6, 12]), ("3iter", [9, 12])])
def test_evaluations_are_due_with_the_batch_that_ends_an_iteration(interval: str, at: list[int]) -> None:
    memory = Memory()
    fitted("3ba", batches(4), eval_dataloader=batches(1), eval_interval=interval, loggers=[memory])
    assert [batch for batch, _ in memory.series("eval/accuracy")] == at


def test_iterations_scale_with_the_training() -> None:
    memory = Memory()
    _, diary = fitted(
        "4ba", batches(4), "12ba", ssr=0.5, eval_dataloader=batches(1), eval_interval="2iter", loggers=[memory]
    )
    assert diary.ends == [2, 4, 6]
    assert [batch for batch, _ in memory.series("eval/accuracy")] == [4, 6]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"iteration_length": "0ba"}, "iteration_length must be positive, in ep, ba, sp or tok, but got 0ba"),
        ({"iteration_length": "0.5dur"}, "in ep, ba, sp or tok, but got 0.5dur"),
        ({"iteration_length": "2iter"}, "but got 2iter"),
        ({"iteration_length": "30s"}, "but got 30sec"),
        ({"iteration_length": "5"}, "iteration_length: '5' is not a duration"),
        ({"eval_interval": "2iter", "eval_dataloader": []}, "2iter needs to know how long .* give iteration_length"),
    ],
)  # fmt: skip
def test_what_is_no_length_is_refused_in_a_sentence(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(**settings)
