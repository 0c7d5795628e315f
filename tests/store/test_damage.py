"""Damaged files, at random: every answer is right or the file is named, nothing crashes, each is named once.

What only changed inside a data page is read by DuckDB as if it were so; there the thorough look and `verify` name it.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from expkit.errors import QueryError
from expkit.store.compact import compact
from expkit.store.layout import METRICS, Layout
from expkit.store.metrics import MetricsWriter, Stamp
from expkit.store.query import connect
from expkit.store.store import Store
from expkit.store.verify import verify
from tests.store.synthetic import Method, Synthetic, make_store

SEED = int(os.environ.get("EXPKIT_FUZZ_SEED", random.SystemRandom().randrange(10**6)))
SAMPLE, SOAK = 25, 10_000
ROWS = "SELECT * REPLACE (value::VARCHAR AS value) FROM metrics ORDER BY ALL"
TRIALS = "SELECT id, replicate, label, seed, status, train_s, host FROM trials ORDER BY ALL"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    """Three replicates; two are compacted, one has two parts."""
    made = make_store(tmp_path_factory.mktemp("made"), {"ema": Method()}, seeds=(17,))
    id12 = made.ids["ema", 17]
    shutil.move(made.store.layout.trial(id12), made.root / "aside")
    compact(made.store)
    shutil.move(made.root / "aside", made.store.layout.trial(id12))
    writer = MetricsWriter(made.store.layout.attempt(id12, 0, 1), id12, 0, 1)
    writer.log_many({"x": 1.0, "y": float("nan")}, Stamp(500, 0, 0, 0, 0, 0.5, 0.5, 0.5))
    writer.close()
    return made


@pytest.fixture(scope="module")
def whole(made: Synthetic) -> tuple[list[str], list[str]]:
    with connect(made.root) as con:
        answer = lines(con.table(ROWS)), lines(con.table(TRIALS))
        assert con.set_aside == []
    return answer


def lines(table: pa.Table) -> list[str]:
    return [str(row) for row in table.to_pylist()]


def damaged(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Cut, emptied, flipped, overwritten, doubled, another file's beginning or end."""
    at = rng.randrange(len(data))
    kind = rng.randrange(9)
    if kind < 3:
        flipped = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 3, 30))):
            flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    length = rng.randrange(1, 200)
    return (
        data[:at],
        b"",
        data[:at] + rng.randbytes(length) + data[at + length :],
        data[:at] + bytes(length) + data[at + length :],
        data[:at] + data[at + length :],
        rng.choice((other[:at] + data[at:], data[:at] + other[at:], data + data[at:])),
    )[kind - 3]


@pytest.mark.parametrize("count", [SAMPLE, pytest.param(SOAK, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_no_wrong_number_from_damaged_files(
    made: Synthetic, whole: tuple[list[str], list[str]], tmp_path: Path, count: int
) -> None:
    rng = random.Random(SEED)
    root = tmp_path / "runs"
    shutil.copytree(made.root, root)
    files = sorted(p for p in root.rglob("*") if p.is_file() and _is_judged(p))
    seen: Counter[str] = Counter()
    for i in range(count):
        chosen = rng.sample(files, rng.choice((1, 1, 2)))
        before = {path: path.read_bytes() for path in chosen}
        for path, data in before.items():
            path.write_bytes(damaged(data, rng, rng.choice(files).read_bytes()))
        changed = {path for path, data in before.items() if path.read_bytes() != data}
        seen[_look(root, changed, whole, f"EXPKIT_FUZZ_SEED={SEED}, number {i}")] += 1
        for path, data in before.items():
            path.write_bytes(data)
    assert seen["named"] and (count == SAMPLE or seen["unseen"])


def _is_judged(path: Path) -> bool:
    judged = METRICS.fullmatch(path.name) or path.parent.name == "metrics" or path.name == "status.json"
    return bool(judged) and path.stat().st_size > 0


def _look(root: Path, changed: set[Path], whole: tuple[list[str], list[str]], where: str) -> str:
    """How the damage showed: `named` where an open store names it, `unseen` where only a thorough look does."""
    with connect(root) as con:
        rows, trials = lines(con.table(ROWS)), lines(con.table(TRIALS))
        named = [bad.path for bad in con.set_aside]
    assert len(named) == len(set(named)) and set(named) <= changed, where
    with connect(root, thorough=True) as con:
        assert set(lines(con.table(ROWS))) <= set(whole[0]), where
        thorough = {bad.path for bad in con.set_aside}
    if rows == whole[0]:
        assert _allowed(trials, whole[1], changed), where
    elif not named:
        assert thorough, where
        assert {path for path, reason in verify(Store(root)) if reason is not None} >= thorough, where
    return "named" if named else "unseen" if thorough else "harmless"


def _allowed(trials: list[str], whole: list[str], changed: set[Path]) -> bool:
    """Of each trial whose status is whole the row is what it was."""
    touched = {path.parts[-3] for path in changed if path.name == "status.json"}
    keep = [line for line in whole if not any(id12 in line for id12 in touched)]
    return [line for line in trials if not any(id12 in line for id12 in touched)] == keep


def test_a_query_that_trips_over_a_damaged_page_names_the_file_and_answers(made: Synthetic, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(made.root, root)
    path = next(p for p in sorted(root.rglob("*.parquet")) if METRICS.fullmatch(p.name))
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(360)
    path.write_bytes(data)
    with connect(root) as con:
        assert con.rows("SELECT count(DISTINCT id) AS n FROM metrics WHERE id <> ''") == [{"n": 2}]
        assert [bad.path for bad in con.set_aside] == [path]
    asked = "SELECT id FROM metrics WHERE id <> ''"
    with connect(root) as con:  # before its first rows are given away, a question can be asked again
        assert con.stream(asked, (), lambda rows: rows.read_all()).num_rows > 0
        assert [bad.path for bad in con.set_aside] == [path]
    late = f"SELECT 'a' AS id FROM range(1000000) UNION ALL {asked}"
    with connect(root) as con, pytest.raises(QueryError, match="--verify leaves out what is"):
        con.stream(late, (), lambda rows: rows.read_all())
    with connect(root, thorough=True) as con:
        assert con.stream(late, (), lambda rows: rows.read_all()).num_rows > 1_000_000


NOBODY = """
import os, resource, sys
from pathlib import Path
from expkit.store.query import connect
if sys.argv[2] == "nobody":
    import duckdb, pyarrow.parquet
    if os.getuid() == 0:
        os.setgid(65534), os.setuid(65534)
else:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
with connect(Path(sys.argv[1])) as con:
    print(con.rows("SELECT count(*) AS n, sum(batch)::BIGINT AS s FROM metrics"))
    for bad in con.set_aside:
        print(bad)
"""


def as_another(root: Path, how: str) -> Iterator[str]:
    done = subprocess.run([sys.executable, "-c", NOBODY, root, how], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    yield from done.stdout.splitlines()


def test_what_may_not_be_read_is_named_and_the_rest_answers(made: Synthetic, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(made.root, root)
    for path in (root, *root.rglob("*"), tmp_path, *list(tmp_path.parents)[:3]):
        if path.stat().st_uid == os.getuid():
            path.chmod(path.stat().st_mode | 0o055)
    closed = made.store.layout.attempt(made.ids["ema", 17], 0, 1)
    (root / closed.relative_to(made.root)).chmod(0)
    (compacted,) = (p for p in (root / "metrics").glob("*.parquet"))
    compacted.chmod(0)
    first, *named = as_another(root, "nobody")
    assert first == "[{'n': 0, 's': None}]"
    assert sorted(named) == sorted([
        f"{root / closed.relative_to(made.root)}: cannot be looked into (Permission denied)",
        f"{compacted}: cannot be read (Permission denied)",
    ])  # fmt: skip


def test_user_report_66_more_files_than_descriptors(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path, "0" * 12, 0, 1)
    writer.log_many({"a": 1.0}, Stamp(7, 0, 0, 0, 0, 0.0, 0.0, 0.0))
    writer.close()
    layout = Layout(tmp_path / "runs with % and ä")
    for trial in range(600):
        folder = layout.attempt(f"{trial:012x}", 0, 1)
        folder.mkdir(parents=True)
        shutil.copy(layout.metrics(tmp_path, 0, 0), folder)
    assert list(as_another(layout.root, "few")) == ["[{'n': 600, 's': 4200}]"]


def test_a_missing_folder_is_an_empty_store(tmp_path: Path) -> None:
    for odd in (tmp_path / "none", tmp_path / "file"):
        if odd.name == "file":
            odd.write_text("")
        with connect(odd) as con:
            assert con.rows("SELECT count(*) AS n FROM metrics") == [{"n": 0}]
