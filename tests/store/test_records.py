"""Records: closed words, strict types, and a version that says when a reader is too old."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from expkit.store.records import CAUSES, STATES, PlanRow, Status, TrialRecord
from expkit.store.strict import strict

ID = "0123456789ab" + "c" * 52


def test_a_status_survives_its_file_with_nan_and_inf() -> None:
    status = Status("diverged", 2, final={"loss": math.nan, "acc": math.inf}, clocks={"train_s": 1.5, "eval_s": None})
    again = Status.from_json(json.loads(json.dumps(strict(status.to_json()), allow_nan=False)))
    assert math.isnan(again.final["loss"]) and again.final["acc"] == math.inf
    assert again.clocks == {"train_s": 1.5, "eval_s": None}
    assert again.state == "diverged" and again.attempt == 2


def test_a_trial_survives_its_file() -> None:
    record = TrialRecord(ID, "ema", [{"name": "ema", "label": "ema", "params": {}}], 1, 17, {"seed": 17}, {"seed": 17})
    assert TrialRecord.from_json(json.loads(json.dumps(record.to_json()))) == record
    assert record.id12 == "0123456789ab"


@pytest.mark.parametrize("state", sorted({"pending", "lost", "done"}))
def test_states_that_nobody_writes_are_refused(state: str) -> None:
    with pytest.raises(ValueError, match="never written"):
        Status(state, 1)


def test_states_and_causes_are_closed_lists() -> None:
    assert len(STATES) == 9 and len(CAUSES) == 8
    with pytest.raises(ValueError, match="unknown cause 'gremlins'"):
        Status("failed", 1, cause="gremlins")
    with pytest.raises(ValueError, match="unknown clock 'lunch_s'"):
        Status("failed", 1, clocks={"lunch_s": 1.0})
    with pytest.raises(ValueError, match="counted from 1"):
        Status("failed", 0)
    with pytest.raises(ValueError, match="unknown role 'guest'"):
        PlanRow("0" * 12, 0, "none", "guest", 0, 0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema_version": 99}, "schema version 99"),
        ({"schema_version": None}, "schema version None"),
        ({"seed": 1.5}, "seed = 1.5"),
        ({"seed": True}, "seed = True"),
        ({"label": None}, "label = None"),
        ({"config": []}, "config"),
        ({"id": "short"}, "64 hex"),
        ({"algorithms": ["ema"]}, "each method"),
    ],
)
def test_a_record_of_another_shape_is_no_record(change: dict[str, Any], says: str) -> None:
    value = TrialRecord(ID, "none", [], 0, 17, {}, {}).to_json() | change
    with pytest.raises(ValueError, match=says):
        TrialRecord.from_json(value)


def test_a_record_with_a_missing_key_is_no_record_and_one_with_more_keys_is() -> None:
    value = TrialRecord(ID, "none", [], 0, 17, {}, {}).to_json()
    assert TrialRecord.from_json(value | {"mood": "good"}).seed == 17
    del value["seed"]
    with pytest.raises(ValueError, match="seed"):
        TrialRecord.from_json(value)
