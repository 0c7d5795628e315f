"""The suite for a CUDA device where there is none: it says so; what needs no CUDA of it passes on a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests" / "gpu" / "run.py"


def test_without_a_device_it_runs_nothing_and_makes_no_environment(tmp_path: Path) -> None:
    before = sorted(ROOT.iterdir())
    done = subprocess.run([sys.executable, str(RUN)], cwd=tmp_path, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == "no CUDA device: 0 run\n"
    assert sorted(ROOT.iterdir()) == before


@pytest.mark.soak
def test_what_needs_no_cuda_passes_on_a_cpu(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(RUN), "--device", "cpu"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "cpu: " in done.stdout.splitlines()[-1]
