"""What can go wrong, as a tree; each class knows the exit code that the command line answers with.

ExpkitError                 1
|-- UsageError              2    an argument or option that cannot be right
|-- SpecError               2    a recipe or sweep file: all its problems at once, each with file:line:column
|-- PluginError             2    a plug-in, or a setting of one, that does not exist or does not fit
|-- QueryError              2    a question to the store that cannot be answered
|-- CheckpointError         2    a checkpoint that is damaged, not ours, or not of this training
|-- EnvironmentFault        3    the machine: a lock, a missing extra, a folder that belongs to something else
|-- TrialFailure            1    a trial that ended without a result; carries the cause written to its status
`-- Interruption            130  asked to stop (143 for SIGTERM, 75 under a scheduler)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class ExpkitError(Exception):
    """Anything expkit says to its user in one sentence."""

    exit_code = 1


class UsageError(ExpkitError):
    """An argument or option that cannot be right."""

    exit_code = 2


class PluginError(ExpkitError):
    """A plug-in that does not exist, or a setting that does not fit it."""

    exit_code = 2


class QueryError(ExpkitError):
    """A question to the store that cannot be answered, or that is not a question."""

    exit_code = 2


class CheckpointError(ExpkitError):
    """A checkpoint that is damaged, not one of ours or of another training; state that no checkpoint can hold."""

    exit_code = 2


class EnvironmentFault(ExpkitError):
    """The machine stands in the way: a lock is held, an extra is missing, a folder belongs to something else."""

    exit_code = 3


class TrialFailure(ExpkitError):
    """A trial that ended without a result; `cause` is one of the store's causes."""

    def __init__(self, message: str, cause: str = "exception") -> None:
        super().__init__(message)
        self.cause = cause


class Interruption(ExpkitError):
    """Asked to stop by a signal; `exit_code` is 128 + its number, or 75 under a scheduler that will start us again."""

    def __init__(self, message: str, exit_code: int = 130) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong in one place of one file; lines and columns count from 1, as editors do."""

    file: str
    line: int
    column: int
    path: str
    """Dotted path of the key, empty where the file as a whole is meant."""
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class SpecError(ExpkitError):
    """A recipe or sweep that cannot be used; says everything that is wrong with it in one go."""

    exit_code = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def unknown(what: str, name: str, known: Iterable[str], hint: str = "") -> str:
    """The sentence for a name that does not exist: the nearest one first, then all that do, or `hint` says who does."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {what} {name!r}; {guess}" + (f"see {hint}" if hint else f"there are: {', '.join(names) or 'none'}")
