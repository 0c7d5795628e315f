"""Time to target."""

from __future__ import annotations

from dataclasses import replace

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


def test_without_a_target_or_a_trial_it_says_which() -> None:
    assert "No target is set" in str(Target().blocks(empty())[-1])
    assert "No complete trial" in str(Target().blocks(all_failed())[-1])


def test_a_sweep_of_which_all_failed_has_no_table_of_misses() -> None:
    base = example()
    blocks = Target().blocks(replace(base, arms=tuple(replace(a, complete=0) for a in base.arms)))
    assert not [block for block in blocks if isinstance(block, Table)]
    assert "No complete trial has recorded the metric" in str(blocks[-1])
