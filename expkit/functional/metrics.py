"""Metrics that add up over batches of any size: sums and counts, so that a short last batch weighs what it holds."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from expkit.functional.losses import is_soft, soft_cross_entropy


class Mean(ABC):
    """A sum over samples and their number; subclasses say what is summed. Reads nothing back before `compute`."""

    def __init__(self, class_axis: int = 1, shift: int = 0) -> None:
        """Where outputs have their classes, and how many places outputs are ahead of targets; see `aligned`."""
        self._class_axis, self._shift = class_axis, shift
        self.reset()

    def reset(self) -> None:
        """Forget everything seen."""
        self.total: Tensor | float = 0.0
        self.count: Tensor | int = 0

    def update(self, outputs: Tensor, targets: Tensor) -> None:
        """Take in one batch."""
        total, count = self.sums(*aligned(outputs, targets, self._class_axis, self._shift))
        self.total = self.total + total
        self.count = self.count + count

    def compute(self) -> float:
        """The mean of all samples since the last reset, NaN where there were none."""
        count = int(self.count)
        return float(self.total) / count if count else float("nan")

    def totals(self) -> list[float]:
        """Sum and number of samples; those of several ranks add up."""
        return [float(self.total), float(self.count)]

    def set_totals(self, totals: list[float]) -> None:
        """Go on from here."""
        self.total, self.count = totals[0], round(totals[1])

    @abstractmethod
    def sums(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor | int]:
        """Sum over the batch and the number of places it went over."""


class Accuracy(Mean):
    """Share of places whose largest output is the target, or the target's largest probability. Ties: first class."""

    def sums(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor | int]:
        ids = targets.argmax(1) if is_soft(outputs, targets) else targets
        counted = ids != -100
        return precise(((outputs.argmax(1) == ids) & counted).sum()), counted.sum()


class CrossEntropy(Mean):
    """Mean cross-entropy in nats over all places."""

    def sums(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor | int]:
        total = precise(soft_cross_entropy(outputs.float(), targets, reduction="sum"))
        if is_soft(outputs, targets):
            return total, targets.numel() // targets.shape[1]
        return total, (targets != -100).sum()


def aligned(outputs: Tensor, targets: Tensor, class_axis: int = 1, shift: int = 0) -> tuple[Tensor, Tensor]:
    """Outputs with their classes on axis 1, and place t of outputs beside place t + shift of targets.

    Outputs (B, T, C) and ids (B, T) with class_axis -1 and shift 1 become (B, C, T - 1) and (B, T - 1).
    """
    soft = targets.is_floating_point() and targets.shape == outputs.shape
    if class_axis != 1:
        outputs = outputs.movedim(class_axis, 1)
        targets = targets.movedim(class_axis, 1) if soft else targets
    if shift:
        outputs = outputs[:, :, :-shift]
        targets = targets[:, :, shift:] if soft else targets[:, shift:]
    return outputs, targets


def precise(total: Tensor) -> Tensor:
    """In double precision, where it is or, from a device that has none, on the CPU."""
    return total.cpu().double() if total.device.type == "mps" else total.double()  # which has no double precision


def classification() -> dict[str, Mean]:
    """The metrics of a classifier, fresh."""
    return {"accuracy": Accuracy(), "cross_entropy": CrossEntropy()}
