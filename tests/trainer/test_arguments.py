"""What the trainer is given and cannot be right: one sentence before anything is trained, row by row."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from expkit import callbacks, schedulers
from expkit.errors import UsageError
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import batches, net, trainer, weights


class NotReady(nn.Module):
    def __init__(self) -> None:
        self.size = 8


class NoForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)


def step_only(step: int) -> float:
    return 1.0


def three(a: Any, b: Any, c: Any) -> float:
    return 1.0


def nothing() -> None:
    return None


ROWS: list[tuple[str, Any, str]] = [
    ("max_duration", 2, "duration with its unit, such as 2ep, 500ba, 0.1dur or 90m, but got 2; write 2ep or 2ba"),
    ("max_duration", None, "duration with its unit, such as .* but got None"),
    ("max_duration", 1.5, "but got 1.5"),
    ("max_duration", "", ": '' is not a duration"),
    ("eval_interval", 3, "write 3ep or 3ba"),
    ("eval_interval", None, "but got None"),
    ("iteration_length", 3, "write 3ep or 3ba"),
    ("save_interval", [1], r"but got \[1\] \(list\)"),
    ("precision", None, "fp32 or amp_bf16 or amp_fp16, but got None"),
    ("precision", 16, "but got 16"),
    ("precision", torch.bfloat16, r"but got torch.bfloat16 \(dtype\)"),
    ("precision", ["fp32"], "but got "),
    ("device", None, "but got None"),
    ("device", 3, "but got 3"),
    ("device", torch.device("meta"), r"but got device\(type='meta'\)"),
    ("ssr", "0.5", "positive and finite, but got '0.5'"),
    ("ssr", None, "but got None"),
    ("ssr", math.nan, "but got nan"),
    ("ssr", math.inf, "but got inf"),
    ("ssr", 0, "but got 0"),
    ("ssr", -1, "but got -1"),
    ("ssr", True, "but got True"),
    ("train_subset_num_batches", 1.5, "at least 1, or None for all, but got 1.5"),
    ("train_subset_num_batches", True, "but got True"),
    ("train_subset_num_batches", 0, "but got 0"),
    ("eval_subset_num_batches", "2", "but got '2'"),
    ("device_train_microbatch_size", True, "at least 1, but got True"),
    ("device_train_microbatch_size", 2.0, "at least 1, but got 2.0"),
    ("allow", 3, "a list of pairs of names, such as .*, but got 3"),
    ("allow", [3], r"but got \[3\]"),
    ("allow", ("mixup", "cutmix"), "list of pairs"),
    ("allow", "ab", "list of pairs"),
    ("load_ignore_keys", "abc", r"a list of patterns, but got 'abc'; write \['abc'\]"),
    ("load_ignore_keys", 3, "but got 3"),
    ("load_ignore_keys", [3], r"but got \[3\]"),
    ("activation_checkpointing", 3, "but got 3"),
    ("activation_checkpointing", [3], r"but got \[3\]"),
    ("activation_checkpointing", "0", r"use \['0'\]"),
    ("compile", {"a": 1}, "unknown argument of torch.compile 'a'; there are: backend, "),
    ("compile", {3: 1}, "unknown argument"),
    ("compile", {"mode": "fastest"}, "torch.compile does not take"),
    ("compile", 3, "but got 3"),
    ("compile", None, "but got None"),
    ("seed", None, "a whole number, but got None"),
    ("seed", "1", "but got '1'"),
    ("seed", 1.5, "but got 1.5"),
    ("seed", [1], r"but got \[1\]"),
    ("seed", True, "but got True"),
    ("autoresume", "yes", "true or false, but got 'yes'"),
    ("deterministic_mode", 1, "true or false, but got 1"),
    ("load_strict", None, "but got None"),
    ("load_weights_only", "no", "but got 'no'"),
    ("step_schedulers_every_batch", "no", "but got 'no'"),
    ("run_name", "", "name of a folder, without slashes, but got ''"),
    ("run_name", "../x", r"but got '\.\./x'"),
    ("run_name", "a/b", "but got 'a/b'"),
    ("run_name", "..", r"but got '\.\.'"),
    ("run_name", "a\0b", r"but got 'a\\x00b'"),
    ("run_name", "a" * 256, "at most 255 bytes long, but got 'aaaa"),
    ("run_name", 3, "but got 3"),
    ("save_folder", "", "a path or a URI, but got ''; the folder that one is in is '.'"),
    ("save_folder", 3, "a path or a URI, but got 3"),
    ("load_path", "", "a path or a URI, but got ''"),
    ("load_path", ["a"], "but got"),
    ("dist_timeout", 0, "positive, in seconds or as 90s, 5m or 1h30m, but got 0"),
    ("dist_timeout", None, "but got None"),
    ("dist_timeout", math.nan, "but got nan"),
    ("dist_timeout", "3ba", "but got '3ba'"),
    ("setup_started", "now", "None or a number of seconds, but got 'now'"),
    ("profiler", 3, "None or a callback, but got 3"),
    ("profiler", callbacks.LRMonitor, r"the class LRMonitor; write LRMonitor\(...\)"),
    ("callbacks", {3: callbacks.LRMonitor()}, "a dict by names, but got 3"),
    ("loss_fn", 3, r"a function of \(outputs, targets\) or of \(outputs, batch\), but got 3"),
    ("loss_fn", "mse", "but got 'mse'"),
    ("loss_fn", nn.MSELoss, r"but got the class MSELoss; write MSELoss\(...\)"),
    ("loss_fn", nothing, "two arguments, .* but got the function nothing"),
    ("loss_fn", three, "but got the function three"),
    ("schedulers", 3, "schedulers of expkit or of torch, or functions of the step, but got 3"),
    ("schedulers", "cosine", "but got 'cosine'"),
    ("schedulers", {}, "but got {}"),
    ("schedulers", [step_only, 3], "but got 3"),
    ("schedulers", schedulers.Cosine, r"the class Cosine; write Cosine\(...\)"),
    ("schedulers", torch.optim.lr_scheduler.StepLR, "the class StepLR"),
    ("schedulers", nothing, r"functions of \(step\) or of \(step, steps\), but got the function nothing"),
    ("schedulers", three, "but got the function three"),
]


@pytest.mark.parametrize(("name", "value", "says"), ROWS)
def test_an_argument_that_cannot_be_right_is_named(name: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}.*{says}"):
        trainer(**{name: value})


MODELS: list[tuple[Any, str]] = [
    (None, "a torch.nn.Module, or a model of expkit, but got None"),
    (3, "but got 3"),
    ([net()], r"but got \[.*\(list\)"),
    (nn.Linear, r"but got the class Linear; write Linear\(...\)"),
    (net, "but got the function net"),
    (NotReady(), r"NotReady is not ready: its __init__ must call super\(\).__init__\(\) first"),
    (NoForward(), r"NoForward has no forward\(...\)"),
    (nn.ModuleList([nn.Linear(8, 4)]), r"ModuleList has no forward"),
    (nn.Linear(8, 4, device="meta"), "Linear has no values for weight, which is on the device meta"),
    (nn.Tanh(), "Tanh has no parameters, so there is nothing to train"),
]


@pytest.mark.parametrize(("model", "says"), MODELS)
def test_what_is_no_model_is_named(model: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"^model .*{says}"):
        Trainer(model=model, train_dataloader=batches(), max_duration="1ba", device="cpu")


def sgd(model: nn.Module, **settings: Any) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, **settings})


OPTIMIZERS: list[tuple[Callable[[nn.Module], Any], str]] = [
    (lambda _: torch.optim.SGD, r"but got the class SGD; write SGD\(model.parameters\(\), lr=...\)"),
    (lambda _: sgd, "but got the function sgd"),
    (lambda _: "sgd", "an optimizer of expkit or of torch, but got 'sgd'"),
    (lambda _: {"sgd": {}}, "but got "),
    (lambda _: [], "one optimizer, but got 0"),
    (lambda model: [sgd(model), sgd(model)], "one optimizer, but got 2; give it several parameter groups"),
    (lambda _: sgd(net()), "SGD has none of the model's parameters, so the model would never change"),
    (lambda model: sgd(model, lr=math.nan), "rate of SGD must be finite .* but it is nan in parameter group 0"),
    (lambda model: sgd(model, lr=math.inf), "but it is inf"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "says"), OPTIMIZERS)
def test_what_is_no_optimizer_of_the_model_is_named(make: Callable[[nn.Module], Any], says: str) -> None:
    model = net()
    with pytest.raises(UsageError, match=f"^optimizers.*{says}"):
        Trainer(model=model, train_dataloader=batches(), optimizers=make(model), max_duration="1ba", device="cpu")


def test_what_torch_users_do_every_day_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    model = net()
    settings = {"seed": np.int64(3), "ssr": np.float32(1.0), "device": torch.device("cpu"), "dist_timeout": 60,
                "device_train_microbatch_size": np.int32(3), "train_subset_num_batches": np.int64(2),
                "load_ignore_keys": ("model/*",), "schedulers": np.cos, "loss_fn": nn.CrossEntropyLoss(),
                "run_name": "run 1 (größer)"}  # fmt: skip
    made = Trainer(model=model, train_dataloader=batches(), optimizers=[sgd(model)], max_duration="1ep", **settings)  # type: ignore[arg-type]
    made.fit()
    assert made.state.timestamp.batch == 2
    assert (type(made.state.seed), made.state.microbatch_size, made.state.run_name) == (int, 3, "run 1 (größer)")
    assert not caplog.records


def fit_with(model: nn.Module, parameters: Any, **settings: Any) -> None:
    Trainer(model=model, train_dataloader=batches(), optimizers=torch.optim.SGD(parameters, lr=0.1),
            max_duration="1ba", device="cpu", **settings).fit()  # fmt: skip


def test_parameters_that_could_be_trained_and_are_left_out_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    model = net()
    fit_with(model, model[3].parameters())
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.WARNING, "SGD leaves out 2 parameters that could be trained, such as 0.weight: they stay as they are")
    ]
    caplog.clear()
    model[0].requires_grad_(False)
    fit_with(model, model[3].parameters())
    assert not caplog.records


def test_parameters_of_the_loss_may_be_trained_along_and_others_are_said(caplog: pytest.LogCaptureFixture) -> None:
    class Scaled(nn.CrossEntropyLoss):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, outputs: Any, targets: Any) -> Any:
            return super().forward(outputs * self.scale, targets)

    model, scaled = net(), Scaled()
    fit_with(model, [*model.parameters(), *scaled.parameters()], loss_fn=scaled)
    assert not caplog.records
    assert scaled.scale != 1
    fit_with(model, [*model.parameters(), nn.Parameter(torch.ones(3))])
    assert re.findall("has 1 of its 5 parameters from elsewhere", caplog.text)


def test_a_loss_of_the_model_that_takes_something_else_is_named() -> None:
    class Own(nn.Linear):
        def loss(self, inputs: Any) -> Any:
            return inputs

    with pytest.raises(UsageError, match=r"^loss of Own must be a function of two arguments, \(outputs, targets\)"):
        trainer(Own(8, 4))
    trainer(Own(8, 4), loss_fn=nn.CrossEntropyLoss())


RATES: list[tuple[Callable[..., Any], str]] = [
    (lambda step: None, "but got None; <lambda> gave that at step 0"),
    (lambda step: "1", "but got '1'"),
    (lambda step, steps: steps, "but got Steps"),
    (lambda step: torch.ones(()), "but got tensor"),
    (lambda step: -1.0, "finite and not negative, at each step from 0 to 7, but got -1.0"),
    (lambda step: 1.0 - step / 4, "but got -0.25; <lambda> gave that at step 5"),
    (lambda step: math.nan if step == 3 else 1.0, "but got nan; <lambda> gave that at step 3"),
    (lambda step: 1j, "but got 1j"),
]


@pytest.mark.parametrize(("schedule", "says"), RATES)
def test_a_schedule_that_gives_no_rate_is_named_before_the_first_step(schedule: Callable[..., Any], says: str) -> None:
    made = trainer(schedulers=[schedule])
    before = weights(made)
    with pytest.raises(UsageError, match=f"^schedulers must be .*{says}"):
        made.fit()
    assert torch.equal(weights(made), before)


def test_a_rate_that_is_nan_at_a_step_nobody_looked_at_is_no_divergence() -> None:
    made = trainer(schedulers=lambda step: math.nan if step == 101 else 1.0, max_duration="1000ba")
    with pytest.raises(UsageError, match="but got nan; <lambda> gave that at step 101"):
        made.fit()
    assert made.state.timestamp.batch == 103


def test_an_error_inside_a_schedule_is_the_users_and_says_at_which_step() -> None:
    made = trainer(schedulers=lambda step: [1.0, 0.5][step])
    with pytest.raises(IndexError) as e:
        made.fit()
    assert e.value.__notes__ == ["a schedule was asked for the learning rate of step 2 of 8"]
    with pytest.raises(UsageError, match=r"^10tok cannot be counted in steps: the loader does not say"):
        trainer(schedulers=schedulers.Cosine(warmup="10tok")).fit()


def test_a_step_whose_rate_is_asked_for_is_a_number_from_0() -> None:
    for step in (-1, "1", 1.5, None):
        with pytest.raises(UsageError, match="step must be the number of a step, from 0, but got"):
            trainer().lr_at(step)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^duration must be a duration with its unit, .* write 3ep or 3ba"):
        trainer().fit(3)  # type: ignore[arg-type]
