"""All arms at once, and what the sweep could show."""

from __future__ import annotations

from dataclasses import replace

from expkit.analysis.comparisons import Many
from expkit.report.blocks import Table, Text
from expkit.sections.comparisons import Comparisons
from expkit.sections.sensitivity import Sensitivity
from tests.report.example_summary import empty, example


def test_the_best_and_each_arm() -> None:
    best, arms = Comparisons().blocks(example())
    assert isinstance(best, Table) and isinstance(arms, Table)
    assert best.rows[0]["tied"].text == "1 of 8"
    assert len(arms.rows) == 7
    assert {row["confirmatory"].text for row in arms.rows} == {"–", "0.020"}
    assert arms.note.startswith("Adjusted by Dunnett's")


def test_a_withheld_headline_withholds_the_best() -> None:
    first, _ = Comparisons().blocks(replace(example(), withheld=("noise floor",)))
    assert isinstance(first, Text)
    assert "withheld" in first.text


def test_seeds_tuning_and_cost() -> None:
    said, seeds, steady, tuning, bill, prices = Sensitivity().blocks(example())
    assert isinstance(seeds, Table) and isinstance(tuning, Table) and isinstance(prices, Table)
    assert [row["seeds"].text for row in seeds.rows] == ["19", "more than a million"]
    assert all(isinstance(block, Text) for block in (said, steady, bill))
    assert [row["n3"].text for row in tuning.rows] == ["–", "0.8600"]


def test_nothing_of_nothing() -> None:
    for nothing in (empty(), replace(example(), many=Many())):
        for section in (Comparisons(), Sensitivity()):
            [text] = section.blocks(nothing)
            assert isinstance(text, Text)
            assert "yet" in text.text
