"""Time to target."""

from __future__ import annotations

from dataclasses import replace

from expkit.analysis.estimates import Interval, Reach
from expkit.report.blocks import Table, Text
from expkit.sections.target import Target
from tests.report.example_summary import all_failed, empty, example


def test_ladder_and_rules_with_misses_shown_as_misses() -> None:
    sentence, ladder, rules = Target().blocks(example())
    assert isinstance(sentence, Text) and isinstance(ladder, Table) and isinstance(rules, Table)
    assert [c.header for c in ladder.columns][1:3] == ["target 0.8412 [s, hits]", "90 % of gain, 0.8054 [s, hits]"]
    rows = {row["arm"].text: row for row in ladder.rows}
    assert rows["none"]["None"].text == "3.60 s (5/5)"
    assert rows["progressive_resizing"]["0.95"].text == "> 3.34 s (1/5)"
    assert rows["progressive_resizing"]["None"].value is None
    assert [c.key for c in rules.columns] == ["arm", "first", "sustained", "interpolated"]


def test_budgets_with_ladders_of_their_own_have_a_table_each() -> None:
    base = example()
    named = [replace(a, label=f"{a.label} trainer.ssr={budget}") for a in base.arms for budget in (0.5, 1.0)]
    ladders = ((0.5, ((0.9, 0.7),)), (1.0, ((0.9, 0.8),)))
    page = replace(base, arms=tuple(named), target=replace(base.target, ladders=ladders))
    tables = [block for block in Target().blocks(page) if isinstance(block, Table) and "Ladder" in block.caption]
    assert [table.caption for table in tables] == [f"Ladder of targets at {b} of the length" for b in ("1", "0.5")]
    assert {row["arm"].text.rpartition("=")[2] for row in tables[0].rows} == {"1.0"}


def test_without_a_target_or_a_trial_it_says_which() -> None:
    assert "No target is set" in str(Target().blocks(empty())[-1])
    assert "No complete trial" in str(Target().blocks(all_failed())[-1])


def test_a_sweep_of_which_all_failed_has_no_table_of_misses() -> None:
    base = example()
    blocks = Target().blocks(replace(base, arms=tuple(replace(a, complete=0) for a in base.arms)))
    assert not [block for block in blocks if isinstance(block, Table)]
    assert "No complete trial has recorded the metric" in str(blocks[-1])


def test_misses_have_a_table_of_their_own_and_only_where_there_are_some() -> None:
    base = example()
    whole = Reach(5, 5, 5, 3.6, 3.5, 4.1, Interval(3.6, 3.2, 4.0, 5), curve=((3.6, 0.0),))
    missed = Reach(
        3, 5, 5, 3.9, 4.0, 4.1, Interval(3.8, 3.3, 4.2, 5), Interval(-0.2, -0.8, 0.4, 5), 0.31,
        Interval(0.9, 0.7, 1.1, 5), ((3.1, 0.8), (3.6, 0.6), (3.9, 0.4)),
    )  # fmt: skip
    arms = tuple(replace(a, reach=whole if a.baseline else missed) for a in base.arms)
    _, _, table, _ = Target().blocks(replace(base, arms=arms))
    assert isinstance(table, Table)
    row = next(row for row in table.rows if row["arm"].text == "ema")
    assert (row["hits"].text, row["saved"].text) == ("3 / 5", "−0.20 [−0.80, +0.40]")
    assert (row["speedup"].text, row["p"].text) == ("0.900 [0.700, 1.100]", "0.3100")
    assert row["mean"].text == "3.80 [3.30, 4.20]"
