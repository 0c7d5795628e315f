"""Precision that only CUDA has: fp16 with its scaler, the compiler's own kernels, memory that is really saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from expkit.functional.gpt import GPT
from expkit.trainer.trainer import Trainer
from tests.gpu.test_trainer import tokens, trained
from tests.trainer.doubles import Memory, batches, trainer, weights
from tests.trainer.test_precision import Overflows, Watched


def test_fp16_runs_forward_in_fp16_and_keeps_the_rest_in_fp32() -> None:
    model = Watched()
    done = trainer(model, device="cuda", precision="amp_fp16", eval_dataloader=batches(2))
    done.fit()
    assert model.seen == {("train", torch.float16), ("eval", torch.float16), ("loss", torch.float32)}
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_fp16_learns_what_fp32_learns_but_for_rounding() -> None:
    full, half = trained("cuda"), trained("cuda", precision="amp_fp16")
    assert full.state.train_loss == pytest.approx(half.state.train_loss, rel=1e-2)
    assert half.skipped_steps == 0


def overflowing(duration: str) -> tuple[Trainer, Memory]:
    torch.manual_seed(0)
    memory = Memory()
    return trainer(Overflows(), device="cuda", precision="amp_fp16", loggers=[memory], max_duration=duration), memory


def test_a_step_with_inf_gradients_is_left_out_counted_and_logged() -> None:
    made, memory = overflowing("2ba")
    made.fit()
    before = weights(made)
    made.fit("1ba")
    assert torch.equal(weights(made), before)
    assert memory.events == [("skipped_step", 2, {"scale": 2.0**15, "skipped": 1})]
    assert made.skipped_steps == 1
    made.fit("1ba")
    assert not torch.equal(weights(made), before)


def test_d29_the_scale_and_its_history_go_on_in_the_next_fit() -> None:
    (once, _), (twice, _) = overflowing("6ba"), overflowing("3ba")
    once.fit()
    twice.fit()
    twice.fit("3ba")
    assert once._loop.step.scaler and twice._loop.step.scaler
    assert once._loop.step.scaler.state_dict() == twice._loop.step.scaler.state_dict()
    assert torch.equal(weights(once), weights(twice))


def test_the_scale_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    (whole, _), (begun, _) = overflowing("6ba"), overflowing("4ba")
    whole.fit()
    begun.fit()
    path = begun.save_checkpoint(tmp_path / "saved")
    ended = trainer(device="cuda", precision="amp_fp16", max_duration="6ba", load_path=path)
    ended.fit()
    assert ended.skipped_steps == whole.skipped_steps == 1
    assert torch.equal(weights(ended), weights(whole))


def test_fp32_products_are_not_of_tf32() -> None:
    draw = torch.Generator().manual_seed(0)
    a, b = (torch.randn(256, 256, generator=draw, dtype=torch.float64) for _ in range(2))
    trained("cuda")
    off = (a.float().cuda() @ b.float().cuda()).cpu().double() - a @ b
    assert off.abs().max() < 1e-4  # TF32 is off by 1e-2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, on import
def test_the_compiler_itself() -> None:
    plain, compiled = trained("cuda"), trained("cuda", compile=True)
    assert torch.allclose(weights(plain), weights(compiled), atol=1e-4)
    assert compiled.clocks["compile_s"] > compiled.clocks["train_s"]


def peak_bytes(parts: Any) -> int:
    torch.manual_seed(0)
    made = trainer(GPT(20, 256, 8, 4, 128), device="cuda", activation_checkpointing=parts, max_duration="2ba",
                   train_dataloader=[(torch.randint(0, 20, (16, 256)), torch.randint(0, 20, (16, 256)))])  # fmt: skip
    torch.cuda.reset_peak_memory_stats()
    made.fit()
    return torch.cuda.max_memory_allocated()


def test_activations_computed_twice_take_less_memory() -> None:
    assert peak_bytes(True) < 0.5 * peak_bytes(False)


def test_the_device_draws_the_same_in_the_second_pass() -> None:
    class Drops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5), nn.Linear(64, 4)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)  # type: ignore[no-any-return]

    done = []
    for parts in (False, ["layers.0"]):
        torch.manual_seed(0)
        done.append(trainer(Drops(), device="cuda", activation_checkpointing=parts, deterministic_mode=True))
        done[-1].fit()
    assert torch.equal(weights(done[0]), weights(done[1]))
    assert tokens()
