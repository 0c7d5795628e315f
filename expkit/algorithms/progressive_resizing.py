"""Progressive resizing: cheap small images first, whole ones at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class ProgressiveResizing(Algorithm):
    """Trains on images that grow from `initial_scale` to their full size; saves time where convolutions cost it."""

    requires = frozenset({"images"})
    after = frozenset({"selective_backprop"})
    changes_batch = True
    paper = "Howard 2018, fast.ai; Karras et al. 2017, Progressive Growing of GANs, arXiv 1710.10196"

    mode: Literal["resize", "crop"] = "resize"
    """`resize` shrinks the whole image, `crop` cuts a window out of it, one for the whole batch."""
    initial_scale: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Scale of height and width at the start; 1 changes nothing."""
    finetune_fraction: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of training, at its end, on whole images."""
    delay_fraction: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of training, at its start, at the initial scale."""
    size_increment: Annotated[int, Field(ge=1)] = 4
    """Height and width are rounded to a multiple of so many pixels."""
    resize_targets: bool = False
    """Whether targets are images of class ids that shrink along."""
    _size: Any = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delay_fraction + self.finetune_fraction > 1 + 1e-9:  # 0.9 + 0.1 may come out above 1
            raise ValueError(
                f"delay_fraction + finetune_fraction must be at most 1, but got {self.delay_fraction} + "
                f"{self.finetune_fraction}"
            )

    def after_dataloader(self, state: Any, logger: Any) -> None:
        from expkit.functional import progressive_resizing as functional

        if getattr(state.inputs, "ndim", 0) != 4:
            return  # no image to shrink
        scale = functional.scale_at(state.progress, self.initial_scale, self.delay_fraction, self.finetune_fraction)
        height, width = full = tuple(state.inputs.shape[-2:])
        size = (
            functional.size_at(height, scale, self.size_increment),
            functional.size_at(width, scale, self.size_increment),
        )
        if size != self._size:
            self._size = size
            logger.log_metrics({f"progressive_resizing/{name}": float(side)
                                for name, side in zip(("height", "width"), size, strict=True)})  # fmt: skip
        if size != full:
            self._shrink(state, full, size)
            self.effective = True

    def state_dict(self) -> dict[str, Any]:
        """The size that was logged last, so that a resumed training logs it no second time."""
        return {"size": self._size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._size = state["size"]

    def _shrink(self, state: Any, full: tuple[int, int], size: tuple[int, int]) -> None:
        from expkit.functional import progressive_resizing as functional

        if self.mode == "resize":
            state.inputs = functional.resize(state.inputs, *size)
            if self.resize_targets:
                state.targets = functional.resize_labels(state.targets, *size)
            return
        corner = functional.crop_corner(*full, *size, state.rng("progressive_resizing", state.timestamp.batch))
        state.inputs = functional.crop(state.inputs, *corner, *size)
        if self.resize_targets:
            state.targets = functional.crop(state.targets, *corner, *size)
