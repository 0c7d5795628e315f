"""The command line in this process, on a synthetic store in which something has gone wrong in every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from expkit.cli import app
from expkit.errors import ExpkitError
from tests.store.synthetic import Cell, Method, Synthetic, make_store


def troubled(cell: Cell) -> Cell:
    """Seed 18: ema failed; 19: ema lost, the repeat timed badly; 20: all diverged; 21: ema was not started."""
    match cell.arm, cell.seed, cell.replicate:
        case "ema", 18, _:
            message = "ValueError: the third batch is unlucky\n  File own.py, line 3\n    raise\x1b[31m ValueError"
            return replace(cell, state="failed", cause="exception", message=message)
        case "ema", 19, _:
            return replace(cell, state="lost")
        case _, 19, 1:
            return replace(cell, timing_valid=False, timing_reasons=("contention",))
        case _, 20, _:
            return replace(cell, state="diverged")
        case "ema", 21, _:
            return replace(cell, state="pending")
    return cell


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    """Baseline and ema, five seeds; nobody may write to it."""
    root = tmp_path_factory.mktemp("troubled") / "runs"
    return make_store(root, {"ema": Method(effective=False)}, seeds=range(17, 22), change=troubled)


Expkit = Callable[..., tuple[int, str, str]]


@pytest.fixture
def expkit(made: Synthetic, monkeypatch: pytest.MonkeyPatch) -> Expkit:
    """`expkit("show", id)` -> exit code, stdout, stderr."""
    monkeypatch.setenv("EXPKIT_RUNS", str(made.root))

    def call(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, arguments)
        if isinstance(done.exception, ExpkitError):
            return done.exception.exit_code, done.stdout, done.stderr + str(done.exception)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    return call


def as_json(done: tuple[int, str, str]) -> Any:
    """The document on stdout, strictly."""
    assert done[0] == 0, done

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(done[1], parse_constant=refuse)


RECIPES = Path(__file__).parents[2] / "recipes"
