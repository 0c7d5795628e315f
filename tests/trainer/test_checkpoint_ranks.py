"""One checkpoint for all ranks: one writes what is equal, each its own difference; all begin and fail together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from expkit.trainer.checkpoint.files import read_files
from tests import forks
from tests.trainer import two_ranks_checkpoints
from tests.trainer.two_ranks_checkpoints import made

CASES = (
    "resumed_anywhere",
    "interrupted",
    "damaged",
    "one_cannot_write",
    "one_has_no_disk",
    "one_does_not_fit",
    "of_one_rank",
    "uploaded",
    "nobody_can",
)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    alone, _ = made(folder / "one")
    alone.fit("5ba")
    alone.save_checkpoint(folder / "of_one")
    codes, told = forks.ranks(two_ranks_checkpoints.main, folder, folder, CASES)
    assert codes == [0, 0], told
    return folder


def results(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads((folder / f"{name}-{rank}.json").read_text()) for rank in range(2)]


def test_resumed_at_any_batch_both_ranks_end_as_if_they_had_run_through(two: Path) -> None:
    for rank in results(two, "resumed_anywhere"):
        assert len(rank["found"]) == 6
        assert all(found == ["same", "same"] for found in rank["found"].values()), rank["found"]


def test_each_rank_has_its_own_buffers_and_generators_again(two: Path) -> None:
    tree, own = read_files(two / "run" / "ep0-ba2", 0), read_files(two / "run" / "ep0-ba2", 1)
    assert set(own["model"]) == {"own"} and tree["model"]["own"].tolist() != own["model"]["own"].tolist()
    assert {"python", "numpy"} <= set(own["rng"]) and "optimizer" not in own
    sizes = [(two / "run" / "ep0-ba2" / f"rank{rank}.safetensors").stat().st_size for rank in range(2)]
    assert sizes[1] < sizes[0]


def test_where_one_is_interrupted_all_save_and_go_on(two: Path) -> None:
    first, second = results(two, "interrupted")
    assert first == second and "SIGTERM" in first["said"] and first["cut"] == 4 and first["same"] == "same"


def test_all_pass_over_a_damaged_one_and_one_of_them_says_so(two: Path) -> None:
    first, second = results(two, "damaged")
    assert first["batch"] == second["batch"] == 10
    assert len(first["warnings"]) == 1 and "rank1.json has 2 bytes" in first["warnings"][0] and not second["warnings"]


def test_where_one_cannot_write_all_fail_alike_and_nothing_is_left(two: Path) -> None:
    first, second = results(two, "one_cannot_write")
    assert first["error"] == second["error"] and first["kind"] == "EnvironmentFault"
    assert "callbacks/odd/odd is of type set" in first["error"] and first["error"].endswith("(on rank 1)")
    assert first["left"] == []


def test_a_disk_that_is_full_for_one_is_the_cause_of_all(two: Path) -> None:
    first, second = results(two, "one_has_no_disk")
    assert first == second and first["error"].endswith("could not be written: File too large (on rank 1)")
    assert first["cause"] == "disk"


def test_a_place_that_cannot_be_written_is_said_by_all_before_the_first_batch(two: Path) -> None:
    first, second = results(two, "nobody_can")
    assert first == second and first["kind"] == "EnvironmentFault"
    assert first["error"] == f"no checkpoint can be saved in {two / 'notes'}: Not a directory"


def test_where_it_does_not_fit_one_it_is_refused_by_all(two: Path) -> None:
    first, second = results(two, "one_does_not_fit")
    assert first["error"] == second["error"] and first["error"].endswith("(on rank 1)")
    assert "0.weight has shape [16, 8] there and [3, 8] here" in first["error"]


def test_ranks_may_become_more(two: Path) -> None:
    first, second = results(two, "of_one_rank")
    assert first == second and first["before"] == 5 and first["batch"] == 12


def test_or_fewer(two: Path) -> None:
    t, _ = made(two / "fewer", load_path=two / "run" / "ep1-ba6")
    t.fit()
    assert t.state.timestamp.batch == 12


def test_behind_a_uri_likewise(two: Path) -> None:
    first, second = results(two, "uploaded")
    assert first == second == {"batch": 12, "same": "same", "saved": 6}
