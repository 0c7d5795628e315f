"""Killed at a random point of a random event and resumed, training ends with the bits of one that ran through.

A sample of the kills runs always (its seed is in every message; EXPKIT_TEST_SEED=... repeats it), a hundred in the
soak.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit import plugins
from expkit.trainer.algorithm import name_of
from tests.trainer.kill_anywhere import RECIPES, Order, Server, settings_of
from tests.trainer.resuming import assert_equal

MATRIX = list(itertools.product(RECIPES, (0, 2), (1, 4)))
"""Recipe, loader workers, microbatches: 40."""
KILLS = 100


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("killed")


@functools.cache
def run_through(server: Server, order: Order) -> dict[str, Any]:
    return trained(server, order)


def trained(server: Server, order: Order) -> dict[str, Any]:
    code, folder = server.train(order), Path(order.folder)
    assert code == 0, (folder / "output.txt").read_text()
    return torch.load(folder / "result.pt", weights_only=False)  # type: ignore[no-any-return]


def batches(folder: str) -> list[tuple[int, str]]:
    lines = (Path(folder) / "batches.txt").read_text().splitlines()
    return [(int(number), digest) for number, digest in map(str.split, lines)]


def kill_and_resume(server: Server, place: Path, number: int, seed: int) -> None:
    """One training that runs through, and one that is killed once to three times."""
    rng = random.Random(f"{seed} {number}")
    recipe, workers, microbatches = MATRIX[number % len(MATRIX)] if seed == 0 else rng.choice(MATRIX)
    name = f"{recipe}-{workers}-{microbatches}"
    whole = Order(recipe, workers, microbatches, str(place / f"{name}-whole"))
    expected = run_through(server, whole)
    order = replace(whole, folder=str(place / f"{name}-{seed}-{number}"))
    told = f"kill {number} of seed {seed}: {name}"
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        words, ended = kill(server, order, expected["counts"], rng)
        told += words
        if ended:
            break
    print(told)
    result = trained(server, order)
    if "batch_end" not in result["counts"]:  # it was killed after its last checkpoint: there is nothing to go on with
        result["parts"]["rng"] = expected["parts"]["rng"]
    assert_equal(result["parts"], expected["parts"], told)
    assert result["rows"] == [row for row in expected["rows"] if row[1] > result["begun"]], told
    assert set(batches(order.folder)) == set(batches(whole.folder)), told


def kill(server: Server, order: Order, counts: dict[str, int], rng: random.Random) -> tuple[str, bool]:
    """Start or go on, to be killed within 4 ms of an event, if it still comes; in words, and whether training ended."""
    event = rng.choice(sorted(counts))
    count, delay_s = rng.randint(1, counts[event]), rng.choice([0.0, rng.uniform(0, 0.004)])
    code = server.train(replace(order, event=event, count=count, delay_s=delay_s))
    assert code in (0, -9), (Path(order.folder) / "output.txt").read_text()
    return f", {delay_s * 1000:.2f} ms after {event} {count}" + (" (had ended)" if code == 0 else ""), code == 0


@pytest.mark.parametrize("number", range(4))
def test_killed_anywhere_it_ends_as_if_it_had_run_through(server: Server, place: Path, number: int) -> None:
    seed = int(os.environ.get("EXPKIT_TEST_SEED") or random.SystemRandom().randrange(1, 10**6))
    kill_and_resume(server, place, number, seed)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(KILLS))
def test_a_hundred_kills_over_the_whole_matrix(server: Server, place: Path, number: int) -> None:
    kill_and_resume(server, place, number, 0)


def test_every_method_callback_and_optimizer_that_is_shipped_is_among_them(place: Path) -> None:
    seen: dict[str, set[str]] = {"algorithms": set(), "callbacks": set(), "optimizers": set(), "models": set()}
    for recipe in RECIPES:
        given = settings_of(Order(recipe, 0, 1, str(place / "looked at")))
        for kind in ("algorithms", "callbacks"):
            seen[kind] |= {name_of(plugin) for plugin in given.get(kind, ())}
        seen["optimizers"].add(name_of(given["optimizers"]))
        seen["models"].add(name_of(given["model"]))
    for kind, names in seen.items():
        assert names == set(plugins.names(kind)), kind
