"""Names of checkpoints and their folders: texts with placeholders, `{run_name}/checkpoints` and `ep{epoch}-ba{batch}`.

A folder may use run_name and the placeholders of ranks; the checkpoint's own name those of the moment as well. One
checkpoint is for all ranks, so a rank in a name is rank 0.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from expkit import dist
from expkit.errors import UsageError
from expkit.trainer.checkpoint.manifest import LATEST

if TYPE_CHECKING:
    from expkit.trainer.state import State

FOLDER_PLACEHOLDERS = ("run_name", "rank", "local_rank", "world_size", "local_world_size", "node_rank")
PLACEHOLDERS = (*FOLDER_PLACEHOLDERS, "epoch", "batch", "batch_in_epoch", "sample", "sample_in_epoch", "token",
                "token_in_epoch", "total_wct", "epoch_wct", "batch_wct")  # fmt: skip


def folder_of(text: str, state: State) -> str:
    """The folder that a text with placeholders means for this run."""
    return _filled(text, _of_the_run(state))


def name_of(text: str, state: State) -> str:
    """The name of the checkpoint of this moment; the *_wct are seconds, with fractions."""
    filled = _filled(text, _of_the_run(state) | _of_the_moment(state))
    if not filled or filled.startswith(".") or set(filled) & set("/\\\n\0"):
        raise UsageError(f"the name of a checkpoint is that of one folder and does not begin with a dot, but {text!r} "
                         f"gives {filled!r}")  # fmt: skip
    if filled == LATEST:
        raise UsageError(f"no checkpoint can be called {LATEST!r}: a file of that name says which is the newest")
    return filled


def path_of(text: str, state: State) -> str:
    """A whole path, with all placeholders."""
    return _filled(text, _of_the_run(state) | _of_the_moment(state))


def uses(text: str, placeholder: str) -> bool:
    """Whether a text has this placeholder."""
    return any(field == placeholder for _, field, _, _ in _parsed(text))


def _of_the_run(state: State) -> dict[str, Any]:
    world_size = dist.world_size()
    return dict(zip(FOLDER_PLACEHOLDERS, (state.run_name, 0, 0, world_size, dist.local_world_size(), 0), strict=True))


def _of_the_moment(state: State) -> dict[str, Any]:
    now = state.timestamp
    counters = {name: getattr(now, name) for name in PLACEHOLDERS if name in now._fields}
    return {
        **counters,
        "total_wct": state.wall_s,
        "epoch_wct": state.wall_s - state.epoch_began_s,
        "batch_wct": now.train_s - state.previous_timestamp.train_s,
    }


def _filled(text: str, values: dict[str, Any]) -> str:
    made = []
    for literal, field, spec, conversion in _parsed(text):
        made.append(literal)
        if field is None:
            continue
        if field not in values or conversion:
            raise UsageError(
                f"{text!r} has no placeholder {{{field}}} that can be filled; there are: {', '.join(values)}; "
                f"{{{{ stands for a brace"
            )
        try:
            made.append(format(values[field], spec or ""))
        except ValueError as e:
            raise UsageError(f"{text!r}: {{{field}:{spec}}} cannot be written: {e}") from None
    return "".join(made)


def _parsed(text: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(string.Formatter().parse(text))
    except ValueError as e:
        raise UsageError(f"{text!r} is no text with placeholders: {e}") from None
