"""Tags and notes: what people say of a trial. A small record beside it; nothing that is measured depends on it."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from expkit.errors import UsageError
from expkit.store.atomic import Unreadable, read_json, write_json
from expkit.store.layout import Layout
from expkit.store.records import Notes, now_utc
from expkit.store.store import Store

_TAG = re.compile(r"[^\W_][\w.+:-]{0,63}")
MOST_CHARACTERS = 16 * 1024


def read(layout: Layout, id12: str, set_aside: list[Unreadable]) -> Notes:
    """What was said of a trial; nothing where nothing was, or where it cannot be read."""
    path = layout.notes(id12)
    value = read_json(path, set_aside)
    try:
        return Notes() if value is None else Notes.from_json(value)
    except ValueError as e:
        set_aside.append(Unreadable(path, str(e)))
        return Notes()


def tag(store: Store, id12: str, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Notes:
    """Give a trial tags and take others from it; UsageError for what is no tag."""
    added, removed = set(add), set(remove)
    for name in sorted(added):
        if not _TAG.fullmatch(name):
            raise UsageError(f"a tag is up to 64 letters, digits, '-', '_', '.', '+' and ':', but got {name!r}")
    with _mine(store, id12):
        known = read(store.layout, id12, store.set_aside)
        return _write(store, id12, Notes(sorted((set(known.tags) | added) - removed), known.note))


def note(store: Store, id12: str, text: str, *, append: bool = False) -> Notes:
    """Say something of a trial, instead of what was said or as a line after it; an empty text takes it back."""
    with _mine(store, id12):
        known = read(store.layout, id12, store.set_aside)
        whole = "\n".join(filter(None, [known.note, text])) if append else text
        if any("\ud800" <= c <= "\udfff" for c in whole):
            raise UsageError(f"a note is UTF-8 text, but got {text!a}")
        if len(whole) > MOST_CHARACTERS:
            raise UsageError(f"a note has up to {MOST_CHARACTERS:,} characters, but this would have {len(whole):,}")
        return _write(store, id12, Notes(known.tags, whole))


def _write(store: Store, id12: str, notes: Notes) -> Notes:
    written = Notes(notes.tags, notes.note, now_utc())
    write_json(store.layout.notes(id12), written.to_json())
    return written


@contextmanager
def _mine(store: Store, id12: str) -> Iterator[None]:
    """Alone with the record, so that two who tag at once both have their way; the lock is the trial's folder."""
    try:
        folder = os.open(store.layout.trial(id12), os.O_RDONLY)
    except FileNotFoundError:
        raise UsageError(f"trial {id12} has not been started; there is nothing to say of it yet") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
