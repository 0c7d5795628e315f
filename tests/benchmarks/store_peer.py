"""One library's store of metrics: written, then asked for the first crossing of every trial; JSON on the last line.

    python tests/benchmarks/store_peer.py expkit|tensorboard|mlflow|pandas FOLDER TRIALS STEPS

Every trial has two metrics a step, as the same numbers for all. In an environment that has nothing but that library.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TARGET = 0.8
Point = tuple[int, float, float, float]
"""(step, seconds, eval/accuracy, train/loss)."""


def points(trial: int, steps: int) -> Iterator[Point]:
    """A curve that crosses the target at about a third."""
    rng = random.Random(trial)
    for step in range(1, steps + 1):
        height = 0.9 - 0.85 * 0.05 ** (2 * step / steps) + rng.gauss(0, 0.005)
        yield step, step * 0.01, height, 2.3 * (1 - height)


def write_expkit(folder: Path, trials: int, steps: int) -> None:
    from expkit.store.compact import compact
    from expkit.store.metrics import MetricsWriter, Stamp
    from expkit.store.records import Status
    from expkit.store.store import Store

    store = Store(folder)
    for trial in range(trials):
        attempt_dir = store.new_attempt(f"{trial:012x}", 0, "bench")
        writer = MetricsWriter(attempt_dir, f"{trial:012x}", 0, 1)
        for step, seconds, accuracy, loss in points(trial, steps):
            stamp = Stamp(step, 0, 0, step, 0, seconds, seconds, seconds)
            writer.log_many({"eval/accuracy": accuracy, "train/loss": loss}, stamp)
        writer.close()
        store.write_status(f"{trial:012x}", 0, Status(state="complete", attempt=1))
    compact(store)


def ask_expkit(folder: Path) -> int:
    from expkit.store.query import connect

    with connect(folder) as con:
        sql = "SELECT count(*) AS n FROM time_to_target('eval/accuracy', $target, rule := 'first') WHERE hit"
        return int(con.rows(sql, {"target": TARGET})[0]["n"])


def write_tensorboard(folder: Path, trials: int, steps: int) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    for trial in range(trials):
        writer = EventFileWriter(str(folder / f"{trial:012x}"))
        for step, seconds, accuracy, loss in points(trial, steps):
            for tag, value in (("eval/accuracy", accuracy), ("train/loss", loss)):
                summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
                writer.add_event(Event(wall_time=seconds, step=step, summary=summary))
        writer.close()


def ask_tensorboard(folder: Path) -> int:
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

    hits = 0
    for run in folder.iterdir():
        events = EventAccumulator(str(run), size_guidance={SCALARS: 0})
        events.Reload()
        hits += any(event.value >= TARGET for event in events.Scalars("eval/accuracy"))
    return hits


def write_mlflow(folder: Path, trials: int, steps: int) -> None:
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.create_experiment("bench", artifact_location=str(folder / "artifacts"))
    for trial in range(trials):
        run = client.create_run(experiment)
        metrics = [
            Metric(name, value, int(seconds * 1000), step)
            for step, seconds, accuracy, loss in points(trial, steps)
            for name, value in (("eval/accuracy", accuracy), ("train/loss", loss))
        ]
        for start in range(0, len(metrics), 1000):  # what one request may hold
            client.log_batch(run.info.run_id, metrics[start : start + 1000])
        client.set_terminated(run.info.run_id)


def ask_mlflow(folder: Path) -> int:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("bench")
    hits, token = 0, None
    while True:
        page = client.search_runs([experiment.experiment_id], max_results=1000, page_token=token)
        for run in page:
            hits += any(m.value >= TARGET for m in client.get_metric_history(run.info.run_id, "eval/accuracy"))
        token = page.token
        if not token:
            return hits


def write_pandas(folder: Path, trials: int, steps: int) -> None:
    for trial in range(trials):
        with (folder / f"{trial:012x}.csv").open("w") as out:
            out.write("id,batch,train_s,name,value\n")
            for step, seconds, accuracy, loss in points(trial, steps):
                out.write(f"{trial:012x},{step},{seconds},eval/accuracy,{accuracy}\n")
                out.write(f"{trial:012x},{step},{seconds},train/loss,{loss}\n")


def ask_pandas(folder: Path) -> int:
    import pandas as pd

    rows = pd.concat(pd.read_csv(file, dtype={"id": str}) for file in sorted(folder.glob("*.csv")))
    there = rows[(rows["name"] == "eval/accuracy") & (rows["value"] >= TARGET)]
    return len(there.groupby("id")["train_s"].min())


def main() -> None:
    library, folder, trials, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    write: Callable[[Path, int, int], None] = globals()[f"write_{library}"]
    ask: Callable[[Path], int] = globals()[f"ask_{library}"]
    write_s, _ = _timed(lambda: write(folder, trials, steps))
    first_s, hits = _timed(lambda: ask(folder))
    again_s, _ = _timed(lambda: ask(folder))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(json.dumps({"write_s": write_s, "ask_s": min(first_s, again_s), "bytes": size, "hits": hits}))


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    answer = call()
    return time.perf_counter() - started, answer


if __name__ == "__main__":
    main()
