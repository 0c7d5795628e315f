"""Runs trainer, precision and microbatching on one CUDA device, environment included, in at most seven minutes.

    make test-gpu        or        python3 tests/gpu/run.py [--device cpu] [pytest's arguments]

Where there is no CUDA device it says so, makes nothing and ends with 0. An interpreter that can already do it is used
(.venv's, else the one that runs this), else `make .venv/test` makes one. `--device cpu` runs what needs no CUDA.
Imports the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 420
ROOT = Path(__file__).resolve().parents[2]
PROBE = "import pytest, expkit.trainer.trainer, torch, sys; sys.exit(not ({!r} == 'cpu' or torch.cuda.is_available()))"


def main(arguments: list[str]) -> int:
    """The exit code of the tests, 0 where there is no device, 1 where time ran out."""
    started_s = time.monotonic()
    device = "cuda"
    if arguments[:1] == ["--device"]:
        device, arguments = arguments[1], arguments[2:]
    if device == "cuda" and num_devices() == 0:
        print("no CUDA device: 0 run")
        return 0
    env = environment(device)
    try:
        python = interpreter(device, env, LIMIT_S)
        if python is None:
            print("the torch of .venv sees no CUDA device; rm -r .venv, and give TORCH_INDEX=URL of its wheels",
                  file=sys.stderr)  # fmt: skip
            return 3
        left_s = LIMIT_S - (time.monotonic() - started_s)
        tests = [python, "-m", "pytest", "-q", "-o", "addopts=--import-mode=importlib -p no:cacheprovider", "tests/gpu"]
        code = subprocess.run([*tests, *arguments], cwd=ROOT, env=env, timeout=left_s).returncode
    except subprocess.TimeoutExpired as e:
        print(f"not done after {LIMIT_S} s, at: {' '.join(map(str, e.cmd))}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as e:
        print(f"no environment: {' '.join(map(str, e.cmd))} ended with {e.returncode}", file=sys.stderr)
        return 3
    print(f"{device}: {time.monotonic() - started_s:.0f} s in all, environment included")
    return code


def num_devices() -> int:
    """CUDA devices that this process may see; asks the driver itself, which needs no package."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    good = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value if good else 0


def environment(device: str) -> dict[str, str]:
    """One device, code of this folder, and room for cublas to give the same bits every time."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "EXPKIT_TEST_DEVICE": device, "CUDA_VISIBLE_DEVICES": visible, "PYTHONPATH": path,
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "OMP_NUM_THREADS": "1"}  # fmt: skip


def interpreter(device: str, env: dict[str, str], limit_s: float) -> str | None:
    """A Python with torch that sees the device, and with pytest; made where there is none, None where that fails."""
    own = str(ROOT / ".venv" / "bin" / "python")
    for python in (own, sys.executable):
        if can(python, device, env):
            return python
    subprocess.run(["make", ".venv/test", f"PYTHON={sys.executable}"], cwd=ROOT, check=True, timeout=limit_s)
    return own if can(own, device, env) else None


def can(python: str, device: str, env: dict[str, str]) -> bool:
    """Whether the suite would run there."""
    probe = [python, "-c", PROBE.format(device)]
    return Path(python).exists() and subprocess.run(probe, env=env, cwd=ROOT, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
