"""What lies where a checkpoint is to be written and is none: nothing of the user's is ever replaced or swept away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pytest

from expkit.errors import EnvironmentFault
from tests.trainer.doubles import trainer


def everything(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "notes.txt").write_text("a year of work")
    (tmp_path / "project" / "src" / "main.py").write_text("pass")
    return tmp_path / "project"


def test_a_checkpoint_saved_over_a_folder_of_the_users_does_not_delete_it(work: Path) -> None:
    before = everything(work)
    with pytest.raises(EnvironmentFault, match=r"project is there already and holds 'notes.txt', .* choose another"):
        trainer().save_checkpoint(work)
    assert everything(work) == before
    assert [path.name for path in work.parent.iterdir()] == ["project"]  # nothing was left beside it either


def test_a_file_of_the_users_is_no_place_for_a_checkpoint(work: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"notes.txt is a file, and a checkpoint is a folder"):
        trainer().save_checkpoint(work / "notes.txt")
    assert (work / "notes.txt").read_text() == "a year of work"


def test_a_checkpoint_that_the_user_has_put_a_file_into_is_not_replaced(tmp_path: Path) -> None:
    saved = trainer()
    saved.save_checkpoint(tmp_path / "mine")
    (tmp_path / "mine" / "README").write_text("the good one")
    with pytest.raises(EnvironmentFault, match="holds 'README'"):
        saved.save_checkpoint(tmp_path / "mine")
    assert (tmp_path / "mine" / "README").read_text() == "the good one"


def test_checkpoints_whole_or_half_and_empty_folders_are_replaced(tmp_path: Path) -> None:
    saved = trainer()
    (tmp_path / "empty").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "rank0.json").write_text("{")
    for name in ("empty", "half", "half"):
        saved.save_checkpoint(tmp_path / name)
        assert trainer(load_path=tmp_path / name).state.timestamp.batch == 0


def test_hidden_folders_of_the_users_are_not_swept_away(tmp_path: Path) -> None:
    kept = [tmp_path / ".old-thesis" / "a.txt", tmp_path / ".tmp-2024" / "b.txt"]
    for file in kept:
        file.parent.mkdir()
        file.write_text("keep")
    left = tmp_path / f".tmp-{'0' * 32}"
    left.mkdir()
    with trainer(save_folder=tmp_path, max_duration="1ep") as t:
        t.fit()
    assert all(file.read_text() == "keep" for file in kept)
    assert not left.exists()  # as a killed process of ours leaves it


@pytest.mark.parametrize("file", ["data/images/0.png", "data"])
def test_what_lies_behind_a_uri_and_is_no_checkpoint_is_not_deleted(file: str) -> None:
    fs: Any = fsspec.filesystem("memory")
    fs.pipe_file(f"/lab/{file}", b"pixels")
    try:
        with pytest.raises(EnvironmentFault, match=r"could not be uploaded to memory://lab: .*is there already"):
            trainer().save_checkpoint("memory://lab/data")
        assert fs.cat_file(f"/lab/{file}") == b"pixels"
    finally:
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]
