"""A store of any size, written by the store's own writer without training anything; writing goes on where it ended.

    python tests/benchmarks/big_store.py FOLDER [--trials 10000] [--steps 1000] [--parts 3]

One sweep `big`: the baseline, its repeat and the sets of five methods, in blocks of one seed. Every step logs ten
metrics: 10,000 trials of 1,000 steps are 100 M rows. About 20 ms a trial and 25 bytes a row, compacted.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.owner import Owner
from expkit.store.records import CLOCKS, PlanRow, Status, TrialRecord
from expkit.store.store import Store

METHODS = ("blurpool", "colout", "ema", "label_smoothing", "mixup")
SETS = [on for k in range(len(METHODS) + 1) for on in itertools.combinations(METHODS, k)]
METRICS = ("eval/accuracy", "eval/cross_entropy", "train/loss", "lr", "grad_norm", "samples_per_s", "memory_bytes",
           "train/accuracy", "weight_norm", "step_s")  # fmt: skip
SETTING = {"host": "bench", "device": "cpu", "nproc": 1, "threads": 1, "parallel": "ddp", "torch": "2.13.0"}
UTC = "2026-01-02T03:04:05.000Z"


def planned(trials: int) -> Iterator[tuple[PlanRow, TrialRecord]]:
    """The first replicates of the sweep, in run order."""
    for position in range(trials):
        block, place = divmod(position, len(SETS) + 1)
        on = SETS[max(0, place - 1)]  # the baseline comes twice
        arm = "+".join(on) or "none"
        config = {"model": {"mlp": {"width": 8}}, "algorithms": {name: {} for name in on}, "seed": block}
        digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
        record = TrialRecord(
            digest, arm, [{"name": m, "label": m, "params": {}} for m in on], len(on), block, config, config
        )
        role = "arm" if on else "repeat" if place else "baseline"
        yield PlanRow(record.id12, int(place == 1), arm, role, block, position), record


def make(root: Path, trials: int, steps: int, parts: int | None = None) -> int:
    """Write what is missing; how many trials were. `parts`: so many files each, else as the writer closes them."""
    store = Store(root)
    written = 0
    rows = []
    for row, record in planned(trials):
        rows.append(row)
        if not store.layout.status(row.id, row.replicate).exists():
            _write(store, row, record, steps, parts)
            written += 1
    store.write_plan("big", "version: 1\nname: big\n", rows)
    store.write_settings("big", {"metric": METRICS[0], "mode": "max", "baseline_arm": "none", "clock": "train_s"})
    target = {"metric": METRICS[0], "mode": "max", "value": 0.8, "rule": "lowest_final", "utc": UTC, "hash": "t" * 12}
    store.write_target("big", target)
    return written


def _write(store: Store, row: PlanRow, record: TrialRecord, steps: int, parts: int | None) -> None:
    rng = np.random.default_rng(row.position)
    step_s = 0.01 * math.prod(0.9 if m == "blurpool" else 1.02 for m in row.arm.split("+")) * rng.normal(1, 0.01)
    store.add_trial(record, "name: big\n")
    attempt_dir = store.new_attempt(row.id, row.replicate, "bench")
    writer = MetricsWriter(attempt_dir, row.id, row.replicate, 1)
    progress = np.arange(1, steps + 1) / steps
    values = rng.normal(0, 0.01, (steps, len(METRICS)))
    values[:, 0] += 0.85 - 0.75 * np.exp(-6 * progress)
    for step, at in enumerate(values.tolist(), 1):
        seconds = step * step_s
        stamp = Stamp(step, step // 100, 0, step * 128, 0, seconds, seconds / 1.01, seconds * 1.2)
        writer.log_many(dict(zip(METRICS, at, strict=True)), stamp)
        if parts is not None and step % math.ceil(steps / parts) == 0:
            writer.flush()
    writer.flush()  # not close: nothing here has to survive a power cut
    clocks = dict.fromkeys(CLOCKS, 0.0) | {"train_s": steps * step_s, "cpu_s": steps * step_s / 1.01}
    setting_hash = hashlib.sha256(json.dumps(SETTING).encode()).hexdigest()[:12]
    status = Status(
        state="complete", attempt=1, created_utc=UTC, started_utc=UTC, ended_utc=UTC, driver="bench", setting=SETTING,
        setting_hash=setting_hash, clocks=clocks, timing_valid=True, code_sha="c0de", dirty=False,
        effective=dict.fromkeys([m for m in row.arm.split("+") if m != "none"], True), reference_s=[0.3, 0.3],
    )  # fmt: skip
    store.write_status(row.id, row.replicate, status.owned_by(Owner.this_process()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--parts", type=int, help="files of each trial, else as the writer closes them")
    given = parser.parse_args()
    written = make(given.folder, given.trials, given.steps, given.parts)
    print(f"{written} trials written, {given.trials * given.steps * len(METRICS):,} rows in all", file=sys.stderr)


if __name__ == "__main__":
    main()
