"""Options that several commands share, declared once, and the two streams: data on stdout, the rest on stderr."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit import speech
from expkit.cli.completion import overrides, sweep_files, trials

if TYPE_CHECKING:
    from expkit.store.running import Limits


def _to_write(where: str | Path) -> Path:
    """A folder of this machine."""
    from expkit.uri import is_remote, local_path, without_userinfo

    if is_remote(str(where)):
        from expkit.errors import UsageError

        raise UsageError(f"this command works on a folder of this machine; what lies at {without_userinfo(str(where))} "
                         "can only be read, by query, report, list, show and the like")  # fmt: skip
    return _folder(Path(local_path(str(where))))


def _folder(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        from expkit.errors import UsageError

        raise UsageError(f"{path} is a file, but results lie in a folder, or in a bundle whose name ends in .zip")
    return path


def _to_read(where: str | Path, *, logs: bool = False) -> Path:
    """A folder of this machine, or the copy of what lies elsewhere, brought up to date unless a shell completes."""
    from expkit.store.place import closed, opened

    return closed(where) if "_EXPKIT_COMPLETE" in os.environ else _folder(opened(where, logs=logs))


def _to_read_with_logs(where: str | Path) -> Path:
    return _to_read(where, logs=True)


RunsDir = Annotated[
    Path,
    typer.Option(
        "--runs-dir", envvar="EXPKIT_RUNS", metavar="DIR", help="Folder that holds all results.", parser=_to_write
    ),
]
ReadDir = Annotated[
    Path,
    typer.Option(
        "--runs-dir",
        envvar="EXPKIT_RUNS",
        metavar="DIR|URL",
        help="Folder that holds all results, here or as s3://bucket/runs.",
        parser=_to_read,
    ),
]
ReadDirWithLogs = Annotated[
    Path,
    typer.Option(
        "--runs-dir",
        envvar="EXPKIT_RUNS",
        metavar="DIR|URL",
        help="Folder that holds all results, here or as s3://bucket/runs.",
        parser=_to_read_with_logs,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override one value: --set optimizer.sgd.lr=0.1; repeatable.",
        autocompletion=overrides,
    ),
]
Preset = Annotated[
    list[str] | None, typer.Option("--preset", metavar="NAME", help="Apply a preset of the recipe; repeatable.")
]
TrustImports = Annotated[
    list[str] | None,
    typer.Option("--trust-imports", metavar="PATTERN", help="Allow py: imports from packages: 'mylab.*'; repeatable."),
]
AllowFlat = Annotated[
    bool,
    typer.Option(
        "--allow-flat",
        help="Take a pilot's target though the baseline hardly gains there; times to it are exploratory.",
    ),
]
SweepFile = Annotated[
    str,
    typer.Argument(help="A sweep file; a bare name is looked for here, then in sweeps/.", autocompletion=sweep_files),
]
Trial = Annotated[
    str,
    typer.Argument(metavar="ID", help="First digits of a trial's id, 3f2a/r1, last or last~1.", autocompletion=trials),
]
Replicate = Annotated[
    str | None, typer.Argument(metavar="[REPLICATE]", help="Which replicate, such as r1, where it is not in the id.")
]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

TimeLimit = Annotated[
    str | None, typer.Option("--time-limit", metavar="TIME", help="Stop a query after this long: 30s, 5m.")
]
MemoryLimit = Annotated[
    str | None,
    typer.Option("--memory-limit", metavar="SIZE", help="Memory of a query, 4GB; beyond it disk is used. [80 %]"),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, metavar="N", help="Threads of a query. [all]")]

RUNS = Path("runs")


def limits(time_limit: str | None, memory_limit: str | None, threads: int | None) -> Limits:
    """What a query may take; UsageError where a limit is none."""
    from expkit.duration import Time, TimeUnit
    from expkit.errors import UsageError
    from expkit.store.running import Limits

    if time_limit is None:
        return Limits(None, memory_limit, threads)
    try:
        span = Time.parse(time_limit)
    except ValueError:
        span = None
    if span is None or span.unit != TimeUnit.SECOND or not span.value:
        raise UsageError(f"--time-limit is a time such as 30s or 5m, but got {time_limit!r}")
    return Limits(span.value, memory_limit, threads)


def say(text: str) -> None:
    """To the person, on stderr; what stands in names of files and trials steers no terminal."""
    from expkit.report.clean import clean_lines

    speech.say(clean_lines(text))


def give(data: Any) -> None:
    """One JSON document on stdout; non-finite numbers become null, because JSON has none."""
    print(json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False))


def agreed(question: str, yes: bool) -> bool:
    """Whether the person agrees; UsageError where nobody can be asked and nobody has agreed beforehand."""
    if yes:
        return True
    if not sys.stdin.isatty():
        from expkit.errors import UsageError

        raise UsageError(f"nobody is here to ask whether to {question}; --yes says so, --dry-run only looks")
    print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def amount(num_bytes: float) -> str:
    """Bytes for people: `1.4 MB`; a thousand to the next unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.3g} TB"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
