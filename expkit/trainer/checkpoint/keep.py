"""Keep: which checkpoints of a folder stay, decided from what lies on disk and never from memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from expkit.trainer.checkpoint.manifest import Manifest, value_to_rank


@dataclass(frozen=True)
class Found:
    """One checkpoint of a folder."""

    name: str
    manifest: Manifest


@dataclass(frozen=True)
class Keep:
    """The last so many and the best so many; the newest always stays."""

    last: int | None = None
    """None keeps all."""
    best: int = 0
    metric: str = ""
    mode: Literal["max", "min"] = "max"


def to_remove(found: Iterable[Found], keep: Keep) -> list[str]:
    """Names of the checkpoints that go, oldest first; those that somebody asked for by their path stay uncounted."""
    if keep.last is None:
        return []
    by_age = sorted((one for one in found if not one.manifest.kept), key=lambda one: one.manifest.number)
    stay = {one.name for one in by_age[-max(1, keep.last) :]}
    stay |= {one.name for one in best_first(by_age, keep)[: keep.best]}
    return [one.name for one in by_age if one.name not in stay]


def best_first(found: Iterable[Found], keep: Keep) -> list[Found]:
    """Those evaluated at the batch that they were saved at, best value first; of equal ones the older first."""
    ranked = [(value, one) for one in found if (value := value_to_rank(one.manifest, keep.metric)) is not None]
    sign = -1 if keep.mode == "max" else 1
    return [one for value, one in sorted(ranked, key=lambda pair: (sign * pair[0], pair[1].manifest.number))]
