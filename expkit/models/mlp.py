"""Multilayer perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.contracts import Model


@dataclass
class MLP(Model):
    """Linear layers with ReLU between them, over inputs of any shape flattened: the quickest thing that trains."""

    num_inputs: Annotated[int, Field(ge=1)] = 784
    """Numbers in one input: height x width x channels of an image."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (128,)
    """Width of each hidden layer; empty for a linear model."""
    num_classes: Annotated[int, Field(ge=2)] = 10
    """Classes to tell apart."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the hidden units that each training step leaves out."""

    def capabilities(self) -> frozenset[str]:
        """Soft targets, and dropout where there is any."""
        return frozenset({"soft_targets", *(["dropout"] if self.dropout and self.hidden else [])})

    def build(self) -> Any:
        from expkit.functional.mlp import MLP as Module

        return Module(self.num_inputs, self.hidden, self.num_classes, self.dropout)
