"""A step of the trainer beside a step of Ignite, Accelerate, Lightning and Composer, as ratios over the plain loop.

    python tests/benchmarks/peers.py [--rounds 10] [--envs .peers] [--only ignite,expkit] [mlp64 mlp784 conv32]

Each library gets an environment of its own under --envs, built on first use (about 1 GB each; TORCH_INDEX=URL picks
torch wheels); one that cannot be built or run is named and left out. In a round every library trains once, in a process
of its own, in an order that turns; a process alternates with the plain loop and gives the median of seven ratios of CPU
time. Each goes to stderr as it comes. The table has the geometric mean over rounds, the t interval on its log, and how
far expkit is ahead, paired by round; it is written anew after each round as Markdown, to --table, by default peers.md
beside the environments. About 2 minutes a round. Exit code 1 where a library is ahead of expkit beyond the interval.
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
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "8589934592",
          "MALLOC_TOP_PAD_": "67108864"}  # fmt: skip  # as trials have them
LIMIT_S = 600.0
"""Of one process, which takes half a minute where it is slow."""
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
    """A ratio with its 95 % interval over `n` rounds; one round has none."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.n > 1 else f"{self.mean:.3f} (no interval)"


@dataclass
class Library:
    """One that is measured, or the sentence that says why it could not be."""

    name: str
    python: str = ""
    size: str = ""
    trouble: str = ""
    ratios: dict[str, list[float]] = field(default_factory=dict)
    """By workload, one a round."""

    @property
    def packages(self) -> str:
        """What was installed for it, with versions."""
        pinned = [package for line in INSTALLS.get(self.name, []) for package in line if "==" in package]
        return ", ".join(pinned) or f"torch=={torch_version()}"


def python_of(name: str, envs: Path) -> tuple[str, str]:
    """(interpreter, note on the size) of a library's environment; OSError or CalledProcessError where it fails."""
    if name in ("bare", "expkit"):
        return sys.executable, "this environment"
    env = envs / name
    python = env / "bin" / "python"
    if not (env / "ready").exists():
        say(f"building {env}")
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
    """One process: the median of its chunks' ratios over the plain loop; OSError or TimeoutExpired where it fails."""
    command = [python, "-P", str(HERE / "peer_step.py"), name, workload]
    environment = {**os.environ, **MALLOC, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT) if name == "expkit" else ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode:
        raise OSError(f"{name} on {workload}: {done.stderr.strip().splitlines()[-1:]}")
    return statistics.median(json.loads(done.stdout.splitlines()[-1]))


def interval(ratios: list[float]) -> Interval:
    """Geometric mean with a t interval on the log."""
    from scipy.special import stdtrit

    logs = [math.log(r) for r in ratios]
    mean, n = statistics.fmean(logs), len(logs)
    half = stdtrit(n - 1, 0.975) * statistics.stdev(logs) / math.sqrt(n) if n > 1 else math.inf
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)


def prepare(name: str, envs: Path) -> Library:
    """A library's environment, built where there is none, and seen to run."""
    library = Library(name)
    try:
        library.python, library.size = python_of(name, envs)
        ratio(name, library.python, "mlp64")  # warms the files
    except (OSError, subprocess.SubprocessError) as e:
        library.trouble = " ".join(str(e).split())
    say(f"{name:10} {library.trouble or library.size}")
    return library


def measure_round(libraries: list[Library], workload: str, number: int) -> None:
    """One ratio of each library; who goes first turns. One that fails is left out from here on."""
    first = number % len(libraries)
    for library in libraries[first:] + libraries[:first]:
        if library.trouble:
            continue
        try:
            measured = ratio(library.name, library.python, workload)
        except (OSError, subprocess.TimeoutExpired) as e:
            library.trouble = " ".join(str(e).split())
        else:
            library.ratios.setdefault(workload, []).append(measured)
        say(f"{workload:8} round {number + 1:2}  {library.name:10} {library.trouble or f'{measured:.3f}'}")


def over_expkit(library: Library, libraries: list[Library], workload: str) -> Interval | None:
    """How many times expkit's step it takes, paired by round; None where one of the two has no round."""
    own = next((other.ratios.get(workload, []) for other in libraries if other.name == "expkit"), [])
    pairs = list(zip(library.ratios.get(workload, []), own, strict=False))
    return interval([theirs / ours for theirs, ours in pairs]) if pairs else None


def table(libraries: list[Library], workloads: list[str]) -> str:
    """All that was measured, as Markdown."""
    lines = [f"CPU time of a training step over the plain loop of bare_loop.py, 1 thread, torch {torch_version()}, "
             f"{processor()}.", "In brackets the 95 % interval over n rounds; over expkit: paired by round.", "",
             "| workload | library | over the plain loop | over expkit | n | environment |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for workload in workloads:
        for library in libraries:
            if found := library.ratios.get(workload):
                ahead = over_expkit(library, libraries, workload) or "not measured"
                lines.append(f"| {workload} | {library.name} | {interval(found)} | {ahead} | {len(found)} | "
                             f"{library.packages}; {library.size} |")  # fmt: skip
    lines += [f"\n{library.name} could not be measured: {library.trouble}" for library in libraries if library.trouble]
    return "\n".join(lines) + "\n"


def torch_version() -> str:
    """That of this environment."""
    return version("torch")


def processor() -> str:
    """What the machine calls its processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "processor unknown")


def say(line: str) -> None:
    """Progress, at once."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["mlp64", "mlp784", "conv32"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--envs", type=Path, default=ROOT / ".peers")
    parser.add_argument("--only", default=",".join(["bare", "expkit", *INSTALLS]))
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    libraries = [prepare(name, given.envs) for name in given.only.split(",")]
    path = given.table or given.envs / "peers.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    for workload in given.workloads:
        for number in range(given.rounds):
            measure_round(libraries, workload, number)
            path.write_text(table(libraries, given.workloads))
    print(table(libraries, given.workloads), end="", flush=True)
    say(f"written to {path}")
    ahead = [over_expkit(lib, libraries, w) for lib in libraries if lib.name in INSTALLS for w in given.workloads]
    sys.exit(any(one is not None and one.high < 1 for one in ahead))


if __name__ == "__main__":
    main()
