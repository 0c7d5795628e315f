"""The command line: a file per command; each parses, calls one function, prints. Heavy imports stay in the bodies."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from expkit.errors import ExpkitError, Interruption
from expkit.speech import say, unheard

COMMANDS = {
    "Run": ("run", "sweep", "pilot", "confirm", "rerun", "launch"),
    "Look": ("status", "report", "across", "query", "sql", "show", "logs", "why", "diff"),
    "Keep house": ("export", "load", "tag", "note", "rm", "gc", "compact", "verify"),
    "Prepare": ("calibrate", "check", "plan", "list", "explain", "schema"),
}


def build(whole: Sequence[str], brief: Sequence[str] = ()) -> typer.Typer:
    """The command line with these commands, 3 ms each, most of it for their options' types; of the brief ones there
    are only the name and what they are for."""
    app = typer.Typer(
        name="expkit",
        help="Find out which combination of training-speedup methods is faster at equal quality.\n\n"
        "Example: expkit sweep ablate.yaml",
        no_args_is_help=True,
        rich_markup_mode=None,  # rich help would cost 70 ms
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_version)
    for name in (*whole, *brief):
        module = importlib.import_module(f"expkit.cli.{name}")
        command = getattr(module, name)
        settings = getattr(module, "SETTINGS", None)
        app.command(name, context_settings=settings)(command if name in whole else _named_only(command))
    return app


def names() -> list[str]:
    """All commands, in the order of the help."""
    every = (name for panel in COMMANDS.values() for name in panel)
    return [name for name in every if (Path(__file__).parent / f"{name}.py").exists()]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'expkit.cli' has no attribute {name!r}")
    globals()["app"] = build(names())
    return globals()["app"]


def main() -> None:
    """Entry point of `expkit`: a user's error becomes one sentence on stderr and the exit code of its class."""
    signal.signal(signal.SIGTERM, _terminated)  # a driver takes over as soon as it runs trials
    _open_streams()
    try:
        build(*_asked())(prog_name="expkit")
    except SystemExit as e:
        if not _reader_left(e):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing to complain about
        sys.exit(0)
    except ExpkitError as e:
        from expkit.report.clean import clean_lines

        say(clean_lines(f"error: {e}" if str(e) else ""))
        sys.exit(e.exit_code)
    except UnicodeEncodeError as e:  # an argument in bytes that are no UTF-8, or a terminal that has no such letters
        say(f"error: {e.object[e.start : e.end]!a} cannot be written as {e.encoding}")
        sys.exit(2)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
    except OSError as e:  # a full disk, a read-only folder: the machine stands in the way
        say(f"error: {e.strerror or e}{f': {e.filename}' if e.filename else ''}")
        sys.exit(3)


def _terminated(number: int, _: object) -> None:
    raise Interruption("terminated", 128 + number)


def _open_streams() -> None:
    """Those that were closed, by `>&-` or a scheduler; else a file that we open would be taken for one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their numbers
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8", errors="replace"))  # noqa: PTH123, SIM115


def _reader_left(end: SystemExit) -> bool:
    """Whether standard output has no reader any more; Typer answers that with exit code 1, Python with a message."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    except OSError as e:
        if e.errno != errno.EIO:
            raise
        with unheard():  # a terminal that was closed changes no exit code
            raise
    return isinstance(end.__context__, BrokenPipeError)


def _asked() -> tuple[list[str], list[str]]:
    """The command that is asked for, by the user or by a shell that completes, and no other; else all, briefly."""
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    words = typed.split() if typed and "_EXPKIT_COMPLETE" in os.environ else sys.argv
    first = next((word for word in words[1:] if word != "--"), None)
    return ([first], []) if first in names() else ([], names())


def _named_only(command: Callable[..., None]) -> Callable[[], None]:
    def named() -> None:
        """Replaced below."""

    named.__doc__ = command.__doc__
    return named


def _version(version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit.")) -> None:
    if version:
        from expkit import __version__

        print(__version__)
        raise typer.Exit
