from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from expkit.errors import UsageError
from expkit.loggers.console import Console
from expkit.loggers.memory import Memory
from expkit.loggers.parquet import Parquet
from expkit.store.metrics import SCHEMA
from expkit.testing.training import train
from expkit.trainer.callback import Callback
from expkit.trainer.trainer import Trainer


def test_memory_gives_columns_of_equal_length_with_their_moments() -> None:
    memory = Memory()
    done = train(loggers=[memory], num_batches=5)
    loss = memory.get_timeseries("train/loss")
    assert loss["value"] == done.losses
    assert (loss["batch"], loss["sample"], loss["epoch"]) == ([1, 2, 3, 4, 5], [8, 16, 24, 32, 40], [0, 0, 0, 0, 1])
    assert loss["train_s"] == sorted(loss["train_s"]) and loss["train_s"][0] > 0
    assert memory.get_timeseries("eval/accuracy")["batch"] == [2, 4, 5]
    with pytest.raises(UsageError, match="unknown series 'train/los'; did you mean 'train/loss'"):
        memory.get_timeseries("train/los")


def test_parquet_holds_what_memory_holds(tmp_path: Path) -> None:
    memory = Memory()
    train(loggers=[memory, Parquet(tmp_path, "0123456789ab", replicate=1, attempt=2)])
    files = sorted(tmp_path.glob("metrics-*.parquet"))
    assert files
    table = pq.read_table(files[0])
    assert table.schema.equals(SCHEMA)
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    for name in memory.series:
        mine = [row for row in rows if row["name"] == name]
        for column, values in memory.get_timeseries(name).items():
            assert [row[column] for row in mine] == values, (name, column)
    assert {(row["id"], row["replicate"], row["attempt"], row["rank"]) for row in rows} == {("0123456789ab", 1, 2, 0)}


def test_parquet_that_logged_nothing_writes_nothing(tmp_path: Path) -> None:
    Parquet(tmp_path, "0123456789ab").close()
    assert list(tmp_path.iterdir()) == []


def test_console_writes_evaluations_and_losses_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    train(loggers=[Console(interval_s=0)], num_batches=2)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [line.split(": ")[1].split(" ")[0] for line in lines] == ["train/loss", "train/loss", "eval/accuracy"]
    assert lines[0].startswith("epoch 0, batch 1/2, ")


def test_console_is_quiet_between_its_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    train(loggers=[Console(interval_s=1000)], num_batches=3)
    losses = [line for line in capsys.readouterr().err.splitlines() if "train/loss" in line]
    assert len(losses) == 1


def test_console_writes_events_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    class Says(Callback):
        def fit_start(self, state: Any, logger: Any) -> None:
            logger.log_event("replay", {"batches": 3, "of": 1000, "reason": "a stream cannot skip"})

    train(loggers=[Console()], callbacks=[dataclass(Says)()], num_batches=1)
    said = capsys.readouterr().err.splitlines()[0]
    assert said == "epoch 0, batch 0/1, 0.0 s: replay: batches 3, of 1000, reason a stream cannot skip"


def test_parquet_keeps_events_beside_its_numbers(tmp_path: Path) -> None:
    class Fails(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if len(x) > 4:
                raise MemoryError
            return super().forward(x)

    data = [(torch.zeros(8, 2), torch.zeros(8, dtype=torch.long))]
    model = Fails(2, 2)
    with Trainer(
        model=model, train_dataloader=data, optimizers=torch.optim.SGD(model.parameters(), lr=0.1), max_duration="1ba",
        loggers=[Parquet(tmp_path, "0123456789ab")], device="cpu", device_train_microbatch_size="auto",
    ) as trainer:  # fmt: skip
        trainer.fit()
    (event,) = map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines())
    assert (event["kind"], event["batch"], event["rank"]) == ("microbatch", 0, 0)
    assert event["payload"] == {"before": 8, "after": 4, "reason": "MemoryError"}


def test_parquet_keeps_a_copy_of_a_file_beside_the_numbers(tmp_path: Path) -> None:
    given, attempt = tmp_path / "trace.json", tmp_path / "attempt"
    given.write_text("{}")
    logger = Parquet(attempt, "0123456789ab")
    state: Any = SimpleNamespace(timestamp=SimpleNamespace(batch=3))
    logger.upload_file("profile/rank0.json", given, state)
    logger.upload_file("confusion.csv", given, state)
    given.unlink()
    assert (attempt / "artifacts" / "confusion.csv").read_text() == "{}"
    told = [json.loads(line)["payload"] for line in (attempt / "events.jsonl").read_text().splitlines()]
    assert [(one["name"], one["kind"], one["path"]) for one in told] == [
        ("profile/rank0.json", "file", "profile/rank0.json"), ("confusion.csv", "file", "artifacts/confusion.csv"),
    ]  # fmt: skip
    assert (attempt / "profile" / "rank0.json").read_text() == "{}"
