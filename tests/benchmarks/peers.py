"""A step of the trainer beside a step of Ignite, Accelerate, Lightning and Composer, as ratios over the plain loop.

    python tests/benchmarks/peers.py [--rounds 10] [--envs .peers] [--only ignite,expkit] [mlp64 mlp784 conv32]

Each library gets an environment of its own under --envs, built on first use (about 1 GB each; TORCH_INDEX=URL picks
torch wheels); one that cannot be built is named and left out. In a round every library trains once, in a process of its
own, in an order that turns; a process alternates with the plain loop and gives the median of seven ratios of CPU time.
Printed are the geometric mean over rounds, the t interval on its log, and how far expkit is ahead, paired by round.
About 2 minutes a round. Exit code 1 where a library is ahead of expkit beyond the interval.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "8589934592",
          "MALLOC_TOP_PAD_": "67108864"}  # fmt: skip  # as trials have them
TORCH = "torch==2.13.0"
INSTALLS: dict[str, list[list[str]]] = {
    "ignite": [[TORCH, "pytorch-ignite==0.5.5"]],
    "accelerate": [[TORCH, "accelerate==1.15.0"]],
    "lightning": [[TORCH, "lightning==2.6.6"]],
    "composer": [
        [TORCH],
        ["--no-deps", "mosaicml==0.32.1", "torchvision==0.28.0", "torch_optimizer<0.4", "pytorch_ranger"],
        ["pyyaml<7", "tqdm", "torchmetrics<1.7.5", "numpy<2.3", "psutil<8", "coolname<3", "tabulate==0.9.0",
         "py-cpuinfo<10", "packaging<25.1", "importlib-metadata<9", "pillow<12", "requests",
         "mosaicml-cli<0.8,>=0.5.25"],
    ],
}  # fmt: skip
"""Composer asks for an older torch, so it is installed beside its declared dependencies, as it runs here."""


@dataclass(frozen=True)
class Interval:
    """A ratio with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def python_of(name: str, envs: Path) -> tuple[str, str]:
    """(interpreter, note on the size) of a library's environment; OSError or CalledProcessError where it fails."""
    if name in ("bare", "expkit"):
        return sys.executable, "this environment"
    env = envs / name
    python = env / "bin" / "python"
    if not (env / "ready").exists():
        print(f"building {env}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(env)], check=True)
        index = ["--extra-index-url", os.environ["TORCH_INDEX"]] if os.environ.get("TORCH_INDEX") else []
        for packages in INSTALLS[name]:
            subprocess.run([str(python), "-m", "pip", "install", "-qq", *index, *packages], check=True)
        if name == "composer":
            _let_torchvision_import(env)
        (env / "ready").touch()
    size = sum(file.stat().st_size for file in env.rglob("*") if file.is_file() and not file.is_symlink())
    return str(python), f"{size / 1e6:.0f} MB"


def _let_torchvision_import(env: Path) -> None:
    """Its compiled operators do not load beside a CPU build of torch; composer only needs it to be importable."""
    (module,) = env.glob("lib/python*/site-packages/torchvision/__init__.py")
    text = re.sub(r"\b_(autograd|meta)_registrations,\s*(?:#.*)?", "", module.read_text())
    module.write_text(text)


def ratio(name: str, python: str, workload: str) -> float:
    """One process: the median of its chunks' ratios over the plain loop."""
    command = [python, "-P", str(HERE / "peer_step.py"), name, workload]
    environment = {**os.environ, **MALLOC, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT) if name == "expkit" else ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{name} on {workload}: {done.stderr.strip().splitlines()[-1:]}")
    return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def interval(ratios: list[float]) -> Interval:
    """Geometric mean with a t interval on the log."""
    from scipy.stats import t

    logs = [math.log(r) for r in ratios]
    mean, n = statistics.fmean(logs), len(logs)
    half = t.ppf(0.975, n - 1) * statistics.stdev(logs) / math.sqrt(n)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def compare(workload: str, pythons: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Ratios by library, one a round; who goes first turns."""
    ratios: dict[str, list[float]] = {name: [] for name in pythons}
    names = list(pythons)
    for round_ in range(rounds):
        for name in names[round_ % len(names) :] + names[: round_ % len(names)]:
            ratios[name].append(ratio(name, pythons[name], workload))
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["mlp64", "mlp784", "conv32"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--envs", type=Path, default=ROOT / ".peers")
    parser.add_argument("--only", default=",".join(["bare", "expkit", *INSTALLS]))
    given = parser.parse_args()
    pythons: dict[str, str] = {}
    for name in given.only.split(","):
        try:
            pythons[name], size = python_of(name, given.envs)
            ratio(name, pythons[name], "mlp64")  # warms the files, and shows that it runs
            print(f"{name:10} {size}", flush=True)
        except (OSError, subprocess.CalledProcessError) as e:
            pythons.pop(name, None)
            print(f"{name:10} could not be measured: {e}", flush=True)
    behind = False
    for workload in given.workloads:
        ratios = compare(workload, pythons, given.rounds)
        print(f"{workload}, CPU time of a step over the plain loop, n={given.rounds} rounds", flush=True)
        for name, own in ratios.items():
            ahead = (
                interval([a / b for a, b in zip(own, ratios["expkit"], strict=True)]) if "expkit" in ratios else None
            )
            print(f"  {name:10} {interval(own)}   over expkit {ahead}", flush=True)
            behind |= name in INSTALLS and ahead.high < 1
    sys.exit(behind)


if __name__ == "__main__":
    main()
