"""Apart: one question to a process of its own, in the environment of trials; it ends with the one that asked.

`python -P -m MODULE order.json answer.json`, both JSON. What it prints is shown only where it has no answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from expkit.launch import process
from expkit.launch.workers import worker_env
from expkit.store.atomic import write_json


class Unanswered(Exception):
    """The process ended without an answer; the text is the last line that it wrote."""


def ask(module: str, order: Mapping[str, Any], threads: int, *, timeout_s: float | None = None) -> Any:
    """What `module` answers to an order; Unanswered where it fails, subprocess.TimeoutExpired where it takes longer."""
    with tempfile.TemporaryDirectory(prefix="expkit-apart-") as folder:
        asked, answered = Path(folder, "order.json"), Path(folder, "answer.json")
        write_json(asked, order)
        command = [sys.executable, "-P", "-m", module, str(asked), str(answered)]
        env = worker_env(os.environ, threads)
        ended = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout_s,
                               check=False)  # fmt: skip
        if ended.returncode or not answered.exists():
            raise Unanswered((ended.stdout.strip().splitlines() or ["it wrote nothing"])[-1])
        return json.loads(answered.read_text(encoding="utf-8"))


def answer(reply: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """The other side: read the order that the command line names, and write what `reply` makes of it."""
    process.die_with_parent()
    asked, answered = map(Path, sys.argv[1:])
    write_json(answered, reply(json.loads(asked.read_text(encoding="utf-8"))))
