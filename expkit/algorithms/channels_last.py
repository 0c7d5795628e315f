"""Channels last: another memory layout of images and weights, same numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expkit.trainer.algorithm import Algorithm


@dataclass
class ChannelsLast(Algorithm):
    """Lays out convolutions and images channels last: faster on tensor cores and many CPUs, equal but for rounding."""

    requires = frozenset({"convolutions"})
    after = frozenset({"blurpool", "colout", "progressive_resizing", "selective_backprop"})
    paper = "PyTorch's tutorial Channels Last Memory Format in PyTorch, 2020; no paper"

    def init(self, state: Any, logger: Any) -> None:
        from expkit.functional.channels_last import apply_channels_last

        num_moved = apply_channels_last(state.model)
        self.effective = num_moved > 0
        logger.log_hyperparameters({"channels_last/num_tensors": num_moved})

    def after_dataloader(self, state: Any, logger: Any) -> None:
        from expkit.functional.channels_last import to_channels_last

        if self.effective:  # once here, or the first convolution does it forwards and again backwards
            state.inputs = to_channels_last(state.inputs)
