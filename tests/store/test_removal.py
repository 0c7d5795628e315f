"""Removal that is killed: at every moment a trial is there whole or not at all, and gc finishes the work."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from expkit.store import notes
from expkit.store.discard import discard
from expkit.store.garbage import collect, garbage
from expkit.store.query import connect
from expkit.store.store import Store
from tests.store.synthetic import make_store

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
from pathlib import Path
from expkit.store.find import Found
from expkit.store.removal import remove, removals
from expkit.store.store import Store

def die_at(name, event_name, args):
    if event_name == name[0]:
        name[1] -= 1
        if name[1] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

step = [sys.argv[3], int(sys.argv[4])]
sys.addaudithook(lambda event, args: die_at(step, event, args))
store = Store(Path(sys.argv[1]))
(planned,) = removals(store, [Found(sys.argv[2], None)])
remove(store, planned)
"""
"""Ends itself before the n-th call of a kind that changes the disk."""


@pytest.mark.parametrize(
    ("call", "number", "there"),
    [("os.rename", 1, True), ("os.remove", 1, False), ("os.remove", 3, False), ("os.rmdir", 1, False)],
)
def test_killed_at_any_step_a_trial_is_whole_or_gone(tmp_path: Path, call: str, number: int, there: bool) -> None:
    made = make_store(tmp_path / "runs", {}, seeds=(17, 18))
    id12 = made.ids["none", 17]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(made.root), id12, call, str(number)], cwd=ROOT, capture_output=True
    )
    assert done.returncode == -9, done.stderr
    with connect(made.root) as con:
        rows = con.rows("SELECT id, status, count(m.value) AS n FROM trials t JOIN metrics m USING (id, replicate) "
                        "GROUP BY ALL")  # fmt: skip
        assert con.set_aside == [] and len(rows) == (2 if there else 1)
        assert all(row["status"] == "complete" and row["n"] == 2 * 64 for row in rows)
    for found in garbage(Store(made.root)):
        collect(found)
    assert [p.name for p in made.store.layout.trials.iterdir() if p.name.startswith(".")] == []


def test_what_is_gone_already_is_no_error(tmp_path: Path) -> None:
    discard(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    discard(tmp_path / "link")
    assert (tmp_path / "file").exists() and not (tmp_path / "link").is_symlink()


def test_two_who_tag_at_once_both_have_their_way(tmp_path: Path) -> None:
    made = make_store(tmp_path, {}, seeds=(17,), repeats=False)
    id12 = made.ids["none", 17]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: notes.tag(Store(tmp_path), id12, [f"t{i}"]), range(24)))
    assert len(notes.read(made.store.layout, id12, []).tags) == 24
