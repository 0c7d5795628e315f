"""Whole files or none, and damaged ones named."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from expkit.store import atomic
from expkit.store.strict import number


def test_a_record_is_replaced_as_a_whole_and_nothing_stays_beside(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "status.json"
    atomic.write_json(path, {"a": 1})
    atomic.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert [p.name for p in path.parent.iterdir()] == ["status.json"]


def test_a_failed_write_keeps_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "status.json"
    atomic.write_json(path, {"a": 1})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        atomic.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["status.json"]


def test_nan_and_inf_travel_as_texts_in_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    atomic.write_json(path, {"final": {"loss": math.nan, "up": math.inf, "down": -math.inf, "list": [math.nan]}})
    assert "NaN" not in path.read_text() and "Infinity" not in path.read_text()
    final = json.loads(path.read_text())["final"]
    assert math.isnan(number(final["loss"]) or 0.0)
    assert number(final["up"]) == math.inf and number(final["down"]) == -math.inf
    assert number("other") is None and number(True) is None and number(3) == 3.0


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"3", b'{"a": 1', b"[" * 100_000])
def test_a_damaged_record_is_set_aside_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "status.json"
    path.write_bytes(content)
    set_aside: list[atomic.Unreadable] = []
    assert atomic.read_json(path, set_aside) is None
    assert [u.path for u in set_aside] == [path]
    assert str(path) in str(set_aside[0])


def test_a_missing_record_is_no_damage(tmp_path: Path) -> None:
    set_aside: list[atomic.Unreadable] = []
    assert atomic.read_json(tmp_path / "none.json", set_aside) is None
    (tmp_path / "file").write_text("")
    assert atomic.read_json(tmp_path / "file" / "none.json", set_aside) is None
    assert set_aside == []
