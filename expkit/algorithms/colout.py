"""ColOut: images lose random rows and columns, so that there is less to compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class ColOut(Algorithm):
    """Drops random rows and columns of training images: quicker steps and some augmentation, often less accurate."""

    requires = frozenset({"convolutions", "images"})
    after = frozenset({"selective_backprop"})
    changes_batch = True
    paper = "MosaicML 2021, ColOut in Composer; no paper"

    p_row: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """Share of the rows that are dropped."""
    p_col: Annotated[float, Field(ge=0, lt=1)] = 0.15
    """Share of the columns that are dropped."""
    batch: bool = True
    """Whether all images of a batch lose the same rows and columns (quicker), or each its own."""
    resize_target: bool | Literal["auto"] = "auto"
    """Whether targets are images that lose them too; `auto` where they have the height and width of the inputs."""

    def after_dataloader(self, state: Any, logger: Any) -> None:
        from expkit.functional import colout as functional

        inputs, targets = state.inputs, state.targets
        if getattr(inputs, "ndim", 0) != 4:
            return
        height, width = inputs.shape[-2:]
        rows, columns = functional.num_kept(height, self.p_row), functional.num_kept(width, self.p_col)
        if (rows, columns) == (height, width):
            return
        kept = [indices.to(inputs.device) for indices in self._draw(state, (height, rows), (width, columns))]
        state.inputs = functional.keep(inputs, *kept)
        if self._takes_targets(inputs, targets):
            state.targets = functional.keep(targets, *kept)
        self.effective = True

    def _draw(self, state: Any, *sizes: tuple[int, int]) -> list[Any]:
        from expkit.functional import colout as functional

        if self.batch:
            rng = state.rng("colout", state.timestamp.batch)
            return [functional.draw_kept(size, count, rng) for size, count in sizes]
        rng = state.rng("colout", state.rank, state.timestamp.batch)  # images of other ranks are other images
        return [functional.draw_kept_each(state.num_samples, size, count, rng) for size, count in sizes]

    def _takes_targets(self, inputs: Any, targets: Any) -> bool:
        same = getattr(targets, "ndim", 0) >= 3 and targets.shape[-2:] == inputs.shape[-2:]
        if self.resize_target is True and not same:
            shape = list(getattr(targets, "shape", ()))
            raise ValueError(
                f"resize_target is true, but targets {shape} have not the height and width of the "
                f"inputs {list(inputs.shape)}; use auto or false"
            )
        return same and self.resize_target is not False
