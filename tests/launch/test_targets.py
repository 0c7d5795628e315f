"""Target files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from expkit.errors import UsageError
from expkit.launch import targets
from expkit.spec.recipe import Pilot, Primary

PRIMARY = Primary("eval/accuracy", "max")


def test_a_target_is_the_worst_pilot_with_a_ladder_and_a_hash(tmp_path: Path) -> None:
    path = targets.target_file(tmp_path / "ablate.yaml")
    assert path.name == "ablate.target.json"
    made = targets.derived(PRIMARY, Pilot(2), [1, 2], [0.1, 0.1], [0.84, 0.86], ["a", "b"])
    targets.write(path, made)
    read = targets.read(path)
    assert read == made
    assert read["value"] == 0.84
    assert [share for share, _ in read["ladder"]] == [0.9, 0.95, 0.99]
    assert len(read["hash"]) == 12


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.target.json"
    made = targets.derived(PRIMARY, Pilot(2), [1, 2], [0.1, 0.1], [0.84, 0.86], ["a", "b"])
    path.write_text(json.dumps({**made, "value": 0.5}))
    with pytest.raises(UsageError, match="changed by hand"):
        targets.read(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"value": "x", "metric": "m", "hash": "h"}'])
def test_what_is_no_target_file_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.target.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="no target file"):
        targets.read(path)


def test_pilot_seeds_lie_above_all_seeds_of_grids_and_stay_the_same() -> None:
    seeds = targets.pilot_seeds(5)
    assert len(set(seeds)) == 5
    assert all(2**31 <= seed < 2**32 for seed in seeds)
    assert seeds[:3] == targets.pilot_seeds(3)


@pytest.mark.parametrize(
    ("rule", "value", "easier"),
    [("lowest_final", 0.84, "rule: gain_95}} is 0.8125"), ("gain_95", 0.8125, "rule: gain_90}} is 0.775"),
     ("gain_90", 0.775, "a number in metrics.target")],
)  # fmt: skip
def test_a_target_at_which_the_baseline_hardly_gains_is_refused_with_what_would_be_right(
    rule: Literal["lowest_final", "gain_90", "gain_95"], value: float, easier: str
) -> None:
    def made(slope: float) -> targets.Target:
        return targets.derived(PRIMARY, Pilot(2, rule), [1, 2], [0.1, 0.1], [0.84, 0.86], ["a", "b"], [slope, slope])

    steep, flat = made(0.03), made(0.02)
    assert steep["value"] == pytest.approx(value)
    assert targets.judged(steep, allow_flat=False) is steep
    with pytest.raises(UsageError) as refused:
        targets.judged(flat, allow_flat=False)
    said = str(refused.value)
    assert "gains 0.02 per doubling of training there and its seeds vary by 0.014 (SD)" in said
    assert "should gain 0.028 or more" in said and easier in said and "--allow-flat" in said
    allowed = targets.judged(flat, allow_flat=True)
    assert allowed["flat"] is True and allowed["hash"] != flat["hash"]
    assert targets.judged(allowed, allow_flat=False) is allowed


def test_a_pilot_that_diverged_is_kept_as_a_value_and_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "t.target.json"
    targets.write(path, targets.derived(PRIMARY, Pilot(2), [1, 2], [0.1, 0.1], [float("nan"), 0.86], ["a", "b"]))
    assert targets.read(path)["value"] == 0.86
    assert targets.read(path)["finals"] == ["nan", 0.86]
