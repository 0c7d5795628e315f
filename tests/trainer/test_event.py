"""The map of events in the docstring of event.py, compared with what a fit really does."""

from __future__ import annotations

from collections import Counter

import pytest

from expkit.trainer import event as event_module
from expkit.trainer.event import Event
from tests.trainer.doubles import acting_recorder, batches, recorder, trainer

EPOCHS, BATCHES, MICROBATCHES, EVAL_BATCHES, EVALUATORS = 2, 3, 2, 2, 2
TIMES = {"epoch": EPOCHS, "batch": BATCHES, "microbatch": MICROBATCHES, "evaluator": EVALUATORS,
         "evaluation batch": EVAL_BATCHES}  # fmt: skip


def the_map() -> list[tuple[int, str]]:
    lines = (event_module.__doc__ or "").split("\n\n")[1].splitlines()
    return [(len(line) - len(line.lstrip()), line.strip()) for line in lines]


def walk(lines: list[tuple[int, str]], batch: int = 0) -> list[Event]:
    """The events of a piece of the map; evaluation is due after every second batch and after the last."""
    events: list[Event] = []
    at = 0
    while at < len(lines):
        depth, text = lines[at]
        end = next((i for i in range(at + 1, len(lines)) if lines[i][0] <= depth), len(lines))
        inner = lines[at + 1 : end]
        if text.startswith("for each "):
            kind = text.removeprefix("for each ").rstrip(":")
            for index in range(TIMES[kind]):
                events += walk(inner, {"epoch": index * BATCHES, "batch": batch + index + 1}.get(kind, batch))
        elif text == "if evaluation is due:":
            events += walk(inner) if batch % 2 == 0 or batch == EPOCHS * BATCHES else []
        elif text.endswith(":"):
            events += walk(inner)
        else:
            events.append(Event[text])
        at = end
    return events


@pytest.mark.parametrize("make", [recorder, acting_recorder])
def test_a_fit_with_evaluation_and_microbatches_follows_the_map(make) -> None:
    listener = make()
    t = trainer(
        train_dataloader=batches(BATCHES, size=4),
        eval_dataloader={"one": batches(EVAL_BATCHES), "two": batches(EVAL_BATCHES)},
        device_train_microbatch_size=2,
        max_duration=f"{EPOCHS}ep",
        eval_interval="2ba",
        **({"callbacks": [listener]} if make is recorder else {"algorithms": [listener]}),
    )
    t.fit()
    assert listener.seen == walk(the_map())


def test_the_map_names_every_event_that_a_fit_reaches_and_no_other() -> None:
    named = {Event[text] for _, text in the_map() if text.isupper()}
    others = {e for e in Event if e.value.startswith(("predict_", "eval_standalone_"))} | {Event.FIT_ERROR}
    assert named | others == set(Event)
    assert not named & others


def test_counts_follow_from_epochs_batches_and_microbatches() -> None:
    listener = recorder()
    trainer(train_dataloader=batches(5), max_duration="3ep", callbacks=[listener]).fit()
    count = Counter(listener.seen)
    assert count[Event.BEFORE_DATALOADER] == count[Event.AFTER_DATALOADER] == count[Event.BATCH_END] == 15
    assert count[Event.EPOCH_START] == count[Event.EPOCH_END] == 3
    assert count[Event.FIT_START] == count[Event.FIT_END] == count[Event.ITERATION_END] == 1
    assert count[Event.EVAL_START] == 0


def test_an_epoch_left_in_the_middle_is_not_ended_and_not_started_twice() -> None:
    listener = recorder()
    t = trainer(train_dataloader=batches(4), max_duration="6ba", callbacks=[listener])
    t.fit()
    count = Counter(listener.seen)
    assert (count[Event.EPOCH_START], count[Event.EPOCH_END]) == (2, 1)
    t.fit("2ba")
    count = Counter(listener.seen)
    assert (count[Event.EPOCH_START], count[Event.EPOCH_END]) == (2, 2)
    assert t.state.timestamp.iteration == 2
