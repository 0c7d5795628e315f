"""Failures, their last lines, and methods that did nothing."""

from __future__ import annotations

from dataclasses import replace

from expkit.report.blocks import Code, Table, Text
from expkit.sections.failures import Failures
from tests.report.example_summary import empty, example


def test_a_row_with_the_first_line_and_the_rest_behind_it() -> None:
    table, tail = Failures().blocks(example())
    assert isinstance(table, Table) and isinstance(tail, Code)
    row = table.rows[0]
    assert (row["cause"].text, row["message"].text) == ("signal", "RuntimeError: worker left with signal 9")
    assert row["log"].text == "trials/0badc0ffee42/r0/attempts/1/rank0.log"
    assert tail.folded
    assert tail.text.splitlines()[-1] == "  Killed"


def test_methods_without_effect_are_counted_by_arm() -> None:
    base = example()
    trials = tuple(replace(t, effective=dict.fromkeys(t.effective, t.arm != "ema")) for t in base.trials)
    table = Failures().blocks(replace(base, failures=(), trials=trials))[-1]
    assert isinstance(table, Table)
    assert [[cell.text for cell in row.values()] for row in table.rows] == [["ema", "ema", "5"]]


def test_no_failure_and_no_start_are_sentences() -> None:
    for summary, sentence in (
        (replace(example(), failures=()), "No replicate failed."),
        (empty(), "No replicate has started."),
    ):
        [text] = Failures().blocks(summary)
        assert isinstance(text, Text) and text.text == sentence
