"""Chaos: sweeps that are killed, disturbed and cut off at any moment end as if nothing had happened.

The moments are random; EXPKIT_CHAOS_SEED repeats them, as far as a scheduler lets one. 100 kills in `make soak`.
"""

from __future__ import annotations

import json
import os
import random
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from expkit.store.query import connect
from tests.launch.chaos import VICTIMS, Driver, Nursery, command
from tests.launch.lab import Lab, until

SEED = int(os.environ.get("EXPKIT_CHAOS_SEED") or random.SystemRandom().randrange(10**6))
SAVED = "{max_duration: 16ba, eval_interval: 8ba, checkpoint: {every: 5ba, keep: last}}"
SERIES = "SELECT id, replicate, rank, name, batch, epoch, iteration, sample, token, value FROM metrics ORDER BY ALL"
ASKED = "SELECT status, count(*) AS n, max(m.value) AS most FROM trials LEFT JOIN metrics m USING (id) GROUP BY ALL"
Results = tuple[list[tuple[object, ...]], dict[str, object]]
Start = Callable[..., Driver]


def lab_in(folder: Path, seeds: int = 3) -> Lab:
    """Four trials a seed, a fifth of a second each, which go on from their checkpoints."""
    lab = Lab(folder, pause_s=0.01)
    recipe = folder / "recipes" / "tiny.yaml"
    recipe.write_text(recipe.read_text().replace("{max_duration: 8ba, eval_interval: 4ba}", SAVED))
    lab.sweep("chaos", "{ema: {half_life: 4ba}, label_smoothing: {}}, design: add_one_in", seeds=seeds, timing="shared")
    return lab


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@dataclass(frozen=True)
class Calm:
    """The sweep as it is where nobody disturbs it."""

    results: Results
    queries: list[tuple[int, str]]
    """Exit code and stderr of each query that was asked while it ran."""

    def of(self, lab: Lab) -> Results:
        """What a lab of fewer seeds must have."""
        mine = {row.id for row in lab.store.read_plan("chaos")}
        series, ends = self.results
        return [row for row in series if row[0] in mine], {k: v for k, v in ends.items() if k.split()[0] in mine}


@pytest.fixture(scope="module")
def calm(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    lab = lab_in(tmp_path_factory.mktemp("calm"))
    driver = nursery.start(lab, "sweep", "chaos", "--jobs", "8")
    until(lambda: lab.runs.exists())
    queries = []
    while driver.running:
        asked = lab.call("query", ASKED)
        queries.append((asked.returncode, asked.stderr))
    assert driver.end() == 0, driver.said()
    return Calm(results(lab), queries)


def test_user_report_50_queries_beside_a_sweep_of_eight_jobs_disturb_nobody(calm: Calm) -> None:
    assert len(calm.queries) > 3 and set(calm.queries) <= {(0, ""), (0, "no rows\n")}


def results(lab: Lab) -> Results:
    """All series and the ends of all replicates, values to the bit, clocks left out; each point once."""
    with connect(lab.runs) as con:
        rows = con.rows(SERIES)
        assert con.set_aside == [], con.set_aside
    series = [(*list(row.values())[:-1], struct.pack("d", row["value"])) for row in rows]
    assert len({row[:5] for row in series}) == len(series), "a point is there twice"
    ends = {}
    for row in lab.store.read_plan("chaos"):
        status = lab.store.read_status(row.id, row.replicate)
        assert status is not None and status.state == "complete", (row, status)
        ends[f"{row.id} r{row.replicate}"] = (row.arm, row.role, status.final, status.effective)
    return series, ends


def complete(lab: Lab) -> dict[Path, bytes]:
    """The statuses of all that is complete, and what attempts there are beside: none of it ever changes."""
    statuses = {path: path.read_bytes() for path in lab.runs.glob("trials/*/r*/status.json")}
    return {
        path: content + b" ".join(sorted(os.fsencode(one.name) for one in (path.parent / "attempts").iterdir()))
        for path, content in statuses.items()
        if b'"state": "complete"' in content
    }


def left(lab: Lab) -> list[str]:
    """Files in the runs folder that no record is meant to be: temporary ones, half of a checkpoint."""
    return [str(p.relative_to(lab.runs)) for p in lab.runs.rglob("*") if p.name.startswith(".")]


def until_whole(lab: Lab, start: Start, rng: random.Random, kills: int, moment_s: float) -> int:
    """Call the sweep until it is whole, and kill what there is of it meanwhile; how many kills found somebody."""
    done, known = 0, {}
    for _ in range(kills + 20):
        driver = start(lab, "sweep", "chaos", "--jobs", "2", "--retry", "failed")
        while done < kills and driver.running:
            time.sleep(rng.uniform(0, moment_s))
            done += driver.kill(rng.choice((*VICTIMS, "trial", "tree", "tree")), rng)
        code = driver.end()
        assert lab.until_gone() == [], driver.said()
        now = complete(lab)
        assert known.items() <= now.items(), f"{known.keys() - now.keys()} was complete already: {driver.said()}"
        known = now
        assert code in (0, 1, 3, -9), driver.said()
        if code == 0:
            return done
    raise AssertionError(f"not whole after {kills + 20} calls: {driver.said()}")


@pytest.mark.parametrize(
    ("kills", "start", "moment_s"),
    [
        pytest.param(10, None, 0.5, id="10"),
        pytest.param(100, command, 3.0, id="100", marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)
def test_killed_at_random_moments_a_sweep_ends_as_if_nothing_had_happened(
    kills: int, start: Start | None, moment_s: float, nursery: Nursery, calm: Calm, tmp_path: Path
) -> None:
    print(f"EXPKIT_CHAOS_SEED={SEED}")
    rng, done, number = random.Random(SEED), 0, 0
    while done < kills:
        number += 1
        lab = lab_in(tmp_path / str(number))
        done += until_whole(lab, start or nursery.start, rng, kills - done, moment_s)
        assert results(lab) == calm.results
        assert left(lab) == []
    print(f"{done} kills over {number} sweeps")


def drivers_of(lab: Lab) -> list[str]:
    """Which driver began each attempt, of all replicates."""
    records = (json.loads(path.read_text()) for path in lab.runs.glob("trials/*/r*/attempts/*/attempt.json"))
    return [record["driver"] for record in records]


@pytest.mark.parametrize("hosts", [[], ["here", "there"]])
def test_user_report_43_of_two_drivers_one_is_killed_and_the_other_finishes(
    hosts: list[str], nursery: Nursery, calm: Calm, tmp_path: Path
) -> None:
    """On two hosts neither sees the processes of the other, and both have clocks that go back and forth by an hour."""
    lab = lab_in(tmp_path, seeds=2)
    odd = [{"host": host, "jumps_s": 3600.0, "lost_s": 3.0} for host in hosts] or [{}, {}]
    one, two = (nursery.start(lab, "sweep", "chaos", **oddities) for oddities in odd)
    until(lambda: len(set(drivers_of(lab))) == 2 and one.victims("trial"))
    one.kill("tree")
    assert two.end() == 0, two.said()
    assert results(lab) == calm.of(lab)
    assert (lab.until_gone(), left(lab)) == ([], [])
    begun = len(drivers_of(lab))
    assert begun in (8, 9), f"{begun} attempts at 8 replicates, and at most one was cut"
