"""`expkit diff`: what two trials, or two recipe or sweep files, do not have in common; reads only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit.cli.completion import trials_and_files
from expkit.cli.options import RUNS, Json, ReadDir, TrustImports, give, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from expkit.launch.differing import Sections
    from expkit.store.find import Found
    from expkit.store.store import Store

_HELP = "First digits of a trial's id, 3f2a/r1, last or last~1; or a recipe or sweep file."


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help=_HELP, autocompletion=trials_and_files)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.", autocompletion=trials_and_files)],
    trust_imports: TrustImports = None,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Show what differs between two trials or files: configuration, plug-in versions, code, setting, final metrics.

    Example: expkit diff 3f2a 9c04
    """
    from expkit.store.store import Store

    store = Store(runs_dir)
    found = compared(store, a, b, trust_imports or ())
    if as_json:
        give({section: {row.key: {"a": row.a, "b": row.b} for row in rows} for section, rows in found.items()})
    elif found:
        print("\n".join(lines_of(found)))
    else:
        say(f"{a} and {b} do not differ")
    for unreadable in store.set_aside:
        say(f"set aside: {unreadable}")


def compared(store: Store, a: str, b: str, trust_imports: Sequence[str]) -> Sections:
    """What differs by section; UsageError where one is a trial and the other a file."""
    from expkit.cli.show import which
    from expkit.errors import UsageError
    from expkit.launch.differing import of_files, of_trials
    from expkit.spec.shown import shown_file

    first, second = which(store, a), which(store, b)
    if isinstance(first, Path) and isinstance(second, Path):
        one, other = (shown_file(path, trust_imports=trust_imports) for path in (first, second))
        if one.kind != other.kind:
            raise UsageError(f"{first} is a {one.kind} and {second} is a {other.kind}; compare two of a kind")
        return of_files(one, other)
    if isinstance(first, Path) or isinstance(second, Path):
        raise UsageError("a trial and a file cannot be compared; expkit show ID --resolved > trial.yaml makes one")
    return of_trials(store, _replicate(first), _replicate(second))


def _replicate(found: Found) -> tuple[str, int]:
    return found.id12, found.replicate or 0


def lines_of(found: Sections) -> list[str]:
    """A line a key under the title of its section, values side by side."""
    from expkit.report.clean import clean

    lines = []
    for section, rows in found.items():
        width = max(len(row.key) for row in rows)
        left = max(len(_text(row.a)) for row in rows)
        lines.append(f"{section}:")
        lines += [f"  {clean(row.key):<{width}}  {_text(row.a):<{left}}  {_text(row.b)}" for row in rows]
    return lines


def _text(value: Any) -> str:
    from expkit.report.clean import clean

    if isinstance(value, float):
        return f"{value:.6g}"
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
