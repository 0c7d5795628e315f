"""Austen: six novels, character by character, that ship with the package; see austen_data/NOTICE.

Train is the first five novels, 3,558,189 characters; of Persuasion, held out, the first half is validation and the
second half test, 233,427 characters each. A count of pairs reaches 2.45 nats a character on validation, a count of
triples 1.98. Loading takes 60 ms, once a process.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.errors import EnvironmentFault
from expkit.trainer.contracts import Dataset, Loader

FILE = Path(__file__).parent / "austen_data" / "austen.txt.gz"
SHA256 = "41239380482cdb53c30625690eaf164c9cd63b93487ca5fa2aab6c57b0f05ca2"
SPLITS = {
    "train": slice(0, 3_558_189),
    "validation": slice(3_558_189, 3_791_616),
    "test": slice(3_791_616, 4_025_043),
}
"""Where each part stands in the file, in characters."""
VOCABULARY = "\n !\"&'()*,-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz£"
"""All characters of the file, sorted; a character's id is its place here."""


@dataclass
class Austen(Dataset):
    """English prose as ids of its 81 characters: windows (N, T) int64, and as targets each one's next character."""

    split: Literal["train", "validation", "test"] = "train"
    """Which part: five novels, or one half of the sixth."""
    batch_size: Annotated[int, Field(ge=1)] = 32
    """Windows of a batch, summed over ranks."""
    sequence_length: Annotated[int, Field(ge=1)] = 128
    """Characters of a window. Windows do not overlap; the rest of the text that fills none is left out."""
    shuffle: bool = False
    """Whether every epoch has an order of its own, and an offset at which its first window begins."""
    characters: Annotated[int | None, Field(ge=1)] = None
    """How many characters of the split are predicted, from its start; all where none is given."""

    provides = frozenset({"sequences"})

    def __post_init__(self) -> None:
        super().__post_init__()
        least, there = self.sequence_length + self._num_offsets() - 1, _num_targets(self.split)
        if not least <= (wanted := self._num_characters()) <= there:
            raise ValueError(
                f"characters must be from {least:,}, one window wherever it begins, to {there:,}, all that "
                f"{self.split} has to predict, but got {wanted:,}"
            )

    def build(self, *, seed: int, rank: int = 0, world_size: int = 1) -> Loader:
        from expkit.functional.tensor_loader import TensorLoader

        text = _ids()[SPLITS[self.split]]
        inputs, targets = (part.unfold(0, self.sequence_length, 1) for part in (text[:-1], text[1:]))  # views
        return TensorLoader(
            inputs, targets, self.batch_size, order=functools.partial(self._starts, seed),
            num_samples=self._num_windows(), rank=rank, world_size=world_size,
        )  # fmt: skip

    def _num_characters(self) -> int:
        return _num_targets(self.split) if self.characters is None else self.characters

    def _num_offsets(self) -> int:
        return self.sequence_length if self.shuffle else 1

    def _num_windows(self) -> int:
        """The same in every epoch: whatever the offset, so many fit."""
        return (self._num_characters() - self._num_offsets() + 1) // self.sequence_length

    def _starts(self, seed: int, epoch: int) -> Any:
        """Where the windows of an epoch begin, in the order in which they come."""
        import torch

        from expkit.trainer.streams import generator

        if not self.shuffle:
            return torch.arange(self._num_windows()) * self.sequence_length
        rng = generator(seed, "data", epoch)
        offset = torch.randint(self._num_offsets(), (), generator=rng)
        return offset + self.sequence_length * torch.randperm(self._num_windows(), generator=rng)


def _num_targets(split: str) -> int:
    return SPLITS[split].stop - SPLITS[split].start - 1  # the first character follows nothing


@functools.cache
def _ids(file: Path = FILE) -> Any:
    """The whole text as ids (4025043,) int64, a torch tensor."""
    import numpy as np
    import torch

    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise EnvironmentFault(f"{file} is not the file that was shipped: sha256 {found}, but {SHA256} is expected")
    id_of = np.zeros(256, dtype=np.int64)
    id_of[np.frombuffer(VOCABULARY.encode("latin-1"), dtype=np.uint8)] = np.arange(len(VOCABULARY))
    text = gzip.decompress(content).decode().encode("latin-1")  # a byte a character
    return torch.from_numpy(id_of[np.frombuffer(text, dtype=np.uint8)])
