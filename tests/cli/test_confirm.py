"""`expkit confirm`: fresh seeds, test data opened once, a choice that is settled before it and told in the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from expkit.launch.targets import seed_of
from expkit.store.records import PlanRow
from expkit.store.store import Store
from tests.launch.lab import Lab

ARGUMENTS = ("--arm", "ema", "--seeds", "2")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A sweep that was confirmed; tests of it run nothing more."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    own, recipe = lab.folder / "own.py", lab.folder / "recipes" / "tiny.yaml"
    own.write_text(own.read_text().replace('path="own.py"):', 'path="own.py", split=None):'))
    recipe.write_text(
        recipe.read_text().replace('eval: {"py:own:Points": {}}', 'eval: {"py:own:Points": {split: val}}')
    )
    lab.sweep("one", "{ema: {half_life: 4ba}}", seeds=2)
    refused = lab.call("confirm", "one")
    assert refused.returncode == 2
    assert "6 of 6 replicates of one have no result yet" in refused.stderr
    assert lab.call("sweep", "one").returncode == 0
    done = lab.call("confirm", "one", *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    assert "6 complete; this call ran 6" in done.stderr
    return lab


@pytest.fixture
def copy(lab: Lab, tmp_path: Path) -> Lab:
    """The same, to be changed."""
    made = Lab.__new__(Lab)
    made.folder = tmp_path / "lab"
    made.runs = made.folder / "runs"
    shutil.copytree(lab.folder, made.folder)
    made.store = Store(made.runs)
    return made


def again(lab: Lab) -> list[PlanRow]:
    return [row for row in lab.store.read_plan("one") if row.role == "confirm"]


def summary(lab: Lab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lab.runs / "sweeps" / "one" / "report" / "summary.json").read_text())
    return found


def test_an_arm_runs_on_fresh_seeds_and_test_data_is_looked_at_once_a_trial(lab: Lab) -> None:
    rows = again(lab)
    assert sorted((row.arm, row.replicate) for row in rows) == [("ema", 0)] * 2 + [("none", 0)] * 2 + [("none", 1)] * 2
    grid = [row for row in lab.store.read_plan("one") if row.role != "confirm"]
    assert min(row.block for row in rows) > max(row.block for row in grid)
    seeds = {record.seed for row in rows if (record := lab.store.read_trial(row.id))}
    assert seeds == {seed_of("confirm", 0), seed_of("confirm", 1)}
    looks = lab.json("query", "SELECT id, replicate, n FROM final WHERE name = 'test/accuracy'")
    assert {(look["id"], look["replicate"]) for look in looks} == {(row.id, row.replicate) for row in rows}
    assert {look["n"] for look in looks} == {1}


def test_the_report_has_both_answers_and_says_how_and_when(lab: Lab) -> None:
    found = summary(lab)
    told = found["confirmation"]
    assert [one["arm"]["label"] for one in told["arms"]] == ["ema"]
    assert told["rule"] == "named by hand, out of 1 arm"
    assert told["metric"] == "test/accuracy"
    assert told["arms"][0]["was"] == next(arm["speedup"] for arm in found["arms"] if arm["label"] == "ema")
    page = lab.call("report", "one", "--format", "md").stdout
    assert "## On fresh seeds" in page
    assert f"the test split was opened on {told['opened_utc'][:10]}, for these trials" in page
    by_sql = {row["arm"]: row["speedup"] for row in lab.json("query", found["sql"]["confirmed"])}
    value = told["arms"][0]["arm"]["speedup"]["value"]
    assert by_sql == pytest.approx({} if value is None else {"ema": value})


def test_a_second_call_goes_on_with_what_was_settled_and_refuses_another_choice(lab: Lab) -> None:
    before = (again(lab), lab.store.confirmation("one"))
    for command in ("confirm", "sweep"):
        done = lab.call(command, "one")
        assert (done.returncode, "this call ran 0" in done.stderr) == (0, True)
        assert (again(lab), lab.store.confirmation("one")) == before
    for options in (("--seeds", "3"), ("--top", "3"), ("--arm", "none")):
        refused = lab.call("confirm", "one", *options)
        assert refused.returncode == 2
        assert "was settled on" in refused.stderr


def test_an_arm_that_is_none_and_options_that_exclude_each_other_are_refused(lab: Lab) -> None:
    unknown = lab.call("confirm", "one", "--again", "--arm", "emma")
    assert (unknown.returncode, "did you mean 'ema'" in unknown.stderr) == (2, True)
    both = lab.call("confirm", "one", "--arm", "ema", "--top", "1")
    assert (both.returncode, "one of the two" in both.stderr) == (2, True)


@pytest.mark.soak
def test_what_is_missing_is_run_and_its_baseline_beside_it(copy: Lab) -> None:
    opened = copy.store.confirmation("one")["opened_utc"]
    lost = next(row for row in again(copy) if row.arm == "ema")
    shutil.rmtree(copy.store.layout.replicate(lost.id, lost.replicate))
    done = copy.call("confirm", "one")
    assert done.returncode == 0, done.stderr
    assert "7 complete; this call ran 2" in done.stderr
    assert sorted(row.replicate for row in again(copy) if row.arm == "none") == [0, 0, 1, 1, 2]
    assert "this call ran 0" in copy.call("confirm", "one").stderr
    assert copy.store.confirmation("one")["opened_utc"] == opened


@pytest.mark.soak
def test_another_confirmation_has_other_seeds_and_the_report_counts_it(copy: Lab) -> None:
    done = copy.call("confirm", "one", "--again", *ARGUMENTS)
    assert done.returncode == 0, done.stderr
    known = copy.store.confirmation("one")
    assert known["seeds"] == [seed_of("confirm", 2), seed_of("confirm", 3)]
    assert [former["arms"] for former in known["earlier"]] == [["ema"]]
    assert len(again(copy)) == 12
    assert len({row.position for row in copy.store.read_plan("one")}) == 18
    told = summary(copy)["confirmation"]
    assert told["states"] == {"complete": 6}
    assert any("confirmation number 2" in sentence for sentence in told["sentences"])
