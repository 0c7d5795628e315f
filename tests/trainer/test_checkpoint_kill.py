"""SIGKILL while checkpoints are written: what is there is whole, and training never falls back further than it must."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_at_any_moment_what_was_saved_is_whole(kills: int, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1000)
    done = subprocess.run([sys.executable, "-m", "tests.trainer.killed_saver", str(tmp_path), str(kills), str(seed)],
                          cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, text=True,
                          capture_output=True, timeout=170)  # fmt: skip
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-2000:]}"
    said = json.loads(done.stdout)
    newest = said["newest"]
    assert newest[-1] > 0 and all(a <= b for a, b in pairwise(newest)), f"seed {seed}: {newest}"
    last, before = (f"ep{batch // 20}-ba{batch}" for batch in (newest[-1] + 3, newest[-1] + 2))
    assert said["left"] == sorted([last, before, "latest"]), (
        f"seed {seed}: what kills left behind goes with the next save"
    )
