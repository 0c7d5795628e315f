"""The face as a user of Composer meets it: one import, one constructor, one fit."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.errors import SpecError, UsageError
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


def test_a_name_that_is_not_there_is_an_attribute_error_with_the_nearest() -> None:
    import expkit

    with pytest.raises(AttributeError, match="has no attribute 'Trainr'; did you mean 'Trainer'"):
        expkit.Trainr  # noqa: B018
    with pytest.raises(AttributeError, match=r"expkit.algorithms.*ColOutt.*did you mean 'ColOut'"):
        expkit.algorithms.ColOutt  # noqa: B018
    with pytest.raises(AttributeError, match="'early_stoper'; did you mean 'EarlyStopper'"):
        expkit.callbacks.early_stoper  # noqa: B018
    with pytest.raises(AttributeError, match="'Tensorboard'; there are: Console, Memory, "):
        expkit.loggers.Tensorboard  # noqa: B018


def test_notebooks_can_complete_the_names_of_the_face() -> None:
    import expkit

    assert {"Trainer", "Evaluator", "DataSpec", "Algorithm", "Callback", "algorithms"} <= set(dir(expkit))
    assert {"EarlyStopper", "SpeedMonitor"} <= set(dir(expkit.callbacks))
    for name in ("Algorithm", "Callback", "DataSpec", "Evaluator", "Event", "LoggerDestination"):
        assert getattr(expkit, name).__name__ == name


def test_the_state_is_printed_in_a_line() -> None:
    done = trainer(max_duration="1ep")
    done.fit()
    assert repr(done.state) == "<State of Net on cpu: epoch 1, batch 4 of 1ep>"


def test_one_plugin_needs_no_list() -> None:
    from expkit import algorithms, callbacks, loggers

    memory = loggers.Memory()
    made = trainer(algorithms=algorithms.EMA(half_life="2ba"), callbacks=callbacks.LRMonitor(), loggers=memory)
    assert [*made.state.algorithms, *made.state.callbacks] == ["ema", "lr_monitor"]
    assert made.logger.destinations == (memory,)
    assert trainer(callbacks=(one for one in [callbacks.LRMonitor()]), loggers=None).state.callbacks.keys() == {
        "lr_monitor"
    }


def test_what_is_no_plugin_of_its_kind_is_refused_by_name() -> None:
    from expkit import algorithms, callbacks

    with pytest.raises(UsageError, match=r"callbacks are instances, but LRMonitor is a class; write LRMonitor\(...\)"):
        trainer(callbacks=[callbacks.LRMonitor])
    with pytest.raises(UsageError, match=r"callbacks are instances of expkit.Callback, but there is EMA\(.*\(EMA\)"):
        trainer(callbacks=[algorithms.EMA(half_life="2ba")])
    with pytest.raises(UsageError, match=r"loggers are instances of expkit.LoggerDestination, .* 'console' \(str\)"):
        trainer(loggers=["console"])
    with pytest.raises(UsageError, match=r"algorithms are instances of expkit.Algorithm, but there is 'ema'"):
        trainer(algorithms="ema")


def test_the_same_instance_twice_would_act_twice_and_is_refused() -> None:
    from expkit import algorithms, loggers

    ema, memory = algorithms.EMA(half_life="2ba"), loggers.Memory()
    with pytest.raises(UsageError, match="algorithms have one EMA twice, as ema and ema_2"):
        trainer(algorithms=[ema, ema])
    with pytest.raises(UsageError, match="loggers have one Memory twice"):
        trainer(callbacks=[memory], loggers=[memory])


def test_two_loggers_of_a_kind_both_record_wherever_they_were_given() -> None:
    from expkit import loggers

    one, other = loggers.Memory(), loggers.Memory()
    trainer(callbacks=[one], loggers=[other], max_duration="1ep").fit()
    assert len(one.series["train/loss"]) == len(other.series["train/loss"]) == 4


def test_a_save_interval_that_is_no_time_names_the_argument(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="save_interval: "):
        trainer(save_folder=tmp_path, save_interval="1 epoch")
