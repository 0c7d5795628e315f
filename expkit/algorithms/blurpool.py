"""BlurPool: subsampling layers blur before they drop pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.algorithm import Algorithm


@dataclass
class BlurPool(Algorithm):
    """Makes a convolutional network steadier under shifts of the image, often more accurate, for a little more time."""

    requires = frozenset({"convolutions"})
    paper = "Zhang 2019, Making Convolutional Networks Shift-Invariant Again, arXiv 1904.11486"

    replace_convs: bool = True
    """Whether strided convolutions are blurred."""
    replace_maxpools: bool = True
    """Whether strided max-pools are blurred."""
    blur_first: bool = True
    """Whether the input of a convolution is blurred (cheap) rather than its output at full size (as in the paper)."""
    min_channels: Annotated[int, Field(ge=1)] = 16
    """Convolutions with fewer input channels stay as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.replace_convs or self.replace_maxpools):
            raise ValueError("replace_convs or replace_maxpools must be true, or there is nothing to blur")

    def init(self, state: Any, logger: Any) -> None:
        from expkit.functional.blurpool import apply_blurpool

        num_convs, num_maxpools = apply_blurpool(
            state.model, self.replace_convs, self.replace_maxpools, self.blur_first, self.min_channels
        )
        self.effective = num_convs + num_maxpools > 0
        logger.log_hyperparameters({"blurpool/num_convs": num_convs, "blurpool/num_maxpools": num_maxpools})
