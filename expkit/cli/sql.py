"""expkit sql: ask the store one question after the other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.formats import Format
from expkit.cli.options import RUNS, Json, MemoryLimit, ReadDir, Threads, TimeLimit, limits, say

if TYPE_CHECKING:
    from expkit.cli.shell import Shell


def sql(
    *,
    format: Annotated[Format, typer.Option("--format", "-f", help="How answers are written.")] = "table",
    json: Json = False,
    time_limit: TimeLimit = None,
    memory_limit: MemoryLimit = None,
    threads: Threads = None,
    runs_dir: ReadDir = RUNS,
) -> None:
    """Open a shell for questions in SQL, with history and completion; it can only read. Statements may be piped in too.

    Example: expkit sql --runs-dir runs
    """
    from expkit.cli.formats import BINARY
    from expkit.cli.shell import Shell
    from expkit.errors import UsageError
    from expkit.store.query import connect

    if format in BINARY:
        raise UsageError(f"{format} holds one answer and no more; use .output FILE, or expkit query")
    if not runs_dir.exists():
        say(f"there are no results in {runs_dir} yet; --runs-dir names another folder")
    with connect(runs_dir, limits(time_limit, memory_limit, threads)) as connection:
        shell = Shell(connection, "json" if json else format)
        if sys.stdin.isatty() and sys.stdout.isatty():
            say(f"SQL over {runs_dir}, as it is now. .help shows what there is, Ctrl-D leaves.")
            _converse(shell)
        else:
            _listen(shell)


def _converse(shell: Shell) -> None:
    from expkit.cli.prompt import reader
    from expkit.cli.shell import Leave
    from expkit.errors import ExpkitError, Interruption

    read = reader(shell.vocabulary, shell.is_done, shell.commands)
    while True:
        try:
            shell.do(read())
        except (EOFError, Leave):
            return
        except KeyboardInterrupt:
            say("interrupted")
        except Interruption:
            raise
        except ExpkitError as e:
            say(f"error: {e}")


def _listen(shell: Shell) -> None:
    from expkit.cli.shell import Leave

    try:
        shell.script(sys.stdin)
    except Leave:
        return
