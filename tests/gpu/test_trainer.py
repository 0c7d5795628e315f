"""The trainer on a device: the same training as on a CPU but for rounding, the same bits as itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from expkit import plugins
from expkit.algorithms.ema import EMA
from expkit.callbacks.speed_monitor import SpeedMonitor
from expkit.errors import UsageError
from expkit.functional.gpt import GPT
from expkit.functional.resnet import ResNet
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, net, trainer, weights

METHODS = plugins.names("algorithms")


def trained(device: str, dropout: float = 0.0, **settings: Any) -> Trainer:
    done = trainer(net(dropout), device=device, eval_dataloader=batches(2), **settings)
    done.fit()
    return done


def test_everything_lies_on_the_device(device: str) -> None:
    memory = Memory()
    done = trained(device, loggers=[memory], callbacks=[SpeedMonitor(window_size=2)], algorithms=[EMA(half_life="2ba")])
    held = [*done.state.model.parameters(), *(s["momentum_buffer"] for s in done.state.optimizer.state.values())]
    assert {tensor.device.type for tensor in held} == {device}
    assert len(memory.series("train/loss")) == 8
    assert [batch for batch, _ in memory.series("eval/accuracy")] == [4, 8]
    assert done.clocks["train_s"] > 0 < done.clocks["eval_s"]


def test_a_device_learns_what_a_cpu_learns_but_for_rounding(device: str) -> None:
    there, here = trained(device), trained("cpu")
    assert torch.allclose(weights(there).cpu(), weights(here), atol=1e-5)
    assert there.state.train_loss == pytest.approx(here.state.train_loss, rel=1e-4)
    assert there.state.metrics.keys() == here.state.metrics.keys()


def test_the_same_training_twice_has_the_same_bits(device: str) -> None:
    once, again = (trained(device, 0.3, deterministic_mode=True) for _ in range(2))
    assert torch.equal(weights(once), weights(again))
    assert once.state.metrics == again.state.metrics


def test_in_two_fits_it_is_what_it_is_in_one_also_with_dropout(device: str) -> None:
    once = trained(device, 0.3, deterministic_mode=True, max_duration="7ba")
    twice = trained(device, 0.3, deterministic_mode=True, max_duration="3ba")
    twice.fit("4ba")
    assert torch.equal(weights(once), weights(twice))


def test_evaluation_and_prediction_alone(device: str) -> None:
    done = trained(device)
    assert done.eval() == pytest.approx({k: v for k, v in done.state.metrics.items() if k.startswith("eval/")})
    outputs = done.predict(batches(2))
    assert [tuple(output.shape) for output in outputs] == [(6, 4), (6, 4)]
    assert {output.device.type for output in outputs} == {"cpu"}


@pytest.mark.parametrize("then", ["there", "cpu"])
def test_a_checkpoint_goes_on_there_to_the_bit_and_on_a_cpu_but_for_rounding(
    then: str, device: str, tmp_path: Path
) -> None:
    whole = trained(device, 0.0 if then == "cpu" else 0.3, deterministic_mode=True, max_duration="7ba")
    begun = trained(device, 0.0 if then == "cpu" else 0.3, deterministic_mode=True, max_duration="3ba")
    path = begun.save_checkpoint(tmp_path / "saved")
    ended = trained(device if then == "there" else "cpu", 0.0 if then == "cpu" else 0.3, deterministic_mode=True,
                    max_duration="7ba", load_path=path)  # fmt: skip
    assert ended.state.timestamp.batch == 7
    if then == "there":
        assert torch.equal(weights(ended), weights(whole))
    assert torch.allclose(weights(ended).cpu(), weights(whole).cpu(), atol=1e-5)


def images(count: int = 4) -> list[Any]:
    draw = torch.Generator().manual_seed(2)
    return [(torch.randn(8, 3, 16, 16, generator=draw), torch.arange(8) % 4) for _ in range(count)]


def tokens(count: int = 4) -> list[Any]:
    draw = torch.Generator().manual_seed(2)
    return [_shifted(torch.randint(0, 20, (8, 17), generator=draw)) for _ in range(count)]


def _shifted(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_there(name: str, device: str) -> None:
    method = plugins.build("algorithms", name, {})
    wants_tokens = "sequences" in getattr(method, "requires", ())
    torch.manual_seed(0)
    model: Any = GPT(20, 16, 1, 2, 16) if wants_tokens else ResNet(8, 16, 1, 4, 3)
    data = tokens() if wants_tokens else images()
    done = trainer(model, device=device, algorithms=[method], train_dataloader=data, max_duration="8ba",
                   eval_dataloader=data[:1])  # fmt: skip
    done.fit()
    assert not done.diverged
    assert {p.device.type for p in done.state.model.parameters()} == {device}


def test_a_device_that_is_not_here_is_named(device: str) -> None:
    with pytest.raises(UsageError, match="device is cuda:99, but torch finds"):
        trainer(device="cuda:99")
    assert trainer(device="auto").state.device.type == device
