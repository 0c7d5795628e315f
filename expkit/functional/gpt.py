"""A decoder-only transformer as GPT-2 has it: learned places, normalisation before each part, tied embeddings.

Radford et al. 2019, Language Models are Unsupervised Multitask Learners.
N sequences, T places, D width, H heads, K width of a head, C characters or other tokens of the vocabulary.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from expkit.functional.flops import training_flops
from expkit.functional.losses import soft_cross_entropy
from expkit.functional.metrics import Mean, classification


class Attention(nn.Module):
    """Every place looks at itself and at those before it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x_NTD: Tensor) -> Tensor:
        q_NHTK, k_NHTK, v_NHTK = self.qkv(x_NTD).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        seen_NHTK = F.scaled_dot_product_attention(q_NHTK, k_NHTK, v_NHTK, dropout_p=dropout, is_causal=True)
        return self.out(seen_NHTK.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention, then two layers at each place, each added to what it was given."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.drop: nn.Module = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x_NTD: Tensor) -> Tensor:
        x_NTD = x_NTD + self.drop(self.attention(self.norm1(x_NTD)))
        return x_NTD + self.drop(self.contract(F.gelu(self.expand(self.norm2(x_NTD)))))  # type: ignore[no-any-return]


class GPT(nn.Module):
    """Logits (N, C, T) of the next token at each place of ids (N, T), T up to `context_length`."""

    def __init__(
        self, vocab_size: int, context_length: int, layers: int, heads: int, width: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.tokens = nn.Embedding(vocab_size, width)  # the output layer as well
        self.places = nn.Embedding(context_length, width)
        self.drop: nn.Module = nn.Dropout(dropout) if dropout else nn.Identity()
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids_NT: Tensor) -> Tensor:
        length = ids_NT.shape[1]
        if length > self.context_length:
            raise ValueError(f"sequences may have up to {self.context_length} places, but these have {length}")
        x_NTD = self.drop(self.tokens(ids_NT) + self.places.weight[:length])
        logits_NTC = F.linear(self.norm(self.blocks(x_NTD)), self.tokens.weight)
        return logits_NTC.transpose(1, 2)

    def loss(self, outputs: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
        """Mean cross-entropy of a token in nats; ids (N, T) or probabilities (N, C, T); `none` gives each one's."""
        return soft_cross_entropy(outputs, targets, reduction)

    def flops_per_batch(self, batch: tuple[Tensor, Tensor]) -> float:
        """Floating-point operations of a training step on this batch."""
        return training_flops(self, batch[0])

    def metrics(self) -> dict[str, Mean]:
        """Fresh accuracy and cross-entropy, each token counting once."""
        return classification()


@torch.no_grad()
def init_weights(module: GPT, rng: Generator | None = None) -> None:
    """As GPT-2: normal, what is added to the residual stream divided by sqrt(2 x layers), biases 0.

    The deviation is 0.55 / sqrt(width): GPT-2's 0.02 at its width of 768; with 0.02 a net of width 64 learns slower.
    """
    std = 0.55 / math.sqrt(module.tokens.embedding_dim)
    for name, part in module.named_modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            added = name.endswith(("attention.out", "contract"))
            nn.init.normal_(part.weight, std=std / math.sqrt(2 * len(module.blocks)) if added else std, generator=rng)
        if isinstance(part, nn.Linear):
            nn.init.zeros_(part.bias)
