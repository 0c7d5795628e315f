"""A believable sweep's store, written through the real Store and MetricsWriter without training anything.

`make_store(tmp_path, {"ema": Method(time=1.02, quality=0.01)}, seeds=range(17, 22))` has 2^k arms x seeds and an A/A
repeat of the baseline in each block. The numbers come from `seed` alone: same arguments, same store.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from expkit.store.events import EventLog
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.owner import Owner
from expkit.store.records import CLOCKS, PlanRow, Status, TrialRecord
from expkit.store.store import Store

UTC = "2026-01-02T03:04:05.000Z"
SETTING = {"host": "bench1", "device": "cpu", "nproc": 1, "threads": 1, "parallel": "ddp", "torch": "2.13.0",
           "microbatch": None}  # fmt: skip


@dataclass(frozen=True)
class Method:
    """What a method does to a run."""

    time: float = 1.0
    """Factor on the seconds: 0.8 is a fifth less."""
    quality: float = 0.0
    """Added to the last accuracy."""
    effective: bool = True


@dataclass(frozen=True)
class Cell:
    """One replicate of the synthetic sweep; `change` of make_store may return another."""

    arm: str
    methods: tuple[str, ...]
    seed: int
    replicate: int
    role: str
    state: str = "complete"
    """Any of STATES; a pending one is planned and has no folder, a lost one was running and its process is gone."""
    cause: str | None = None
    message: str | None = None
    seconds: float = 10.0
    accuracy: float = 0.85
    timing_valid: bool = True
    timing_reasons: tuple[str, ...] = ()
    setting: Mapping[str, Any] = field(default_factory=lambda: dict(SETTING))
    driver: str = "driver-1"
    wall_per_cpu: float = 1.01
    started_utc: str = UTC
    dirty: bool | None = False
    code_sha: str = "c0de" * 3
    phases: Mapping[str, int] = field(default_factory=dict)
    reference_s: tuple[float, ...] = (0.3, 0.301)
    """The reference workload before and after."""


@dataclass(frozen=True)
class Synthetic:
    """What was written."""

    root: Path
    sweep: str
    store: Store
    cells: tuple[Cell, ...]
    ids: Mapping[tuple[str, int], str]
    """(arm, seed) -> 12 hex."""


def make_store(
    root: Path,
    methods: Mapping[str, Method] | None = None,
    *,
    seeds: Iterable[int] = range(17, 22),
    sweep: str = "ablate",
    repeats: bool = True,
    seconds: float = 10.0,
    accuracy: float = 0.85,
    time_noise: float = 0.01,
    quality_noise: float = 0.002,
    evaluations: int = 16,
    num_batches: int = 128,
    target: float | None = 0.8,
    metric: str = "eval/accuracy",
    change: Any = lambda cell: cell,
    seed: int = 0,
) -> Synthetic:
    """Write the store. `change(cell) -> Cell` may alter any cell before it is written: its state, seconds, setting.

    Noise is a standard deviation: of the log of the seconds, and of the last accuracy; a part of the latter belongs to
    the seed, so arms of one seed are pairs.
    """
    chosen = {"label_smoothing": Method(0.99, 0.004), "progressive_resizing": Method(0.8, -0.01), "ema": Method(1.02)}
    methods = chosen if methods is None else methods
    rng = np.random.default_rng(seed)
    store = Store(root)
    cells, rows, ids = [], [], {}
    for block, block_seed in enumerate(seeds):
        shift = rng.normal(0, quality_noise)
        planned = list(_block(methods, block_seed, repeats))
        for cell in planned:
            on = [methods[name] for name in cell.methods]
            cell = replace(
                cell,
                seconds=seconds * math.prod(m.time for m in on) * math.exp(rng.normal(0, time_noise)),
                accuracy=accuracy + sum(m.quality for m in on) + shift + rng.normal(0, quality_noise / 2),
            )
            cell = change(cell)
            record = _record(cell, methods, num_batches)
            ids[cell.arm, cell.seed] = record.id12
            _write(store, cell, record, methods, evaluations, num_batches, metric, rng)
            cells.append(cell)
            rows.append(PlanRow(record.id12, cell.replicate, cell.arm, cell.role, block, len(rows), "t" * 12))
    store.write_plan(sweep, f"version: 1\nname: {sweep}\n", rows, file=f"sweeps/{sweep}.yaml")
    store.write_settings(sweep, {
        "clock": "train_s", "ci": 0.95, "non_inferiority": 0.005, "metric": metric, "mode": "max",
        "baseline_arm": "none", "target_rule": "lowest_final", "seeds": sorted({c.seed for c in cells}),
        "candidates": sorted(methods),
    })  # fmt: skip
    if target is not None:
        store.write_target(sweep, {
            "metric": metric, "mode": "max", "value": target, "rule": "lowest_final", "seeds": [1, 2, 3, 4, 5],
            "finals": [target + 0.001 * i for i in range(5)], "utc": UTC, "hash": "t" * 12,
            "ladder": [[0.9, target - 0.03], [0.95, target - 0.015], [0.99, target - 0.003]],
        })  # fmt: skip
    return Synthetic(root, sweep, store, tuple(cells), ids)


def _block(methods: Mapping[str, Method], seed: int, repeats: bool) -> Iterable[Cell]:
    names = sorted(methods)
    for on in itertools.chain.from_iterable(itertools.combinations(names, k) for k in range(len(names) + 1)):
        yield Cell("+".join(on) or "none", on, seed, 0, "arm" if on else "baseline")
        if not on and repeats:
            yield Cell("none", on, seed, 1, "repeat")


def _record(cell: Cell, methods: Mapping[str, Method], num_batches: int) -> TrialRecord:
    config = {
        "name": "synthetic",
        "model": {"mlp": {"width": 8}},
        "optimizer": {"sgd": {"lr": 0.1, "betas": [0.9, 0.99], "nesterov": True, "clip": None}},
        "algorithms": {name: {"strength": 0.5} for name in cell.methods},
        "trainer": {"max_duration": f"{num_batches}ba"},
        "seed": cell.seed,
    }
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    algorithms = [{"name": name, "label": name, "params": {"strength": 0.5}} for name in cell.methods]
    return TrialRecord(digest, cell.arm, algorithms, len(cell.methods), cell.seed, config, config)


def _write(
    store: Store,
    cell: Cell,
    record: TrialRecord,
    methods: Mapping[str, Method],
    evaluations: int,
    num_batches: int,
    metric: str,
    rng: np.random.Generator,
) -> None:
    if cell.state == "pending":
        return
    store.add_trial(record, f"name: synthetic\nseed: {cell.seed}\n")
    claim = store.claim(record.id12, cell.replicate, cell.driver)
    assert claim is not None
    attempt_dir = store.new_attempt(record.id12, cell.replicate, cell.driver, exclusive=True)
    share = 1.0 if cell.state in ("complete", "diverged", "pruned") else 0.5
    final = _series(cell, record, attempt_dir, share, evaluations, num_batches, metric, rng)
    seconds = cell.seconds * share
    status = Status(
        state="running" if cell.state == "lost" else cell.state,
        attempt=1,
        cause=cell.cause,
        message=cell.message,
        created_utc=UTC,
        started_utc=cell.started_utc,
        ended_utc=UTC if share == 1.0 or cell.state == "failed" else None,
        heartbeat_utc=UTC,
        driver=cell.driver,
        setting=dict(cell.setting),
        setting_hash=hashlib.sha256(json.dumps(dict(cell.setting), sort_keys=True).encode()).hexdigest()[:12],
        clocks=dict.fromkeys(CLOCKS, 0.0)
        | {"setup_s": 0.4, "train_s": seconds, "cpu_s": seconds / cell.wall_per_cpu, "wall_s": seconds * 1.2,
           "forward_s": seconds * 0.4, "backward_s": seconds * 0.5, "eval_s": seconds * 0.15},
        timing_valid=cell.timing_valid,
        timing_reasons=list(cell.timing_reasons),
        effective={name: methods[name].effective for name in cell.methods},
        reference_s=list(cell.reference_s),
        phases=dict(cell.phases),
        code_sha=cell.code_sha,
        dirty=cell.dirty,
        final=final,
    )  # fmt: skip
    owner = Owner.this_process()
    gone = replace(owner, process_start=1.0)  # the same pid, another process: dead
    store.write_status(record.id12, cell.replicate, status.owned_by(gone if cell.state == "lost" else owner))
    claim.release()


def _series(
    cell: Cell,
    record: TrialRecord,
    attempt_dir: Path,
    share: float,
    evaluations: int,
    num_batches: int,
    metric: str,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Train loss and learning rate every eighth batch, evaluations evenly; a diverged run ends in NaN."""
    writer = MetricsWriter(attempt_dir, record.id12, cell.replicate, 1)
    events = EventLog(attempt_dir)
    events.write("start")
    last: dict[str, float] = {}
    for batch in range(1, int(num_batches * share) + 1):
        progress = batch / num_batches
        seconds = cell.seconds * progress
        stamp = Stamp(batch, 0, 0, batch * 128, 0, seconds, seconds / cell.wall_per_cpu, seconds * 1.2)
        gone = cell.state == "diverged" and progress > 0.5
        height = cell.accuracy - (cell.accuracy - 0.1) * math.exp(-6 * progress)
        values: dict[str, float] = {}
        if batch % 8 == 0:
            values |= {"train/loss": math.nan if gone else 2.3 * (1 - height) + 0.1, "lr": 0.1 * (1 - progress)}
        if batch % max(1, num_batches // evaluations) == 0:
            measured = height if progress == 1 else height + rng.normal(0, 0.0005)
            values |= {metric: math.nan if gone else measured}
            values |= {"eval/cross_entropy": math.nan if gone else 2.0 * (1 - measured)}
        if values:
            writer.log_many(values, stamp)
            last |= values
    events.write("end", batch, state=cell.state)
    events.close()
    writer.close()
    return last
