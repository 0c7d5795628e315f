"""Callbacks where several ranks train: all end alike, none hangs, one record speaks for all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.callbacks import two_ranks

STOPPERS = {"early_in_batches": 4, "early_by_evaluation": 9, "threshold_of_an_epoch": 4, "threshold_of_a_part": 4,
            "threshold_of_an_evaluation": 3}  # fmt: skip


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    names = [
        *STOPPERS,
        "early_by_the_clock",
        "monitors",
        "train_metrics",
        "not_a_number",
    ]  # the last ends all
    codes, told = forks.ranks(two_ranks.main, folder, folder, names)
    assert codes == [0, 0], told
    return folder


def results(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("name", [*STOPPERS, "early_by_the_clock"])
def test_all_ranks_stop_after_the_same_batch_for_the_same_reason(two: Path, name: str) -> None:
    first, second = results(two, name)
    assert first["stop"] and (first["batch"], first["stop"]) == (second["batch"], second["stop"])
    assert first["batch"] == STOPPERS.get(name, first["batch"])


@pytest.mark.parametrize("name", STOPPERS)
def test_they_stop_where_one_rank_would(two: Path, name: str) -> None:
    alone = getattr(two_ranks, name)()
    assert results(two, name)[0]["batch"] == alone["batch"]


def test_a_loss_that_is_nan_on_one_rank_raises_on_all_instead_of_leaving_the_others_waiting(two: Path) -> None:
    """NaNMonitor raised on one rank and left the others hanging (D23)."""
    first, second = results(two, "not_a_number")
    assert first["error"] == second["error"] and "the loss of batch 2 (in epoch 0) is nan" in first["error"]
    assert first["batch"] == second["batch"] == 1


def test_no_series_has_a_rank_in_its_name_and_the_set_of_names_never_moves(two: Path) -> None:
    """The names of system metrics held the rank that was at the extreme, so that every series was in pieces (D23)."""
    values = results(two, "monitors")[0]["values"]
    assert not [name for name in values if re.search(r"rank|_[0-9]$", name)]
    assert {len(values[name]) for name in values if name.startswith(("cpu_", "min_", "max_", "memory/"))} == {4}


def test_the_record_speaks_for_all_ranks(two: Path) -> None:
    values = results(two, "monitors")[0]["values"]
    for name in ("memory/peak_rss_mem", "memory/current_rss_mem"):
        for own, mean, least, most in zip(*(values[name + end] for end in ("", "_avg", "_min", "_max")), strict=True):
            assert least <= own <= most and least <= mean <= most
    for name in ("cpu_percentage", "cpu_memory_used", "network_bytes_sent"):
        for mean, least, most in zip(values[name], values[f"min_{name}"], values[f"max_{name}"], strict=True):
            assert least <= mean <= most


def test_operations_of_all_ranks_are_added_up_and_each_device_has_its_share(two: Path) -> None:
    first, second = results(two, "monitors")
    assert first["flops"] == second["flops"] == 1000 * 21 * 3
    pairs = zip(*(first["values"][f"throughput/{of}flops_per_sec"] for of in ("", "device/")), strict=True)
    assert all(device == pytest.approx(total / 2) for total, device in pairs)


def test_gradients_are_those_of_the_whole_batch(two: Path) -> None:
    alone = two_ranks.monitors()["values"]["l2_norm/grad/global"]
    assert results(two, "monitors")[0]["values"]["l2_norm/grad/global"] == pytest.approx(alone, rel=1e-4)


def test_train_metrics_are_over_the_samples_of_all_ranks_also_where_one_has_none(two: Path) -> None:
    (first, second), alone = results(two, "train_metrics"), two_ranks.train_metrics()
    for name in ("train/accuracy", "train/cross_entropy"):
        assert len(first["values"][name]) == 9
        assert first["values"][name] == pytest.approx(alone["values"][name], rel=1e-6)
    assert second["values"] == {}
