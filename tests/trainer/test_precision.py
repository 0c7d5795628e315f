"""Precision: what runs in which numbers, what is refused, and the scaler of fp16, whose code is the same on a CPU."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from expkit.errors import UsageError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.modules import who_needs_closure
from expkit.trainer.precision import Scaler, scaler_of
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, Net, batches, net, trainer, weights

CPU = torch.device("cpu")


class Watched(Net):
    """Notes the numbers its outputs, losses and evaluations are in."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, torch.dtype]] = set()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs = super().forward(x)
        self.seen.add(("train" if self.training else "eval", outputs.dtype))
        return outputs

    def loss(self, outputs: Any, targets: Any) -> Any:
        loss = nn.functional.cross_entropy(outputs, targets)
        self.seen.add(("loss", loss.dtype))
        return loss


def watched(precision: str) -> tuple[Trainer, set[Any]]:
    torch.manual_seed(0)
    model = Watched()
    done = trainer(model, precision=precision, eval_dataloader=batches(2))
    done.fit()
    return done, model.seen


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("amp_bf16", torch.bfloat16)])
def test_training_and_evaluation_run_in_the_numbers_that_were_asked_for(precision: str, dtype: torch.dtype) -> None:
    done, seen = watched(precision)
    assert seen == {("train", dtype), ("eval", dtype), ("loss", torch.float32)}
    held = [*done.state.model.parameters(), *(p.grad for p in done.state.model.parameters())]
    held += [state["momentum_buffer"] for state in done.state.optimizer.state.values()]
    assert {tensor.dtype for tensor in held} == {torch.float32}


def test_bf16_learns_what_fp32_learns_but_for_rounding() -> None:
    (full, _), (half, _) = watched("fp32"), watched("amp_bf16")
    assert not torch.equal(weights(full), weights(half))
    assert torch.allclose(weights(full), weights(half), atol=2e-2)
    assert full.state.train_loss == pytest.approx(half.state.train_loss, rel=2e-2)


def test_bf16_in_microbatches_is_bf16_in_one_but_for_rounding() -> None:
    done = [trainer(precision="amp_bf16", device_train_microbatch_size=size) for size in (None, 2)]
    for each in done:
        each.fit()
    assert torch.allclose(weights(done[0]), weights(done[1]), atol=1e-2)


def test_every_step_in_bf16_uses_the_weights_of_the_step_before_it() -> None:
    """Casts of weights are cached; they must not outlive a step."""
    done, model, losses = trainer(precision="amp_bf16", momentum=0.0), net(), []
    done.fit()
    for inputs, targets in [*batches(), *batches()]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        losses.append(loss.item())
        for parameter, grad in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            parameter.data.sub_(grad, alpha=0.1)
    assert torch.equal(weights(done), torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert done.state.train_loss == losses[-1]


@pytest.mark.parametrize("enabled", [True, False])
def test_an_autocast_around_the_trainer_is_refused(enabled: bool) -> None:
    made = trainer()
    with torch.autocast("cpu", enabled=enabled), pytest.raises(UsageError, match="must not run inside torch"):
        made.fit()
    made.fit()


@pytest.mark.parametrize(
    ("precision", "says"),
    [
        ("fp8", "precision fp8 is not offered.*use amp_bf16"),
        ("amp_fp8", "precision amp_fp8 is not offered.*use amp_bf16"),
        ("amp_fp16", "amp_fp16 needs a CUDA device, but the device is cpu; use amp_bf16 or fp32"),
        ("bf16", "unknown precision 'bf16'; did you mean 'amp_bf16'"),
    ],
)
def test_refused_in_a_sentence(precision: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(precision=precision)


def test_no_switch_of_torch_is_touched() -> None:
    def switches() -> Any:
        return (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32,
                torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.benchmark,
                torch.are_deterministic_algorithms_enabled(), torch.is_autocast_enabled("cpu"))  # fmt: skip

    before = switches()
    watched("amp_bf16")
    assert switches() == before


def scaling(model: nn.Module | None = None, **settings: Any) -> tuple[Trainer, Memory]:
    memory = Memory()
    made = trainer(model, loggers=[memory], **settings)
    made._loop.step.scaler = Scaler(torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=4), CPU)
    return made, memory


class Overflows(Net):
    """Gradients of batch 2, counted from 0, are inf; its loss is not."""

    calls: ClassVar[int] = 0

    def loss(self, outputs: Any, targets: Any) -> Any:
        call, self.calls = self.calls, self.calls + 1
        if call == 2:
            outputs.register_hook(lambda grad: grad * float("inf"))
        return nn.functional.cross_entropy(outputs, targets)


def test_a_scale_changes_no_bit_of_what_is_learned() -> None:
    plain, (scaled, _) = trainer(), scaling()
    plain.fit()
    scaled.fit()
    assert torch.equal(weights(plain), weights(scaled))
    assert plain.state.train_loss == scaled.state.train_loss


def test_a_step_with_inf_gradients_is_left_out_counted_and_logged() -> None:
    torch.manual_seed(0)
    scaled, memory = scaling(Overflows(), max_duration="3ba")
    scaled.fit("2ba")
    before = weights(scaled)
    scaled.fit("1ba")
    assert torch.equal(weights(scaled), before)
    assert scaled.state.timestamp.batch == 3  # the batch is over; the next one trains at the next rate
    assert memory.events == [("skipped_step", 2, {"scale": 512.0, "skipped": 1})]
    assert scaled.skipped_steps == 1
    scaled.fit("1ba")
    assert not torch.equal(weights(scaled), before)


def test_d29_the_scale_and_its_history_go_on_in_the_next_fit() -> None:
    once, _ = scaling(max_duration="6ba")
    twice, _ = scaling(max_duration="3ba")
    once.fit()
    twice.fit()
    twice.fit("3ba")
    assert once._loop.step.scaler and twice._loop.step.scaler
    assert once._loop.step.scaler.state_dict() == twice._loop.step.scaler.state_dict()
    assert once._loop.step.scaler.scale == 2.0**11  # grown once, after four steps


def test_the_state_of_a_scaler_makes_another_go_on_like_it() -> None:
    first, second = (Scaler(torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3), CPU) for scale in (8, 64))
    for factor in (1.0, float("inf"), 1.0):
        stepped_with(first, factor)
    second.load_state_dict(first.state_dict())
    assert (second.scale, second.skipped) == (4.0, 1)
    for factor in (1.0, 1.0):
        assert stepped_with(first, factor) == stepped_with(second, factor)
    assert first.state_dict() == second.state_dict()
    assert second.scale == 8.0


@pytest.mark.parametrize(
    ("bad", "says"),
    [({"scale": "big"}, "scale must be a number"), ({"scale": 0.0}, "scale must be positive, but is 0.0"),
     ({"scale": 1.0, "steps": -1}, "steps must be a whole number"), ({"scale": 1.0, "steps": 1}, "skipped must be")],
)  # fmt: skip
def test_a_state_that_nobody_wrote_is_refused(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Scaler(torch.amp.GradScaler("cpu"), CPU).load_state_dict(bad)


def stepped_with(scaler: Scaler, factor: float) -> bool:
    weight = nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler.scaled(weight * factor).backward()
    scaler.unscale(optimizer)
    return scaler.step(optimizer)


def test_a_method_that_steps_on_gradients_of_its_own_is_refused_under_fp16() -> None:
    class Twice(Algorithm):
        needs_closure = True

    sgd = torch.optim.SGD(net().parameters())
    with pytest.raises(UsageError, match="amp_fp16 with twice, which needs gradients more than once a step"):
        scaler_of("amp_fp16", torch.device("cuda"), who_needs_closure({"twice": Twice()}, sgd))
    assert scaler_of("fp32", CPU, ["twice"]) is None
    assert who_needs_closure({}, torch.optim.LBFGS(net().parameters())) == ["LBFGS"]
    assert who_needs_closure({}, sgd) == []
    assert net().training
