"""Sequence-length warm-up: short sequences first, which cost less and keep early training steady."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class SeqLengthWarmup(Algorithm):
    """Trains on sequences that grow to their full length; saves time where attention costs it."""

    requires = frozenset({"sequences"})
    after = frozenset({"selective_backprop"})
    changes_batch = True
    paper = "Li et al. 2021, The Stability-Efficiency Dilemma: Sequence Length Warmup for GPT, arXiv 2108.06084"

    duration: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Share of training, at its start, in which sequences grow; 0 changes nothing."""
    min_seq_length: Annotated[int, Field(ge=1)] = 8
    """Tokens of a sequence at the start; shorter ones stay as they are."""
    max_seq_length: Annotated[int, Field(ge=1)] | None = None
    """Tokens of a sequence once it has grown; all that the data have where it is not given."""
    step_size: Annotated[int, Field(ge=1)] = 8
    """By how many tokens it grows at a time."""
    truncate: bool = True
    """Whether tokens beyond the length are left out; if not, sequences are cut into more and shorter ones."""
    _length: Any = field(default=None, init=False, repr=False, compare=False)
    _said: Any = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_seq_length is not None and self.max_seq_length < self.min_seq_length:
            raise ValueError(
                f"max_seq_length must be at least min_seq_length, but got {self.max_seq_length} < {self.min_seq_length}"
            )

    def after_dataloader(self, state: Any, logger: Any) -> None:
        from expkit.functional import seq_length_warmup as functional
        from expkit.trainer.batch import are_tokens

        inputs = state.inputs
        if not are_tokens(inputs):
            self._say_that_there_are_no_tokens(inputs)
            return
        full = inputs.shape[1]
        longest = min(full, self.max_seq_length or full)
        length = functional.length_at(state.progress, self.duration, self.min_seq_length, longest, self.step_size)
        if length != self._length:
            self._length = length
            logger.log_metrics({"seq_length_warmup/length": float(length)})
        if length < full:
            self._shorten(state, inputs, length)
            self.effective = True

    def state_dict(self) -> dict[str, Any]:
        """The length that was logged last, so that a resumed training logs it no second time."""
        return {"length": self._length}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._length = state["length"]

    def _shorten(self, state: Any, inputs: Any, length: int) -> None:
        """All that has a number for each token goes along: targets, masks of attention."""
        from expkit.functional import seq_length_warmup as functional
        from expkit.trainer.batch import mapped

        shorten = functional.truncate if self.truncate else functional.cut
        state.batch = mapped(
            lambda leaf: shorten(inputs, leaf, length)[1] if getattr(leaf, "shape", ()) else leaf, state.batch
        )

    def _say_that_there_are_no_tokens(self, inputs: Any) -> None:
        if not self._said:
            self._said = True
            shape = list(getattr(inputs, "shape", ()))
            warnings.warn(
                f"seq_length_warmup found no sequences and has no effect: inputs of shape {shape} are no token ids",
                stacklevel=1,
            )
