from __future__ import annotations

import json

import pytest

from expkit.callbacks.runtime_estimator import RuntimeEstimator
from expkit.loggers.memory import Memory
from tests.callbacks.lab import Lines, state_of, trainer

EVERY = 10
BATCH_S, EVAL_S, WARM_UP_S = 2.0, 30.0, 500.0


def estimates(estimator: RuntimeEstimator, until: int, *, since: int = 0) -> list[float]:
    """In a training of 100 batches of 2 s, evaluated for 30 s after every tenth; the first batch takes 500 s."""
    state, lines = state_of(), Lines()
    state.wall_s = 0.0 if since == 0 else WARM_UP_S + (since - 1) * BATCH_S + since // EVERY * EVAL_S
    for batch in range(since + 1, until + 1):
        state.timestamp = state.timestamp._replace(batch=batch)
        state.wall_s += WARM_UP_S if batch == 1 else BATCH_S
        estimator.batch_end(state, lines)
        if batch % EVERY == 0:
            state.eval_name, state.wall_s = "eval", state.wall_s + EVAL_S
            estimator.eval_before_all(state, lines)
            estimator.eval_end(state, lines)
            estimator.eval_after_all(state, lines)
    return [line["time/remaining_estimate"] for line in lines.lines]


def test_it_knows_the_evaluations_to_come_and_forgets_the_warm_up() -> None:
    seen = estimates(RuntimeEstimator(time_unit="seconds"), 100)
    assert len(seen) == 99
    assert seen[0] == 98 * BATCH_S  # after batch 2: no evaluation has been seen
    assert seen[9] == 89 * BATCH_S + 9 * EVAL_S  # after batch 11, the first evaluation behind it
    assert seen[38] == 60 * BATCH_S + 7 * EVAL_S  # after batch 40, before its evaluation
    assert seen[-1] == EVAL_S  # the last evaluation is still to come


@pytest.mark.parametrize(("unit", "seconds"), [("minutes", 60), ("hours", 3600), ("days", 86400)])
def test_units(unit: str, seconds: int) -> None:
    seen = estimates(RuntimeEstimator(time_unit=unit), 2)  # type: ignore[arg-type]
    assert seen == [pytest.approx(98 * BATCH_S / seconds)]


def test_a_resumed_estimate_is_that_of_the_uninterrupted_run() -> None:
    """RuntimeEstimator began anew with each resume (D23)."""
    whole = estimates(RuntimeEstimator(), 60)
    first, second = RuntimeEstimator(), RuntimeEstimator()
    estimates(first, 35)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert estimates(second, 60, since=35) == whole[34:]


def test_the_start_of_a_new_process_is_no_batch() -> None:
    estimator = RuntimeEstimator(time_unit="seconds")
    estimates(estimator, 5)
    estimator.load_state_dict(estimator.state_dict())
    state, lines = state_of(wall_s=WARM_UP_S + 4 * BATCH_S + 60.0), Lines()  # the clock goes on, a minute of set-up too
    state.timestamp = state.timestamp._replace(batch=6)
    estimator.batch_end(state, lines)
    assert lines.lines == [{"time/remaining_estimate": 94 * BATCH_S}]


def test_a_clock_that_began_anew_costs_one_batch_and_no_more() -> None:
    estimator = RuntimeEstimator(time_unit="seconds")
    estimates(estimator, 5)
    state, lines = state_of(wall_s=1.0), Lines()
    state.timestamp = state.timestamp._replace(batch=6)
    estimator.batch_end(state, lines)
    assert lines.lines == []
    state.timestamp, state.wall_s = state.timestamp._replace(batch=7), 3.0
    estimator.batch_end(state, lines)
    assert lines.lines == [{"time/remaining_estimate": 93 * BATCH_S}]


def test_in_a_training_it_goes_down_to_the_last_evaluation() -> None:
    memory = Memory()
    with trainer([RuntimeEstimator()], loggers=[memory]) as t:
        t.fit()
    values = memory.get_timeseries("time/remaining_estimate")
    assert values["batch"] == list(range(2, 13))
    assert all(value > 0 for value in values["value"])


def test_an_evaluation_asked_for_outside_of_training_is_none_to_come() -> None:
    estimator = RuntimeEstimator()
    with trainer([estimator], max_duration="3ba") as t:
        t.eval()
        t.fit()
        t.eval()
    assert [count for count, _, _ in estimator.state_dict()["evals"].values()] == [2]
