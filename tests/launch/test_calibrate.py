"""Calibrating this host."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.errors import EnvironmentFault, UsageError
from expkit.launch.calibrate import Calibration, calibrate
from expkit.store.lock import acquire


def test_a_host_is_timed_and_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPKIT_LOCK_DIR", str(tmp_path))
    found = calibrate(rounds=1)
    assert 0 < found.cpu_s < 1
    found.write(tmp_path / "here.json")
    assert Calibration.read(tmp_path / "here.json") == found
    with acquire("shared"), pytest.raises(EnvironmentFault, match="is held by"):
        calibrate(rounds=1)


def test_doubts_about_a_host() -> None:
    quiet = Calibration("bench1", 1, "2.13.0", "2026-01-01T00:00:00Z", 0.0101, 0.0100, 0.0001, 20)
    assert quiet.doubts == []
    noisy = Calibration("bench1", 2, "2.13.0", "2026-01-01T00:00:00Z", 0.0090, 0.0100, 0.0010, 20)
    assert noisy.doubts == ["rounds differ by 15 %", "wall over CPU time is 1.80"]


def test_what_is_no_calibration_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no calibration"):
        Calibration.read(tmp_path / "none.json")
    (tmp_path / "odd.json").write_text('{"host": 1}')
    with pytest.raises(UsageError, match="is no calibration that"):
        Calibration.read(tmp_path / "odd.json")
    with pytest.raises(UsageError, match="1 or more, but got 0 and 1"):
        calibrate(rounds=0)
