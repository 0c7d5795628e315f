"""expkit calibrate: this host, a file of it, and arms in its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.launch import calibrate as timing
from tests.cli.conftest import Expkit, as_json


def test_a_host_its_file_and_arms(expkit: Expkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPKIT_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(timing, "_apart", timing.here)
    path = tmp_path / "here.json"
    found = as_json(expkit("calibrate", "--rounds", "1", "-o", str(path), "--json"))
    assert (found["rounds"], found["arms"]) == (1, [])
    code, out, err = expkit("calibrate", "--reference", str(path))
    assert code == 0
    assert "of CPU time" in out
    assert "next: expkit calibrate" in err


def test_arms_in_the_time_of_a_host_and_unknown_sweeps(expkit: Expkit, tmp_path: Path) -> None:
    path = tmp_path / "bench1.json"
    path.write_text('{"host": "bench1", "threads": 1, "torch": "2", "utc": "", "wall_s": 1, "cpu_s": 1, "mad_s": 0, '
                    '"rounds": 3}')  # fmt: skip
    code, out, _ = expkit("calibrate", "ablate", "--reference", str(path))
    assert (code, "  none: " in out) == (0, True)
    code, out, err = expkit("calibrate", "nosuch", "--reference", str(path))
    assert (code, out) == (2, "")
    assert "nosuch" in err
