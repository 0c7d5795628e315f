"""Clocks: who is billed. Time stands still here but where a test lets it pass, so every second is accounted for."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import pytest

from expkit.trainer import clock as clock_module
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.clock import COLUMNS, Clocks
from tests.trainer.doubles import Memory, Net, batches, net, trainer


class HandClock:
    """Stands still until somebody works (wall and CPU) or waits (wall only)."""

    def __init__(self) -> None:
        self.wall_s = self.cpu_s = 0.0

    def work(self, seconds: float = 1.0) -> None:
        self.wall_s += seconds
        self.cpu_s += seconds

    def wait(self, seconds: float = 1.0) -> None:
        self.wall_s += seconds


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    clock = HandClock()
    monkeypatch.setattr(clock_module, "perf_counter", lambda: clock.wall_s)
    monkeypatch.setattr(clock_module, "process_time", lambda: clock.cpu_s)
    return clock


def working(base: type[Any], event: str, hand: HandClock) -> Any:
    return dataclass(type("Worker", (base,), {event: lambda self, state, logger: hand.work()}))()


def clocks_of(model: Any = None, **settings: Any) -> dict[str, float]:
    """Of a fit over 2 epochs of 4 batches, each evaluated on 2 batches."""
    t = trainer(net() if model is None else model, eval_dataloader=batches(2), max_duration="2ep", **settings)
    t.fit()
    return {name: seconds for name, seconds in t.clocks.items() if seconds}


@pytest.mark.parametrize(
    ("event", "times"),
    [("batch_start", 8), ("eval_start", 2), ("eval_end", 2), ("batch_end", 8), ("eval_after_forward", 4),
     ("before_dataloader", 8), ("after_loss", 8), ("epoch_start", 2), ("epoch_end", 2), ("fit_end", 1)],
)  # fmt: skip
def test_an_algorithm_is_billed_on_any_event_and_a_callback_on_none(event: str, times: int, hand: HandClock) -> None:
    billed = {"train_s": times, "cpu_s": times, "wall_s": times, "algorithms_s": times}
    assert clocks_of(algorithms=[working(Algorithm, event, hand)]) == billed
    hand.wall_s = 0.0
    assert clocks_of(callbacks=[working(Callback, event, hand)]) == {"wall_s": times, "callbacks_s": times}


@pytest.mark.parametrize("kind", ["work", "wait"])
def test_forward_passes_of_the_evaluator_are_not_billed_and_those_of_training_are(kind: str, hand: HandClock) -> None:
    class Slow(Net):
        def forward(self, inputs: Any) -> Any:
            getattr(hand, kind)()
            return super().forward(inputs)

    cpu = {"cpu_s": 8} if kind == "work" else {}
    assert clocks_of(Slow()) == {"train_s": 8, "wall_s": 12, "forward_s": 8, "eval_s": 4, **cpu}


def test_metric_updates_are_not_billed_and_the_loss_is(hand: HandClock) -> None:
    class Slow(Net):
        def loss(self, outputs: Any, targets: Any) -> Any:
            hand.work()
            return outputs.square().mean()

        def metrics(self) -> dict[str, Any]:
            metric = super().metrics()["accuracy"]
            metric.compute = lambda: hand.work() or 0.5
            return {"slow": metric}

    assert clocks_of(Slow()) == {"train_s": 8, "cpu_s": 8, "wall_s": 10, "forward_s": 8, "eval_s": 2}


def test_waiting_for_data_is_billed(hand: HandClock) -> None:
    class Slow:
        batch_size, num_samples = 6, 24

        def __len__(self) -> int:
            return 4

        def __iter__(self) -> Any:
            for batch in batches():
                hand.wait()
                yield batch

    assert clocks_of(train_dataloader=Slow()) == {"train_s": 8, "wall_s": 8, "data_wait_s": 8}


def test_loggers_are_not_billed(hand: HandClock) -> None:
    @dataclass
    class Slow(Memory):
        def log_metrics(self, metrics: Any, state: Any) -> None:
            hand.work()

    assert clocks_of(loggers=[Slow()]) == {"wall_s": 10, "callbacks_s": 10}


def test_the_optimizer_has_a_part_of_its_own(hand: HandClock) -> None:
    t = trainer(max_duration="3ba")
    t.state.optimizer.register_step_pre_hook(lambda *_: hand.work())
    t.fit()
    assert t.clocks["optimizer_s"] == t.clocks["train_s"] == 3


def test_setup_is_all_before_the_first_batch_surgery_included(hand: HandClock) -> None:
    hand.wall_s = 100.0
    t = trainer(algorithms=[working(Algorithm, "init", hand)], setup_started=95.0)
    hand.work()
    t.fit()
    assert {k: v for k, v in t.clocks.items() if v} == {"setup_s": 7, "wall_s": 7}


def test_every_row_carries_the_clocks_of_its_moment(hand: HandClock) -> None:
    rows: list[tuple[float, float, float]] = []

    @dataclass
    class Stamps(Memory):
        def log_metrics(self, metrics: Any, state: Any) -> None:
            rows.append((state.train_s, state.cpu_s, state.wall_s))

    class Slow(Net):
        def forward(self, inputs: Any) -> Any:
            hand.work()
            return super().forward(inputs)

    trainer(Slow(), loggers=[Stamps()], eval_dataloader=batches(1), eval_interval="2ba", max_duration="4ba").fit()
    assert rows == [(1, 1, 1), (2, 2, 2), (2, 2, 3), (3, 3, 4), (4, 4, 5), (4, 4, 6)]


def test_between_two_fits_and_after_an_error_nothing_is_billed(hand: HandClock) -> None:
    t = trainer(max_duration="1ep", algorithms=[working(Algorithm, "batch_start", hand)])
    t.fit()
    hand.work(50)
    t.fit("1ba")
    assert (t.clocks["train_s"], t.clocks["cpu_s"], t.clocks["wall_s"]) == (5, 5, 55)


def test_on_the_real_clock_the_parts_lie_inside_the_whole_and_no_row_goes_back() -> None:
    rows: list[tuple[float, float, float]] = []

    @dataclass
    class Stamps(Memory):
        def log_metrics(self, metrics: Any, state: Any) -> None:
            rows.append((state.train_s, state.cpu_s, state.wall_s))

    started = perf_counter()
    t = trainer(loggers=[Stamps()], eval_dataloader=batches(1), eval_interval="2ba", max_duration="10ep")
    t.fit()
    clocks = t.clocks
    assert tuple(clocks) == COLUMNS
    parts = sum(clocks[p] for p in ("data_wait_s", "forward_s", "backward_s", "optimizer_s", "algorithms_s"))
    assert 0 < parts < clocks["train_s"] < clocks["wall_s"] <= perf_counter() - started
    assert 0 < clocks["cpu_s"] <= process_time()
    for earlier, later in itertools.pairwise(rows):
        assert all(a <= b for a, b in zip(earlier, later, strict=True))


def test_nothing_is_billed_before_the_start(hand: HandClock) -> None:
    clocks = Clocks()
    assert clocks.switch("eval_s") == "idle"
    hand.work()
    clocks.start()
    assert clocks.switch("eval_s") == "loop"
    hand.work()
    assert clocks.switch("loop") == "eval_s"
    hand.work()
    clocks.stop()
    assert (clocks.setup_s, clocks.train_s, clocks.cpu_s, clocks.seconds["eval_s"]) == (1, 1, 1, 1)
