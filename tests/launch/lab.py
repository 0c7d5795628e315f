"""A laboratory for tests: a project folder with a tiny recipe, code of its own, and the command line to run it with.

A trial trains a linear model on 64 points of made-up data for a few batches; what goes wrong is a candidate's level.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import unittest.mock
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from expkit.cli import app
from expkit.errors import ExpkitError
from expkit.launch import process
from expkit.launch.workers import Workers
from expkit.store.store import Store

ROOT = Path(__file__).parents[2]
CODE = """
import os, signal, sys, time
from dataclasses import dataclass
import torch
from expkit.trainer.algorithm import Algorithm

def make_net(width=4):
    return torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Linear(width, 2))

def make_noisy_net():
    net = make_net()
    with torch.no_grad():
        net[0].weight.add_(int.from_bytes(os.urandom(1), "big") / 1000)
    return net

class Points:
    def __init__(self, seed, rank=0, world_size=1, pause_s=None, path="own.py"):
        open(os.path.join(os.path.dirname(__file__), path)).close()
        self.seed, self.pause_s, self.epoch = seed, pause_s, 0
        self.rank, self.world_size = rank, world_size
        self.batch_size, self.num_samples = 8 // world_size, 64 // world_size
    def set_epoch(self, epoch):
        self.epoch = epoch
    def __len__(self):
        return 8
    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        for batch in range(8):
            time.sleep(self.pause_s or 0)
            if "SHOW" in os.environ and self.pause_s is not None:  # not while evaluating
                print("saw", *range(8 * batch + self.rank, 8 * batch + 8, self.world_size))
            x = torch.randn(8, 8, generator=g)[self.rank :: self.world_size]
            yield x, (x.sum(1) > 0).long()

@dataclass
class Trouble(Algorithm):
    kind: str = "none"
    rank: int = -1
    number: int = 0
    def batch_start(self, state, logger):
        self.effective = True
        if state.timestamp.batch != 3 or self.rank not in (-1, state.rank):
            return
        if self.kind == "raise":
            raise ValueError("the third batch is unlucky")
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "exit":
            sys.exit(0)
        if self.kind == "hard_exit":
            os._exit(0)
        if self.kind == "memory":
            torch.empty(10**15)
        if self.kind == "disk":
            raise OSError(28, "No space left on device")
        if self.kind == "print":
            for i in range(1_000_000):
                print("line", i)
        if self.kind == "nan":
            with torch.no_grad():
                next(state.model.parameters()).fill_(float("nan"))
        if self.kind == "grandchild":
            os.system("sleep 987 & setsid sleep 986 &")
        if self.kind == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
"""
RECIPE = """
version: 1
name: tiny
model: {"py:own:make_net": {}}
data:
  train: {"py:own:Points": {pause_s: PAUSE}}
  eval: {"py:own:Points": {}}
optimizer: {sgd: {lr: 0.1}}
trainer: {max_duration: 8ba, eval_interval: 4ba}
metrics: {primary: {name: eval/accuracy, mode: max}, target: 0.6}
seed: 17
"""
SWEEP = """
version: 1
name: NAME
recipe: ../recipes/tiny.yaml
ablate: {candidates: CANDIDATES}
seeds: SEEDS
run: {timing: TIMING}
"""


class Lab:
    """A project of a user's in a folder of its own."""

    def __init__(self, folder: Path, *, pause_s: float = 0.0) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.store = Store(self.runs)
        for name in ("recipes", "sweeps", "lock"):
            (folder / name).mkdir(parents=True)
        (folder / "own.py").write_text(CODE)
        (folder / "expkit.toml").write_text('trust = ["own"]\n')
        (folder / "recipes" / "tiny.yaml").write_text(RECIPE.replace("PAUSE", str(pause_s)))

    def sweep(self, name: str, candidates: str = "{}", *, seeds: int = 1, timing: str = "exclusive") -> Path:
        """Write a sweep file."""
        text = SWEEP.replace("NAME", name).replace("CANDIDATES", candidates).replace("SEEDS", str(seeds))
        path = self.folder / "sweeps" / f"{name}.yaml"
        path.write_text(text.replace("TIMING", timing))
        return path

    @property
    def env(self) -> dict[str, str]:
        """Environment of a command: our code, its own lock."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("EXPKIT_")}
        return {**clean, "PYTHONPATH": str(ROOT), "EXPKIT_LOCK_DIR": str(self.folder / "lock"), "OMP_NUM_THREADS": "1"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `expkit ...` in the project's folder."""
        command = [sys.executable, "-m", "expkit.cli", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=pipe, stderr=pipe, text=True)

    def expkit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `expkit ...` in the project's folder to its end."""
        with self.start(*arguments) as started:
            out, err = started.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, started.returncode, out, err)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same in this process and with the fork server that all tests share: for what is not about the driver."""
        kept = unittest.mock.patch("expkit.launch.workers.Workers", lambda *_: KeptWorkers.only())
        environ = unittest.mock.patch.dict(os.environ, EXPKIT_LOCK_DIR=str(self.folder / "lock"))
        with kept, environ, contextlib.chdir(self.folder):
            done = CliRunner().invoke(app, arguments)
        error = done.exception if isinstance(done.exception, ExpkitError) else None
        if done.exception is not None and not isinstance(done.exception, ExpkitError | SystemExit):
            raise done.exception
        code = error.exit_code if error else done.exit_code
        return subprocess.CompletedProcess(arguments, code, done.stdout, done.stderr + str(error or ""))

    def signalled(self, when: Callable[[], object], numbers: Sequence[int], *arguments: str) -> tuple[int, str]:
        """`call`, with signals to this process once something holds; exit code and stderr."""
        over = threading.Event()

        def send() -> None:
            until(lambda: over.is_set() or when())
            for number in numbers:
                if not over.is_set():
                    os.kill(os.getpid(), number)
                over.wait(0.5)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            done = self.call(*arguments)
        finally:
            over.set()
            sender.join()
        return done.returncode, done.stderr

    def json(self, *arguments: str) -> Any:
        """The JSON that `expkit ... --json` prints."""
        done = self.call(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def states(self, sweep: str) -> dict[str, str]:
        """`arm r0` -> state, of the replicates of a sweep with one seed; more seeds count up in run order."""
        return {
            f"{row.arm} b{row.block} r{row.replicate}": self.store.state_of(row.id, row.replicate)
            for row in self.store.read_plan(sweep)
        }

    def processes(self) -> list[int]:
        """Ids of all processes that were started in this project's folder and still run."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                here = (folder / "cwd").readlink() == self.folder
            except OSError:
                continue
            if here and process.is_running(int(folder.name)) and int(folder.name) not in KeptWorkers.servers():
                found.append(int(folder.name))
        return found

    def until_gone(self, timeout_s: float = 5.0) -> list[int]:
        """Processes of this project that are left after the time-out; empty as soon as all have gone."""
        until(lambda: not self.processes(), timeout_s)
        return self.processes()


class KeptWorkers(Workers):
    """A fork server that outlives the executors that use it, one for all tests of a process."""

    preload = ("tests.launch.short_reference",)
    _only: KeptWorkers | None = None

    @classmethod
    def only(cls) -> KeptWorkers:
        """The one there is; ended with this process."""
        if cls._only is None:
            cls._only = cls("fork")
            atexit.register(super(KeptWorkers, cls._only).close)
        return cls._only

    @classmethod
    def servers(cls) -> list[int]:
        """The server and its guard, where there are any."""
        guard = cls._only.server.pid if cls._only and cls._only.server else None
        return [guard, *process.children(guard)] if guard else []

    def close(self) -> None:
        """End what runs; the server stays."""
        for key in list(self._pids):
            self.signal(key, 9)
        while self._pids:
            self.wait(1.0)


def until(holds: Callable[[], object], timeout_s: float = 30.0) -> None:
    """Wait until something holds, at most so long."""
    deadline = time.monotonic() + timeout_s
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
