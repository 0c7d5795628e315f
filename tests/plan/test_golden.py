"""Three sweeps as a lab would write them, against what `expkit plan --json --cells` says of them.

The golden texts are rewritten by `python tests/plan/test_golden.py`; look at the difference before committing it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from expkit.cli import app

GOLDEN = Path(__file__).parent / "golden"
SWEEPS = ["two_optimizers", "own_code", "baseline_beside"]


def planned(name: str) -> str:
    """The plan of a golden sweep, without the state of any store."""
    command = ["plan", str(GOLDEN / f"{name}.yaml"), "--json", "--cells", "--runs-dir", str(GOLDEN / "no-runs")]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("name", SWEEPS)
def test_the_plan_is_the_golden_one(name: str) -> None:
    assert planned(name) == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SWEEPS)
def test_each_block_compares_arms_with_its_baseline(name: str) -> None:
    document = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    cells = document["cells"]
    for block in {cell["block"] for cell in cells}:
        here = [cell for cell in cells if cell["block"] == block]
        assert [cell["role"] for cell in here].count("baseline") == 1
        assert len({(cell["seed"], cell["arm"].partition(" ")[2]) for cell in here}) == 1
    assert len({cell["id"] for cell in cells}) == document["trials"]


if __name__ == "__main__":
    for each in SWEEPS:
        (GOLDEN / f"{each}.json").write_text(planned(each), encoding="utf-8")
