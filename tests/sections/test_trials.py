"""The replicates."""

from __future__ import annotations

from expkit.report.blocks import Table
from expkit.sections.trials import Trials
from tests.report.example_summary import example


def test_every_run_with_the_command_that_repeats_it() -> None:
    [table] = Trials().blocks(example())
    assert isinstance(table, Table) and table.folded
    assert len(table.rows) == 45
    assert all(row["command"].text.startswith("expkit rerun ") for row in table.rows)
    assert [c.header for c in table.columns if c.unit == "s"] == ["train_s [s]", "cpu_s [s]", "wall_s [s]"]
    failed = next(row for row in table.rows if row["state"].text == "failed")
    assert (failed["train_s"].text, failed["timing"].text) == ("–", "–")
    assert {row["timing"].text for row in table.rows} == {"valid", "contention", "–"}
