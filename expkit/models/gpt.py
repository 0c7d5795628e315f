"""GPT: a decoder-only transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from expkit.trainer.contracts import Model


@dataclass
class GPT(Model):
    """Predicts the next token at every place of a sequence, GPT-2's way; the defaults suit characters on a CPU."""

    vocab_size: Annotated[int, Field(ge=2)] = 81
    """Tokens there are: ids run from 0 to one less."""
    context_length: Annotated[int, Field(ge=1)] = 128
    """Places of the longest sequence; shorter ones go in as they are."""
    layers: Annotated[int, Field(ge=1)] = 2
    """Blocks of attention and a two-layer perceptron."""
    heads: Annotated[int, Field(ge=1)] = 2
    """Heads of each attention; divides the width."""
    width: Annotated[int, Field(ge=1)] = 64
    """Numbers that stand for one place."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of embeddings, attention weights and block outputs that each training step leaves out."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of the {self.heads} heads, but got {self.width}")

    def capabilities(self) -> frozenset[str]:
        """Attention over sequences, and dropout where there is any."""
        words = {"attention", "layernorm", "embeddings", "sequences", "soft_targets"}
        return frozenset(words | {"dropout"} if self.dropout else words)

    def build(self) -> Any:
        from expkit.functional import gpt

        module = gpt.GPT(self.vocab_size, self.context_length, self.layers, self.heads, self.width, self.dropout)
        gpt.init_weights(module)
        return module

    def example_inputs(self) -> Any:
        """Four sequences of ids as long as they may be."""
        import torch

        return torch.arange(4 * self.context_length).reshape(4, -1) % self.vocab_size
