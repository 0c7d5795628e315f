from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from expkit.datasets import fashion_mnist_10k as module
from expkit.datasets.fashion_mnist_10k import FILE, SHA256, FashionMNIST10k
from expkit.errors import EnvironmentFault


def everything(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    batches = list(FashionMNIST10k(split=split, batch_size=1000).build(seed=0))  # type: ignore[arg-type]
    return torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])


@pytest.mark.parametrize(("split", "a_class"), [("train", 800), ("validation", 200), ("test", 500)])
def test_splits_have_so_many_images_of_each_class(split: str, a_class: int) -> None:
    images, labels = everything(split)
    assert images.shape == (10 * a_class, 1, 28, 28) and images.dtype == torch.float32
    assert labels.dtype == torch.int64 and torch.bincount(labels).tolist() == [a_class] * 10


def test_validation_is_the_last_200_of_each_class_of_train() -> None:
    with np.load(FILE, allow_pickle=False) as file:
        pixels, labels = file["x_train"], file["y_train"]
    validation, ids = everything("validation")
    for label in range(10):
        raw = torch.from_numpy(pixels[labels == label][-200:]).float().div(255).sub(module.MEAN).div(module.STD)
        torch.testing.assert_close(validation[ids == label][:, 0], raw)


def test_the_train_split_is_normalised() -> None:
    images, _ = everything("train")
    assert images.mean().item() == pytest.approx(0, abs=1e-3) and images.std().item() == pytest.approx(1, abs=1e-3)


def test_the_file_is_the_pinned_one_and_carries_its_notice() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256
    notice = (FILE.parent / "NOTICE").read_text()
    for words in (
        "subset of Fashion-MNIST",
        "The MIT License (MIT)",
        "Copyright (c) 2017 Zalando SE",
        "WITHOUT WARRANTY",
    ):
        assert words in notice


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    other = tmp_path / FILE.name
    other.write_bytes(FILE.read_bytes()[:-1] + b"!")
    with pytest.raises(EnvironmentFault, match="is not the file that was shipped: sha256"):
        module._arrays("train", other)


def test_epochs_shuffle_all_of_train_and_depend_on_the_seed() -> None:
    loader = FashionMNIST10k(shuffle=True, batch_size=1000).build(seed=17)
    epochs = []
    for epoch in (0, 1, 0):
        loader.set_epoch(epoch)
        epochs.append(torch.cat([y for _, y in loader]))
    assert torch.equal(epochs[0], epochs[2]) and not torch.equal(epochs[0], epochs[1])
    assert torch.bincount(epochs[1]).tolist() == [800] * 10
