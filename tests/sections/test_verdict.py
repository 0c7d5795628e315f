"""The verdict box."""

from __future__ import annotations

from dataclasses import replace

from expkit.report.blocks import Text, Verdicts
from expkit.sections.verdict import Verdict
from tests.report.example_summary import empty, example


def test_headline_then_target_clock_and_direction() -> None:
    [box] = Verdict().blocks(example())
    assert isinstance(box, Verdicts)
    assert box.lines == example().headline
    assert box.notes[0].startswith("Target 0.8412 fixed from 5 baseline pilot seeds")
    assert "Speedup = baseline time / arm time; more than one is faster." in box.notes[-1]
    assert box.notes[-1].endswith("eval/accuracy: more is better.")


def test_a_running_sweep_says_so_first() -> None:
    first, _ = Verdict().blocks(replace(example(), running=True, states={"complete": 3, "running": 1}))
    assert isinstance(first, Text)
    assert first.text.startswith("This sweep is still running: 3 of 4 replicates complete.")


def test_nothing_to_compare_is_a_sentence() -> None:
    for states, sentence in (
        ({}, "Nothing has run yet"),
        ({"failed": 2}, "None of 2 replicates is complete"),
        ({"complete": 2}, "No comparison can be made"),
    ):
        [box] = Verdict().blocks(replace(empty(), states=states))
        assert isinstance(box, Verdicts)
        assert box.lines[0].startswith(sentence)


def test_the_sentence_on_the_clock_is_said_once_where_the_headline_has_it() -> None:
    base = example()
    [box] = Verdict().blocks(replace(base, headline=(*base.headline, base.clock_sentence)))
    assert isinstance(box, Verdicts)
    assert (*box.lines, *box.notes).count(base.clock_sentence) == 1
