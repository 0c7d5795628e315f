"""The store beside TensorBoard's event files, MLflow's store and pandas over CSV: one question, as large as each bears.

    python tests/benchmarks/store_peers.py [--envs .peers] [--seconds 60] [--most 640] [--only tensorboard,pandas]

Each library gets an environment of its own under --envs, built on first use; one that cannot be built is named and left
out. Trials of 1,000 steps and two metrics are written, and the first crossing of every trial is asked for; their number
is doubled until a library needs more than --seconds for both. At the largest size that each bears, expkit does the same
in the same run: printed are seconds, bytes a value, and ratios over expkit. About 8 minutes. Exit code 1 where a
library answers sooner than expkit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STEPS = 1000
INSTALLS = {
    "tensorboard": ["tensorboard==2.21.0", "setuptools<81"],
    "mlflow": ["mlflow==3.17.2"],
    "pandas": ["pandas==2.3.3"],
}


def python_of(name: str, envs: Path) -> str:
    """Interpreter of a library's environment; CalledProcessError where it cannot be built."""
    if name == "expkit":
        return sys.executable
    env = envs / f"store-{name}"
    python = env / "bin" / "python"
    if not (env / "ready").exists():
        print(f"building {env}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(env)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", *INSTALLS[name]], check=True)
        (env / "ready").touch()
    return str(python)


def measured(name: str, python: str, trials: int, seconds: float) -> dict[str, Any] | None:
    """One process that writes and asks; None where it takes too long. OSError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-P", str(HERE / "store_peer.py"), name, folder, str(trials), str(STEPS)]
        own = {"PYTHONPATH": str(ROOT) if name == "expkit" else "", "MLFLOW_DISABLE_TELEMETRY": "true"}
        try:
            done = subprocess.run(
                command, env={**os.environ, **own}, capture_output=True, text=True, check=False, timeout=2 * seconds
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            raise OSError(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        assert found["hits"] == trials, f"{name} found {found['hits']} of {trials} crossings"
        return found


def largest(name: str, python: str, seconds: float, most: int) -> tuple[int, dict[str, Any]]:
    """(the largest number of trials that it bears, what was measured there); OSError where it bears not even ten."""
    best = None
    trials = 10
    while trials <= most:
        found = measured(name, python, trials, seconds)
        if found is None or found["write_s"] + 2 * found["ask_s"] > seconds:
            break
        best = trials, found
        trials *= 2
    if best is None:
        raise OSError(f"{name} bears less than 10 trials in {seconds:g} s")
    return best


def line(name: str, trials: int, found: dict[str, Any]) -> str:
    """One library at one size."""
    values = trials * STEPS * 2
    return (
        f"  {name:<12} write {found['write_s']:7.2f} s ({found['write_s'] / values * 1e6:5.2f} us a value)   "
        f"ask {found['ask_s']:7.3f} s   {found['bytes'] / values:5.1f} bytes a value"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=Path, default=ROOT / ".peers")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--most", type=int, default=640)
    parser.add_argument("--only", default=",".join(INSTALLS))
    given = parser.parse_args()
    behind = []
    for name in given.only.split(","):
        try:
            trials, theirs = largest(name, python_of(name, given.envs), given.seconds, given.most)
        except (OSError, subprocess.CalledProcessError) as e:
            print(f"{name} could not be measured: {e}", flush=True)
            continue
        ours = measured("expkit", sys.executable, trials, 10 * given.seconds)
        assert ours is not None
        print(f"{name} at {trials} trials, {trials * STEPS * 2:,} values", flush=True)
        print(line(name, trials, theirs))
        print(line("expkit", trials, ours))
        ratios = {key: theirs[key] / ours[key] for key in ("ask_s", "write_s", "bytes")}
        print(
            f"  over expkit: ask {ratios['ask_s']:.1f}, write {ratios['write_s']:.2f}, bytes {ratios['bytes']:.2f}",
            flush=True,
        )
        if ratios["ask_s"] < 1:
            behind.append(name)
    print("\n".join(f"{name} answers sooner" for name in behind) or "none answers sooner than expkit")
    return bool(behind)


if __name__ == "__main__":
    sys.exit(main())
