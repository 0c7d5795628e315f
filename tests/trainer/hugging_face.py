"""Doubles of Hugging Face's models: plain modules, labels in the batch, a mapping of loss and logits out."""

from __future__ import annotations

import collections
from typing import Any

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

VOCABULARY = 11


class Output(collections.OrderedDict):  # type: ignore[type-arg]
    """Their ModelOutput: a mapping with attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class ForCausalLM(nn.Module):
    """Logits (B, L, V); its loss is the mean over labels[:, 1:] that are not -100."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(VOCABULARY, 6), nn.Linear(6, VOCABULARY)

    def forward(self, input_ids: Any, labels: Any = None) -> Output:
        logits = self.head(self.embedding(input_ids).cumsum(1))
        if labels is None:
            return Output(logits=logits)
        return Output(loss=cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()), logits=logits)


class ForSequenceClassification(nn.Module):
    """Logits (B, K); what its labels are decides its loss, as in theirs."""

    def __init__(self, num_labels: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(VOCABULARY, 6), nn.Linear(6, num_labels)

    def forward(self, input_ids: Any, labels: Any = None) -> Output:
        logits = self.head(self.embedding(input_ids).mean(1))
        if labels is None:
            return Output(logits=logits)
        if not labels.is_floating_point():
            return Output(loss=cross_entropy(logits, labels), logits=logits)
        if logits.shape[1] == 1:
            return Output(loss=mse_loss(logits.squeeze(1), labels), logits=logits)
        return Output(loss=binary_cross_entropy_with_logits(logits, labels), logits=logits)


def sentences(labels: str = "ids", sizes: tuple[int, ...] = (6, 6, 2)) -> list[dict[str, Any]]:
    """Batches of sequences of 9, the ends of some padded with -100; or with a class, a value or three marks each."""
    draw = torch.Generator().manual_seed(4)
    made = []
    for size in sizes:
        ids = torch.randint(VOCABULARY, (size, 9), generator=draw)
        lengths = torch.randint(3, 10, (size, 1), generator=draw)
        given = {"ids": ids.masked_fill(torch.arange(9) >= lengths, -100), "class": ids[:, 0] % 3,
                 "value": ids[:, 0] / VOCABULARY, "marks": (ids[:, :3] > 5).float()}  # fmt: skip
        made.append({"input_ids": ids, "labels": given[labels]})
    return made
