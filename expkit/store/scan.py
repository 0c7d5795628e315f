"""What lies in a runs folder at one moment: replicates, attempts, and the metrics files that count; opens no record.

Costs about 60 microseconds a replicate and 30 a metrics file. Metrics files are looked at from both ends, because one
file without a footer would fail every query over all of them. Each row is in one file that counts, at every moment of
a compaction: a compacted file stands for the attempts in its manifest, a folded file for the parts in its name.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from expkit.store import compacted, gathered, index, seal
from expkit.store.atomic import Unreadable
from expkit.store.compacted import Key
from expkit.store.index import NOTHING, Index
from expkit.store.layout import ID12, Layout, Parts

_VERSION = re.compile(rb"expkit\.metrics\.schema_version\x18.(\d+)")
"""Our key and its value as they stand in a footer; a file of another program lacks them."""
OLDEST_SCHEMA = 1
SEALED_SINCE = 2
TRIES = 20
"""How often a folder is looked at again that was compacted meanwhile; a compaction changes it every few seconds."""


class Found(NamedTuple):
    """One replicate's folder."""

    id12: str
    replicate: int
    attempts: tuple[int, ...]
    """Numbers of the attempts, in order."""
    metrics: tuple[str, ...]
    """Closed metrics files of all attempts, not yet checked."""


@dataclass(frozen=True)
class Look:
    """A runs folder at one moment."""

    found: list[Found]
    files: list[str]
    """Metrics files that together hold each readable row once."""
    gone: list[tuple[str, int, int]]
    """(id, replicate, attempt) that a compacted file holds though its folder was removed: its rows do not count, also
    where the replicate has been run again since."""
    known: Index
    """What need not be read again."""
    copies: list[str]
    """Names of all copies of metrics files, counting or not."""


def look(layout: Layout, newest_schema: int, set_aside: list[Unreadable], *, thorough: bool = False) -> Look:
    """All that counts. What cannot be read goes onto `set_aside`, each file once; a compaction may be at work.

    `thorough` looks at every byte of the metrics files, 1 GB/s: DuckDB would take changed ones for what was measured.
    """
    for last_try in (*[False] * (TRIES - 1), True):
        aside: list[Unreadable] = []
        before = compacted.names(layout)
        try:
            found = _counting(layout, before, newest_schema, aside, thorough, last_try)
        except FileNotFoundError:
            continue  # folded or compacted since it was listed
        if last_try or compacted.names(layout) == before:
            break
    set_aside += aside
    return found


def attempts_of(found: Iterable[Found]) -> set[tuple[str, int, int]]:
    """(id, replicate, attempt) of all that have a folder."""
    return {(f.id12, f.replicate, attempt) for f in found for attempt in f.attempts}


def scan(layout: Layout, set_aside: list[Unreadable], known: Index = NOTHING) -> Iterator[Found]:
    """All replicates, by id and number. Folders that vanish meanwhile are passed over, closed ones are set aside.

    Trials whose listing is `known` are not looked into.
    """
    for id12 in sorted(name for name in _names(layout.trials, set_aside) if ID12.fullmatch(name)):
        listing = known.listing(layout, id12)
        if listing is not None:
            yield from (Found(id12, replicate, attempts, ()) for replicate, attempts in listing.items())
            continue
        folder = f"{layout.trials}/{id12}"
        replicates = [int(name[1:]) for name in _names(folder, set_aside) if name[0] == "r" and name[1:].isdigit()]
        for replicate in sorted(replicates):
            yield found_in(layout, id12, replicate, set_aside)


def found_in(layout: Layout, id12: str, replicate: int, set_aside: list[Unreadable]) -> Found:
    """One replicate, as it is listed now."""
    attempts_dir = f"{layout.trials}/{id12}/r{replicate}/attempts"
    attempts = sorted(int(name) for name in _names(attempts_dir, set_aside) if name.isdigit())
    files = tuple(path for k in attempts for path in metrics_of(f"{attempts_dir}/{k}", set_aside))
    return Found(id12, replicate, tuple(attempts), files)


def metrics_of(attempt_dir: str | Path, set_aside: list[Unreadable] | None = None) -> list[str]:
    """Closed metrics files of an attempt, of all ranks, sorted."""
    names = _names(attempt_dir, [] if set_aside is None else set_aside)
    return [f"{attempt_dir}/{name}" for name in sorted(names) if Parts.of(name)]


def has_more(now: Found, than: Found) -> bool:
    """Whether a replicate has attempts or parts that it did not have when it was listed; folding adds none."""
    return now.attempts != than.attempts or bool(_last_parts(now).items() - _last_parts(than).items())


def usable(path: str, newest_schema: int) -> str | None:
    """None where DuckDB can read this metrics file, else why not; FileNotFoundError where there is none any more."""
    try:
        end, _ = seal.tail(path)
    except FileNotFoundError:
        raise
    except OSError as e:
        return f"cannot be read ({e.strerror})"
    except ValueError as e:
        return str(e)
    version = _VERSION.search(end, seal.SIZE)
    if version is None:
        return "was not written by expkit"
    if not OLDEST_SCHEMA <= int(version[1]) <= newest_schema:
        return f"has metrics schema {int(version[1])}, this expkit reads {OLDEST_SCHEMA} to {newest_schema}"
    if int(version[1]) >= SEALED_SINCE and not seal.footer_is_whole(end):
        return "was changed since it was written: its footer and its seal disagree"
    return None


def damage(path: str, newest_schema: int) -> str | None:
    """As `usable`, and how a file of the present schema is not as it was written; for older ones see `fold.damage`."""
    reason = usable(path, newest_schema)
    if reason is not None:
        return reason
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError as e:
        return f"cannot be read ({e.strerror})"
    if seal.has_seal(data) and not seal.data_is_whole(data):
        return "was changed since it was written: its data and its seal disagree"
    return None


def counting(paths: Iterable[str], check: Callable[[str], bool]) -> list[str]:
    """Of the files of one attempt those that hold each row once, in the order of their parts.

    A folded file counts, if `check` finds it whole, in place of the parts that it was made of.
    """
    chosen: list[str] = []
    rank, done = -1, -1
    for parts, path in _in_order(paths):
        if parts.rank != rank:
            rank, done = parts.rank, -1
        if parts.first > done and check(path):
            chosen.append(path)
            done = parts.last
    return chosen


def missing(paths: Iterable[str]) -> list[Parts]:
    """Parts that once were there, for they are numbered without gaps."""
    gaps: list[Parts] = []
    rank, done = -1, -1
    for parts, _ in _in_order(paths):
        if parts.rank != rank:
            rank, done = parts.rank, -1
        if parts.first > done + 1:
            gaps.append(Parts(rank, done + 1, parts.first - 1))
        done = max(done, parts.last)
    return gaps


def _counting(
    layout: Layout, names: list[str], newest_schema: int, set_aside: list[Unreadable], thorough: bool, last_try: bool
) -> Look:
    """As `look`; FileNotFoundError where a file has gone since it was listed, but on the last try."""

    def check(path: str) -> bool:
        try:
            reason = damage(path, newest_schema) if thorough else usable(path, newest_schema)
        except FileNotFoundError:
            if not last_try:
                raise
            reason = "cannot be read (No such file or directory)"
        if reason is not None:
            set_aside.append(Unreadable(Path(path), reason))
        return reason is None

    whole = compacted.counting(compacted.manifests(layout, names, set_aside), check, layout)
    covered = {key for manifest in whole for key in manifest.covers}
    files = [str(layout.compacted_metrics(manifest.name)) for manifest in whole]
    known = index.read(layout)
    if not known.compacted.issubset(manifest.name for manifest in whole):
        known = NOTHING
    copies = gathered.names(layout)
    held = [] if thorough else [each for each in gathered.read(layout) if usable(each.path, newest_schema) is None]
    same = gathered.unchanged(held)
    found = list(scan(layout, set_aside, known))
    for f in found:
        own = [path for path in f.metrics if not covered or _key(f, path).written not in covered]
        for folder, paths in itertools.groupby(own, lambda path: path.rpartition("/")[0]):
            files += _of_attempt(folder, list(paths), lambda path: path in same or check(path), set_aside)
    return Look(found, gathered.in_place_of(files, held, same), _gone(covered, found), known, copies)


def _of_attempt(folder: str, paths: list[str], check: Callable[[str], bool], set_aside: list[Unreadable]) -> list[str]:
    files = counting(paths, check)
    gaps = missing(paths)
    if gaps and missing(metrics_of(folder)) != gaps:
        raise FileNotFoundError  # folded while it was listed
    for gap in gaps:
        also = f", and so are those up to {gap.last:06d}" if gap.last > gap.first else ""
        set_aside.append(Unreadable(Layout.metrics(Path(folder), gap.rank, gap.first), f"is missing{also}"))
    return files


def _gone(covered: Iterable[str], found: Iterable[Found]) -> list[tuple[str, int, int]]:
    """Attempts of these keys that have no folder; told apart as texts, for all but a few have one."""
    there = {f"{f.id12}/r{f.replicate}/{attempt}" for f in found for attempt in f.attempts}
    gone = {key.rpartition("/")[0] for key in covered} - there
    return sorted((id12, int(replicate[1:]), int(k)) for id12, replicate, k in (each.split("/") for each in gone))


def _in_order(paths: Iterable[str]) -> list[tuple[Parts, str]]:
    """By rank and first part, the file that holds more of them first."""
    of = [(parts, path) for path in paths if (parts := Parts.of(path)) is not None]
    return sorted(of, key=lambda each: (each[0].rank, each[0].first, -each[0].last))


def _key(f: Found, path: str) -> Key:
    parts = Parts.of(path)
    assert parts is not None
    return Key(f.id12, f.replicate, int(path.rsplit("/", 2)[1]), parts.rank)


def _last_parts(f: Found) -> dict[Key, int]:
    """The number of the last part of each attempt and rank that has files."""
    last: dict[Key, int] = {}
    for path in f.metrics:
        parts = Parts.of(path)
        assert parts is not None
        last[_key(f, path)] = max(parts.last, last.get(_key(f, path), -1))
    return last


def _names(folder: str | Path, set_aside: list[Unreadable]) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as e:
        set_aside.append(Unreadable(Path(folder), f"cannot be looked into ({e.strerror})"))
        return []
