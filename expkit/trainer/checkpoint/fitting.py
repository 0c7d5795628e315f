"""Fitting: whether a checkpoint fits a training, part by part and name by name, before anything is changed."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from expkit.errors import CheckpointError, UsageError
from expkit.trainer.checkpoint.stateful import Differences

_NAMED = 8
"""So many names stand in a sentence, the rest is counted."""
_MAY_DIFFER = ("callbacks/", "loggers/", "rng", "scaler", "clocks", "loader")
"""Parts that may be here and not there: they change no training, or depend on the machine."""


class Ignored:
    """Globs over paths, joined by slashes; what one matches is ignored with all below it."""

    def __init__(self, patterns: Sequence[str]) -> None:
        if isinstance(patterns, str):  # each of its letters would be a pattern, and * matches everything
            raise UsageError(f"load_ignore_keys must be a list of patterns, but got {patterns!r}; write [{patterns!r}]")
        self._patterns = patterns
        self._used: set[str] = set()

    def without(self, tree: dict[str, Any], path: str = "") -> dict[str, Any]:
        """A tree without what is ignored."""
        kept = {}
        for key, value in tree.items():
            below = f"{path}/{key}" if path else str(key)
            if not self._match(below):
                kept[key] = self.without(value, below) if isinstance(value, dict) else value
        return kept

    def covers(self, path: str) -> bool:
        """Whether a path, or one above it, is ignored."""
        steps = path.split("/")
        return any(self._match("/".join(steps[: i + 1])) for i in range(len(steps)))

    def warn(self, address: str, parts: Iterable[str]) -> None:
        """Say which patterns matched nothing, neither there nor here; `parts`: what paths begin with."""
        for pattern in self._patterns:
            if pattern not in self._used:
                known = ", ".join(sorted(parts))
                warnings.warn(f"load_ignore_keys: nothing in {address} matches {pattern!r}; paths are like "
                              f"model/<name of a weight> and begin with one of {known}", stacklevel=2)  # fmt: skip

    def _match(self, path: str) -> bool:
        hits = [pattern for pattern in self._patterns if fnmatchcase(path, pattern)]
        self._used.update(hits)
        return bool(hits)


@dataclass
class Fit:
    """How what was saved goes with what is trained here, in sentences."""

    never: list[str] = field(default_factory=list)
    """What can never be taken up."""
    one_sided: list[str] = field(default_factory=list)
    """What only one side has."""
    nothing: bool = False
    """Whether there is a model on both sides, and not one name in common."""

    def refusal(self, *, strict: bool) -> str:
        """Why it is not taken up; empty where it is."""
        if self.never:
            hint = "what load_ignore_keys matches, such as model/<name>, stays as it is here"
            return "; ".join([*self.never[:_NAMED], *(self.one_sided if strict else []), hint])
        if self.one_sided and (strict or self.nothing):
            hint = "no weight of it would be taken" if self.nothing else "load_strict=False takes what fits"
            return "; ".join([*self.one_sided, hint])
        return ""


def fit_of(
    parts: Mapping[str, Any], tree: Mapping[str, Any], address: str, *, ignored: Ignored, weights_only: bool
) -> Fit:
    """Compare the parts here with the tree of a checkpoint; nothing is changed."""
    absent = [name for name, part in parts.items() if name not in tree and _says(part)]
    missing = [name for name in absent if not ignored.covers(name)]
    unexpected = [] if weights_only else sorted(tree.keys() - parts.keys())
    fit = Fit(one_sided=_sentences("it", *(_that_matter(names) for names in (missing, unexpected))))
    for name in sorted(parts.keys() & tree.keys()):
        with naming(f"checkpoint {address} cannot be taken up: {name}"):
            found = parts[name].differences(tree[name]) if hasattr(parts[name], "differences") else Differences()
        lacking = [key for key in found.missing if not ignored.covers(f"{name}/{key}")]
        fit.one_sided += _sentences(f"its {name}", lacking, found.unexpected)
        fit.never += [f"{name}: {sentence}" for sentence in found.wrong]
        if name == "model":
            fit.nothing = bool(lacking) and len(found.unexpected) == len(tree[name]) > 0
    return fit


def _that_matter(names: Sequence[str]) -> list[str]:
    return [name for name in names if not name.startswith(_MAY_DIFFER)]


def _sentences(whose: str, missing: list[str], unexpected: list[str]) -> list[str]:
    said = []
    if missing:
        said.append(f"{whose} lacks {listed(missing)}")
    if unexpected:
        said.append(f"{whose} has {listed(unexpected)}, unknown here")
    return said


def listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _says(part: Any) -> bool:
    return bool(part.state_dict())


@contextlib.contextmanager
def naming(what: str) -> Iterator[None]:
    """Whatever a part says to a state that it cannot take becomes one sentence."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as e:
        said = (str(e).splitlines() or [""])[0]
        raise CheckpointError(f"{what}: {said if type(e) is ValueError else f'{type(e).__name__} {said}'}") from e
