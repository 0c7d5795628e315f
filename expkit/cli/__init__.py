"""The command line: a file per command; each parses, calls one function, prints. Heavy imports stay in the bodies."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from expkit.errors import ExpkitError

COMMANDS = {
    "Run": ("run", "sweep", "pilot", "rerun", "launch"),
    "Look": ("status", "report", "query", "show", "logs", "why", "diff"),
    "Prepare": ("check", "plan", "list", "explain"),
}


def build(names: Sequence[str]) -> typer.Typer:
    """The command line with these commands; each costs 3 ms, most of it for its options' types."""
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
    for name in names:
        module = importlib.import_module(f"expkit.cli.{name}")
        app.command(name, context_settings=getattr(module, "SETTINGS", None))(getattr(module, name))
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
    asked = sys.argv[1:2]
    try:
        build(asked if asked and asked[0] in names() else names())(prog_name="expkit")
    except ExpkitError as e:
        print(f"error: {e}" if str(e) else "", file=sys.stderr)
        sys.exit(e.exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing to complain about
        sys.exit(0)


def _version(version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit.")) -> None:
    if version:
        from expkit import __version__

        print(__version__)
        raise typer.Exit
