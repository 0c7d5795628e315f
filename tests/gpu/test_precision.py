"""Precision on a device: numbers of forward passes, compilation, activations computed twice."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from expkit.functional.gpt import GPT
from tests.gpu.test_trainer import tokens, trained
from tests.trainer.doubles import batches, trainer, weights
from tests.trainer.test_precision import Watched


def test_bf16_runs_forward_in_bf16_and_keeps_the_rest_in_fp32(device: str) -> None:
    model = Watched()
    done = trainer(model, device=device, precision="amp_bf16", eval_dataloader=batches(2))
    done.fit()
    assert model.seen == {("train", torch.bfloat16), ("eval", torch.bfloat16), ("loss", torch.float32)}
    assert {p.dtype for p in model.parameters()} | {p.grad.dtype for p in model.parameters() if p.grad is not None} == (
        {torch.float32}
    )


def test_bf16_learns_what_fp32_learns_but_for_rounding(device: str) -> None:
    full, half = trained(device), trained(device, precision="amp_bf16")
    assert full.state.train_loss == pytest.approx(half.state.train_loss, rel=2e-2)


def test_no_switch_of_torch_is_touched(device: str) -> None:
    def switches() -> Any:
        return (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32,
                torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.benchmark)  # fmt: skip

    before = switches()
    trained(device)
    assert switches() == before


def test_compiled_training_is_the_same_and_its_compilation_is_on_a_clock_of_its_own(device: str) -> None:
    plain, compiled = trained(device), trained(device, compile={"backend": "aot_eager"})
    assert torch.allclose(weights(plain), weights(compiled), atol=1e-5)
    assert compiled.clocks["compile_s"] > compiled.clocks["train_s"]


def test_activations_computed_twice_change_no_bit(device: str) -> None:
    done = []
    for parts in (False, True):
        torch.manual_seed(0)
        model = GPT(20, 16, 3, 2, 32, dropout=0.2)
        done.append(trainer(model, device=device, activation_checkpointing=parts, deterministic_mode=True,
                            train_dataloader=tokens(), precision="amp_bf16"))  # fmt: skip
        done[-1].fit()
    assert torch.equal(weights(done[0]), weights(done[1]))
