"""The face as a user of Composer meets it: one import, one constructor, one fit."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.errors import SpecError
from expkit.functional.resnet import ResNet
from expkit.spec.files import load_recipe
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import batches, net, trainer, weights


def images(count: int) -> Any:
    draw = torch.Generator().manual_seed(3)
    data = torch.utils.data.TensorDataset(torch.randn(count, 3, 16, 16, generator=draw), torch.arange(count) % 10)
    return torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)


def test_the_example_runs_and_a_method_for_sequences_says_once_that_it_found_none() -> None:
    from expkit import Trainer, algorithms, callbacks

    torch.manual_seed(0)
    model = ResNet(depth=8, width=16, stem_stride=2, num_classes=10, in_channels=3)
    train_dl, eval_dl = images(32), images(16)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trainer = Trainer(model=model, train_dataloader=train_dl, eval_dataloader=eval_dl, max_duration="2ep",
                          algorithms=[algorithms.ColOut(), algorithms.BlurPool(),
                                      algorithms.SeqLengthWarmup(duration=0.3)],
                          callbacks=[callbacks.SpeedMonitor(window_size=100)], loggers=[])  # fmt: skip
        trainer.fit()
    assert ["found no sequences and has no effect" in str(warning.message) for warning in said] == [True]
    assert trainer.effective == {"colout": True, "blurpool": True, "seq_length_warmup": False}
    assert trainer.state.timestamp.batch == 8
    assert set(trainer.state.metrics) == {"eval/accuracy", "eval/cross_entropy"}


RECIPE = """\
version: 1
name: images
model: {resnet: {depth: 8, width: 8, num_classes: 10, in_channels: 1}}
data:
  train: {fashion_mnist_10k: {split: train, batch_size: 128}}
  eval: {fashion_mnist_10k: {split: validation, batch_size: 500}}
optimizer: {sgd: {lr: 0.1}}
algorithms:
  colout: {}
  seq_length_warmup: {duration: 0.3}
trainer: {max_duration: 2ep}
metrics: {primary: {name: eval/accuracy, mode: max}}
"""


def test_in_a_recipe_the_same_is_refused_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(RECIPE)
    with pytest.raises(SpecError) as caught:
        load_recipe(file)
    assert f"{file}:10:3: algorithms.seq_length_warmup: seq_length_warmup requires sequences" in str(caught.value)
    file.write_text(RECIPE.replace("  seq_length_warmup: {duration: 0.3}\n", ""))
    assert list(load_recipe(file).algorithms) == ["colout"]


def test_without_an_optimizer_it_is_plain_sgd_which_is_said(caplog: pytest.LogCaptureFixture) -> None:
    given = {"train_dataloader": batches(), "max_duration": "1ep", "device": "cpu"}
    chosen = Trainer(model=net(), **given)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "no optimizer was given: training with SGD(lr=0.1, " in caplog.text
    chosen.fit()
    plain = trainer(net(), momentum=0, max_duration="1ep")
    plain.fit()
    assert torch.equal(weights(chosen), weights(plain))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import expkit

    with pytest.raises(AttributeError, match="has no attribute 'Trainr'"):
        expkit.Trainr  # noqa: B018
    with pytest.raises(AttributeError, match=r"expkit.algorithms.*ColOutt"):
        expkit.algorithms.ColOutt  # noqa: B018
