"""Which packages of the user's own may be imported: `expkit.toml` of the project and `--trust-imports`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from expkit.errors import Problem, SpecError, unknown

FILE = "expkit.toml"


@dataclass(frozen=True)
class Trust:
    """Patterns such as `mylab.*`, and the folder of the `expkit.toml` that was found."""

    patterns: tuple[str, ...] = ()
    root: Path | None = None


def read_trust(start: Path, extra: Sequence[str] = ()) -> Trust:
    """What is trusted for files in folder `start`: the nearest expkit.toml upwards, and `extra`."""
    for folder in (start.absolute(), *start.absolute().parents):
        file = folder / FILE
        if file.is_file():
            return Trust((*_patterns(file), *extra), folder)
    return Trust(tuple(extra))


def _patterns(file: Path) -> tuple[str, ...]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise _wrong(file, f"cannot be read: {e}") from None
    for key in content.keys() - {"trust"}:
        raise _wrong(file, unknown("key", key, ["trust"]))
    trust = content.get("trust", [])
    if not isinstance(trust, list) or not all(isinstance(pattern, str) for pattern in trust):
        raise _wrong(file, 'trust must be a list of packages, such as trust = ["mylab.*"]')
    return tuple(trust)


def _wrong(file: Path, message: str) -> SpecError:
    return SpecError([Problem(str(file), 1, 1, "", message)])
