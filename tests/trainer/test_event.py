"""The map of events in the docstring of event.py, compared with what fit, eval and predict really do."""

from __future__ import annotations

import math
from typing import Any

import pytest

from expkit.trainer import event as event_module
from expkit.trainer.event import Event
from tests.trainer.doubles import acting_recorder, batches, recorder, trainer

EPOCHS, BATCHES, MICROBATCHES, EVAL_BATCHES, EVALUATORS = 2, 3, 2, 2, 2
BOTH = pytest.mark.parametrize("kind", ["callbacks", "algorithms"])


def the_map() -> list[tuple[int, str]]:
    lines = (event_module.__doc__ or "").split("\n\n")[1].splitlines()
    return [(len(line) - len(line.lstrip()), line.strip()) for line in lines]


def section(title: str) -> list[tuple[int, str]]:
    lines = the_map()
    start = lines.index((0, title)) + 1
    return lines[start : next((i for i in range(start, len(lines)) if lines[i][0] == 0), len(lines))]


def walk(
    lines: list[tuple[int, str]], times: dict[str, int], iteration: float = math.inf, batch: int = 0
) -> list[Event]:
    """The events of a piece of the map; evaluation is due after every second batch and after the last.

    `iteration`: batches of one, which is the whole fit by default. `batch`: the one under way, from 1.
    """
    last = batch == times["batch"]
    holds = {
        "if an iteration begins:": (batch - 1) % iteration == 0,
        "if an epoch begins:": (batch - 1) % BATCHES == 0,
        "if evaluation is due:": batch % 2 == 0 or last,
        "if the epoch ends:": batch % BATCHES == 0,
        "if the iteration ends:": batch % iteration == 0 or (last and iteration == math.inf),
    }
    events: list[Event] = []
    at = 0
    while at < len(lines):
        depth, text = lines[at]
        end = next((i for i in range(at + 1, len(lines)) if lines[i][0] <= depth), len(lines))
        inner = lines[at + 1 : end]
        if text.startswith("for each "):
            kind = text.removeprefix("for each ").rstrip(":")
            for index in range(times[kind]):
                events += walk(inner, times, iteration, index + 1 if kind == "batch" else batch)
        elif text.startswith("if "):
            events += walk(inner, times, iteration, batch) if holds[text] else []
        else:
            events.append(Event[text])
        at = end
    return events


FIT = {"batch": EPOCHS * BATCHES, "microbatch": MICROBATCHES, "evaluator": EVALUATORS, "evaluation batch": EVAL_BATCHES}


def listening(kind: str, **settings: Any) -> tuple[Any, Any]:
    """A trainer with a listener to everything among its callbacks or algorithms."""
    listener = recorder() if kind == "callbacks" else acting_recorder()
    given = {
        "train_dataloader": batches(BATCHES, size=4),
        "eval_dataloader": {"one": batches(EVAL_BATCHES), "two": batches(EVAL_BATCHES)},
        "device_train_microbatch_size": 2,
        "max_duration": f"{EPOCHS}ep",
        "eval_interval": "2ba",
        **settings,
    }
    return trainer(**given, **{kind: [listener]}), listener


LENGTHS = {None: math.inf, "1ba": 1, "2ba": 2, "1ep": 3, "2ep": 6, "16sp": 4, "13sp": 4}
"""Batches of an iteration, where a batch has 4 samples and training 24: 13 are reached with the fourth."""


@BOTH
@pytest.mark.parametrize("length", LENGTHS)
def test_a_fit_with_evaluation_microbatches_and_iterations_follows_the_map(kind: str, length: str | None) -> None:
    t, listener = listening(kind, iteration_length=length)
    t.fit()
    construction = [Event[text] for _, text in section("Trainer(...):")]
    assert listener.seen == construction + walk(section("fit():"), FIT, LENGTHS[length])


def test_the_map_names_every_event_but_the_one_of_errors() -> None:
    named = {Event[text] for _, text in the_map() if text.isupper()}
    assert named | {Event.FIT_ERROR} == set(Event)
    assert Event.FIT_ERROR not in named


def test_an_epoch_left_in_the_middle_is_not_ended_and_not_started_twice() -> None:
    listener = recorder()
    t = trainer(train_dataloader=batches(4), max_duration="6ba", callbacks=[listener])
    t.fit()
    assert (listener.seen.count(Event.EPOCH_START), listener.seen.count(Event.EPOCH_END)) == (2, 1)
    t.fit("2ba")
    assert (listener.seen.count(Event.EPOCH_START), listener.seen.count(Event.EPOCH_END)) == (2, 2)
    assert t.state.timestamp.iteration == 2
