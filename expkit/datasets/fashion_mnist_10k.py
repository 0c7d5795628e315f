"""Fashion-MNIST-10k: a subset of Fashion-MNIST that ships with the package; see fashion_mnist_10k_data/NOTICE.

1,000 train and 500 test images a class, the first of each in upstream order. The last 200 train images of each class
are the validation split: 8,000 / 2,000 / 5,000. Loading takes 80 ms, once a process.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from expkit.errors import EnvironmentFault
from expkit.trainer.contracts import Dataset, Loader

FILE = Path(__file__).parent / "fashion_mnist_10k_data" / "fashion_mnist_10k.npz"
SHA256 = "3e6efb42c5bd693ccd3cc5f8d289de7da7458c385fb3d2fadd12a1cb44ff3c48"
NUM_VALIDATION = 200
"""Images of each class of train that are kept for validation."""
MEAN, STD = 0.2864, 0.3537
"""Of the pixels (0 to 1) of the train split."""


@dataclass
class FashionMNIST10k(Dataset):
    """Small grey images of ten kinds of clothing, normalised, (N, 1, 28, 28), with class ids."""

    split: Literal["train", "validation", "test"] = "train"
    """Which part: 8,000, 2,000 or 5,000 images."""
    batch_size: Annotated[int, Field(ge=1)] = 128
    """Images of a batch, summed over ranks."""
    shuffle: bool = False
    """Whether every epoch has an order of its own, drawn from the seed."""
    drop_last: bool = False
    """Whether a smaller last batch is left out."""

    provides = frozenset({"images"})

    def build(self, *, seed: int, rank: int = 0, world_size: int = 1) -> Loader:
        from expkit.functional.tensor_loader import TensorLoader

        images, labels = _split(self.split)
        order = functools.partial(_shuffled, len(labels), seed) if self.shuffle else None
        return TensorLoader(
            images, labels, self.batch_size, order=order, drop_last=self.drop_last, rank=rank, world_size=world_size
        )


def _shuffled(num_samples: int, seed: int, epoch: int) -> Any:
    import torch

    from expkit.trainer.streams import generator

    return torch.randperm(num_samples, generator=generator(seed, "data", epoch))


@functools.cache
def _split(split: str) -> tuple[Any, Any]:
    """Normalised images (N, 1, 28, 28) float32 and labels (N,) int64 of one split, as torch tensors."""
    import torch

    pixels, labels = _arrays("test" if split == "test" else "train")
    if split != "test":
        chosen = _is_validation(labels) == (split == "validation")
        pixels, labels = pixels[chosen], labels[chosen]
    images = torch.from_numpy(pixels).unsqueeze(1).float().div_(255).sub_(MEAN).div_(STD)
    return images, torch.from_numpy(labels).long()


def _is_validation(labels: Any) -> Any:
    import numpy as np

    held_out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        held_out[np.flatnonzero(labels == label)[-NUM_VALIDATION:]] = True
    return held_out


@functools.cache
def _arrays(part: str, file: Path = FILE) -> tuple[Any, Any]:
    """Pixels (N, 28, 28) and labels (N,) of the train or test part, uint8."""
    import io

    import numpy as np

    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()  # 5 ms
    if found != SHA256:
        raise EnvironmentFault(f"{file} is not the file that was shipped: sha256 {found}, but {SHA256} is expected")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return archive[f"x_{part}"], archive[f"y_{part}"]
