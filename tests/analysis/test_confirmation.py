"""A confirmation beside the sweep that chose it: its own seeds, its own intervals, one family of tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expkit.analysis.model import Summary
from expkit.analysis.multiplicity import holm
from expkit.analysis.summary import summarise, summary_to_json
from expkit.report.markdown import to_markdown
from expkit.report.section import make_page
from expkit.store.query import connect
from tests.store.synthetic import Cell, Method, make_store

METHODS = {"ema": Method(0.99), "label_smoothing": Method(0.9, -0.001)}
SEEDS = (41, 42, 43, 44)
WAS = {"value": 1.13, "lo": 1.1, "hi": 1.16, "n": 5, "level": 0.95, "method": "pooled t"}
RECORD: dict[str, Any] = {
    "utc": "2026-03-02T10:00:00Z", "rule": "the 2 fastest of 3 arms", "of": 3, "top": 2,
    "arms": [{"arm": arm, "verdict": "FASTER", "speedup": WAS, "quality": {**WAS, "value": 0.0, "lo": -0.001}}
             for arm in ("label_smoothing", "ema")],
    "seeds": list(SEEDS), "metric": "eval/accuracy", "test": False, "why": "points has no splits", "opened_utc": None,
    "expkit": "0.1.0", "earlier": [],
}  # fmt: skip


def summary_of(root: Path, record: dict[str, Any], change: Callable[[Cell], Cell] = lambda cell: cell) -> Summary:
    def confirming(cell: Cell) -> Cell:
        return change(replace(cell, role="confirm")) if cell.seed in SEEDS else cell

    made = make_store(root, METHODS, seeds=(*range(17, 22), *SEEDS), change=confirming, num_batches=16)
    made.store.write_confirmation("ablate", record)
    with connect(root) as con:
        return summarise(con, "ablate")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    root = tmp_path_factory.mktemp("store")
    return root, summary_of(root, RECORD)


def test_the_sweep_is_judged_by_its_own_seeds_and_the_confirmation_by_its_own(found: tuple[Path, Summary]) -> None:
    summary = found[1]
    assert {arm.pairs for arm in summary.arms if not arm.baseline} == {5}
    assert summary.states == {"complete": 25}
    told = summary.confirmation
    assert told is not None
    assert told.states == {"complete": 20}
    assert [one.arm.label for one in told.arms] == ["label_smoothing", "ema"]
    assert {one.arm.pairs for one in told.arms} == {4}
    assert [one.was.value for one in told.arms] == [1.13, 1.13]
    assert told.arms[0].arm.verdict.startswith("FASTER")
    assert told.arms[0].arm.speedup.value == pytest.approx(1 / 0.9, rel=0.03)


def test_intervals_hold_together_and_p_values_are_holms(found: tuple[Path, Summary]) -> None:
    told = found[1].confirmation
    assert told is not None
    assert told.level == pytest.approx(0.975)
    assert {one.arm.speedup.level for one in told.arms} == {told.level}
    assert [one.p_holm for one in told.arms] == pytest.approx(holm([one.arm.checks.p or 0.0 for one in told.arms]))


def test_the_report_tells_both_after_the_first_sentence(found: tuple[Path, Summary]) -> None:
    root, summary = found
    assert len(summary.headline) == 3
    assert summary.headline[1].startswith("Chosen out of 3 arms and run again on 4 fresh seeds: label_smoothing x1.1")
    assert "(was x1.13), FASTER" in summary.headline[1]
    page = to_markdown(make_page(summary))
    assert "2 arms, the 2 fastest of 3 arms, on 4 seeds that nothing was chosen by; settled on 2026-03-02" in page
    assert "points has no splits. The seeds are fresh, the data are not" in page
    assert "1.130 \\[1.100, 1.160\\]" in page
    told = summary.confirmation
    assert told is not None
    with connect(root) as con:
        by_sql = {row["arm"]: row["speedup"] for row in con.rows(summary.sql["confirmed"])}
    for one in told.arms:
        assert by_sql[one.arm.label] == pytest.approx(one.arm.speedup.value)


def test_on_other_terms_there_is_no_confirmation(found: tuple[Path, Summary]) -> None:
    with connect(found[0]) as con:
        assert summarise(con, "ablate", target=0.7).confirmation is None


def test_what_has_not_run_is_no_number_and_no_headline(tmp_path: Path) -> None:
    record = {**RECORD, "test": True, "metric": "test/accuracy"}
    summary = summary_of(tmp_path, record, lambda cell: replace(cell, state="pending"))
    told = summary.confirmation
    assert told is not None
    assert told.headline == ""
    assert "The test split has not been opened yet." in told.sentences
    assert {one.arm.verdict for one in told.arms} == {"NO PAIRS"}
    assert {one.p_holm for one in told.arms} == {None}
    assert "nan" not in str(summary_to_json(summary)["confirmation"])


def test_the_guard_of_the_winner_takes_the_seeds_of_the_latest_confirmation_alone(tmp_path: Path) -> None:
    """Two of the four seeds belong to a first confirmation, in which the arm was twice as slow."""
    former = {"utc": "2026-03-01T10:00:00Z", "seeds": [41, 42], "opened_utc": None, "arms": ["label_smoothing"]}

    def slow_at_first(cell: Cell) -> Cell:
        slow = cell.seed in former["seeds"] and cell.arm == "label_smoothing"
        return replace(cell, seconds=2 * cell.seconds) if slow else cell

    summary = summary_of(tmp_path, {**RECORD, "seeds": [43, 44], "earlier": [former]}, slow_at_first)
    guard = next(g for g in summary.guards if g.name == "winner")
    assert guard.number == pytest.approx(1 / 0.9, rel=0.03)
    assert "on 2 unseen seeds" in guard.sentence
    assert guard.light == "amber"


def test_a_second_confirmation_is_counted_and_a_diverged_trial_withholds_its_arm(tmp_path: Path) -> None:
    former = {"utc": "2026-03-01T10:00:00Z", "seeds": [7], "opened_utc": "2026-03-01T10:00:01Z", "arms": ["ema"]}
    record = {**RECORD, "test": True, "metric": "eval/accuracy", "opened_utc": "2026-03-02T10:00:01Z",
              "earlier": [former]}  # fmt: skip

    def one_diverged(cell: Cell) -> Cell:
        return dataclasses.replace(cell, state="diverged") if (cell.arm, cell.seed) == ("ema", 41) else cell

    told = summary_of(tmp_path, record, one_diverged).confirmation
    assert told is not None
    assert told.earlier == ("2026-03-01T10:00:00Z",)
    assert any("confirmation number 2" in sentence for sentence in told.sentences)
    assert any("opened again on 2026-03-02" in sentence for sentence in told.sentences)
    assert [one.arm.verdict for one in told.arms][1] == "WITHHELD"
