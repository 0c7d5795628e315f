"""Compilation: the same training under the same names, its seconds on a clock of their own, wherever it happens.

Most of it with backends that only trace; the compiler itself is tried once, which takes some ten seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import nn

from expkit.algorithms.ema import EMA
from expkit.algorithms.progressive_resizing import ProgressiveResizing
from expkit.errors import UsageError
from expkit.functional.resnet import ResNet
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.clock import Clocks
from expkit.trainer.compilation import compile_arguments, compile_time
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, net, trainer, weights

ROOT = Path(__file__).parents[2]
EAGER = {"backend": "eager"}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What was compiled for one test must not spare another the compiling."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def trained(model: nn.Module | None = None, **settings: Any) -> Trainer:
    done = trainer(model, **settings)
    done.fit()
    return done


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        (False, None),
        (True, {"mode": "default"}),
        ("default", {"mode": "default"}),
        ("max-autotune", {"mode": "max-autotune"}),
        ({"backend": "eager", "dynamic": True}, {"backend": "eager", "dynamic": True}),
    ],
)
def test_what_is_asked_for(given: Any, arguments: Any) -> None:
    assert compile_arguments(given) == arguments


def test_a_mode_that_does_not_exist_is_said() -> None:
    with pytest.raises(UsageError, match="or max-autotune, but got 'reduce-overheads'; did you mean 'reduce-overhead'"):
        trainer(compile="reduce-overheads")


def test_compiled_training_is_the_same_under_the_same_names() -> None:
    settings: dict[str, Any] = {"eval_dataloader": batches(2), "max_duration": "3ep"}
    plain, compiled = trained(net(0.3), **settings), trained(net(0.3), compile={"backend": "eager"}, **settings)
    assert torch.equal(weights(plain), weights(compiled))
    assert plain.state.metrics == compiled.state.metrics
    assert list(plain.state.model.state_dict()) == list(compiled.state.model.state_dict())
    assert type(compiled.state.model) is type(plain.state.model)
    assert compiled.clocks["compile_s"] > 0 == plain.clocks["compile_s"]


def test_a_model_that_was_compiled_before_stays_compiled_under_its_own_names() -> None:
    calls: list[int] = []

    def backend(graph: Any, _: Any) -> Any:
        calls.append(1)
        return graph.forward

    wrapped: Any = torch.compile(net(), backend=backend)
    done = trained(wrapped)
    assert list(done.state.model.state_dict()) == list(net().state_dict())
    assert calls
    assert done.clocks["compile_s"] > 0
    assert torch.equal(weights(done), weights(trained()))


class Slow:
    """A backend that compiles for almost half a second, and counts."""

    seconds = 0.4

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: Any, _: Any) -> Any:
        self.count += 1
        time.sleep(self.seconds)
        return graph.forward


def test_compile_time_is_on_its_own_clock_in_training_and_in_evaluation_and_billed_nowhere_else() -> None:
    slow, memory = Slow(), Memory()
    sizes = [*batches(2, 6), *batches(2, 5)]  # another size, in the middle of training
    done = trainer(train_dataloader=sizes, eval_dataloader=batches(2), eval_interval="2ba", loggers=[memory],
                   compile={"backend": slow}, max_duration="1ep")  # fmt: skip
    done.fit()
    clocks = done.clocks
    assert slow.count == 3  # training, evaluation, training with any size
    assert clocks["compile_s"] > slow.count * slow.seconds
    others = [clocks[part] for part in ("train_s", "eval_s", "forward_s", "backward_s", "callbacks_s")]
    assert max(others) < slow.seconds
    assert sum(
        clocks[part] for part in ("setup_s", "train_s", "compile_s", "eval_s", "callbacks_s", "checkpoint_s")
    ) == (pytest.approx(clocks["wall_s"], abs=0.02))


def test_compile_time_before_the_first_batch_is_no_set_up() -> None:
    clocks, slow = Clocks(), Slow()
    with compile_time(clocks):
        torch.compile(net(), backend=slow)(batches()[0][0])
    clocks.start()
    assert clocks.columns()["compile_s"] > slow.seconds
    assert clocks.setup_s + clocks.seconds["compile_s"] == pytest.approx(clocks.wall_s, abs=1e-3)


def test_nobody_listens_to_the_compiler_afterwards() -> None:
    handler = torch._dynamo.callback_handler
    trained(compile={"backend": "eager"})
    with pytest.raises(ZeroDivisionError):
        trained(compile={"backend": "eager"}, callbacks=[Fails()])
    assert not handler.start_callbacks
    assert not handler.end_callbacks


class Fails(Callback):
    def batch_end(self, state: Any, logger: Any) -> None:
        raise ZeroDivisionError


def test_a_checkpoint_of_compiled_training_goes_on_with_and_without_compiling(tmp_path: Path) -> None:
    whole = trained(net(0.3), max_duration="7ba")
    for name, first, then in (("a", EAGER, EAGER), ("b", EAGER, False), ("c", False, EAGER)):
        begun = trained(net(0.3), max_duration="3ba", compile=first)
        path = begun.save_checkpoint(tmp_path / name)
        ended = trainer(net(0.3), max_duration="7ba", compile=then, load_path=path)
        ended.fit()
        assert torch.equal(weights(ended), weights(whole))
        assert ended.clocks["compile_s"] >= begun.clocks["compile_s"]
        assert ended.clocks["setup_s"] > 0


class Replaces(Algorithm):
    """Surgery at an event, in place."""

    def __init__(self, event: str, at: int = 0) -> None:
        self.event, self.at = event, at

    def match(self, event: Any, state: Any) -> bool:
        return bool(event.value == self.event and state.timestamp.batch == self.at)

    def apply(self, event: Any, state: Any, logger: Any) -> None:
        torch.manual_seed(9)
        new = nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 4))
        old = list(state.model[3].parameters())
        state.model[3] = new
        group = state.optimizer.param_groups[0]
        group["params"] = [p for p in group["params"] if not any(p is o for o in old)] + list(new.parameters())


@pytest.mark.parametrize(("event", "at"), [("init", 0), ("fit_start", 0), ("batch_start", 3), ("batch_end", 5)])
def test_a_method_may_change_the_model_before_and_after_it_was_compiled(event: str, at: int) -> None:
    plain, compiled = (trained(algorithms=[Replaces(event, at)], compile=c) for c in (False, {"backend": "eager"}))
    assert len(list(compiled.state.model.parameters())) == 6
    assert torch.equal(weights(plain), weights(compiled))


@pytest.mark.parametrize("algorithm", [lambda: EMA(half_life="2ba"), lambda: Replaces("fit_start")])
def test_methods_do_what_they_do_without_compiling(algorithm: Any) -> None:
    settings: dict[str, Any] = {"eval_dataloader": batches(2), "eval_interval": "3ba"}
    plain, compiled = (trained(algorithms=[algorithm()], compile=c, **settings) for c in (False, {"backend": "eager"}))
    assert torch.equal(weights(plain), weights(compiled))
    assert plain.state.metrics == compiled.state.metrics


def test_images_that_grow_compile_again() -> None:
    data = [(torch.randn(4, 1, 16, 16), torch.tensor([0, 1, 2, 3])) for _ in range(4)]
    done = []
    for compile in (False, {"backend": "eager"}):
        torch.manual_seed(0)
        done.append(trained(ResNet(8, 4, 1, 4, 1), train_dataloader=data, compile=compile, max_duration="2ep",
                            algorithms=[ProgressiveResizing()]))  # fmt: skip
    assert torch.equal(weights(done[0]), weights(done[1]))


class Hooks(Callback):
    """Listens to a layer from some batch on."""

    def __init__(self) -> None:
        self.seen = 0

    def batch_end(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == 4:
            state.model[0].register_forward_hook(self._see)

    def _see(self, *_: Any) -> None:
        self.seen += 1


def test_a_hook_that_comes_after_compiling_fires() -> None:
    hooks = Hooks()
    trained(callbacks=[hooks], compile={"backend": "eager"})
    assert hooks.seen == 4


class Norms(nn.Sequential):
    """Blocks with dropout and batch statistics."""

    def __init__(self, dropout: float) -> None:
        blocks = (nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(dropout)) for _ in range(2))
        super().__init__(*blocks, nn.Linear(8, 4))


@pytest.mark.parametrize(("precision", "dropout"), [("fp32", 0.2), ("amp_bf16", 0.0)])  # in bf16 it draws another way
def test_microbatches_precision_and_recomputed_parts_go_along(precision: Any, dropout: float) -> None:
    settings: dict[str, Any] = {"device_train_microbatch_size": 3, "max_duration": "3ba", "precision": precision}
    done = []
    for more in ({}, {"compile": {"backend": "aot_eager"}, "activation_checkpointing": ["0", "1"]}):
        torch.manual_seed(0)
        done.append(trained(Norms(dropout), **settings, **more))
    plain, compiled = (list(each.state.model.state_dict().values()) for each in done)
    atol = 1e-6 if precision == "fp32" else 1e-2
    assert all(torch.allclose(a, b, atol=atol) for a, b in zip(plain, compiled, strict=True))


def test_a_compiled_model_that_runs_out_of_memory_is_tried_in_halves() -> None:
    def backend(graph: Any, _: Any) -> Any:
        def run(*args: Any) -> Any:
            if any(isinstance(a, torch.Tensor) and a.shape[1:] == (8,) and len(a) in (4, 5, 6) for a in args):
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")
            return graph.forward(*args)

        return run

    plain = trained(net(0.3), device_train_microbatch_size=3)
    compiled = trained(net(0.3), device_train_microbatch_size="auto", compile={"backend": backend})
    assert compiled.microbatch_size_found == 3
    assert torch.equal(weights(plain), weights(compiled))


COMPILED = """
import json
from tests.trainer.doubles import batches, trainer, weights

done = {}
for compile in (False, True):
    made = trainer(max_duration="1ep", eval_dataloader=batches(1), compile=compile)
    made.fit()
    done[str(compile)] = {"weights": weights(made).tolist(), **made.clocks}
print(json.dumps(done))
"""


def test_the_compiler_itself() -> None:
    """In a process of its own: the compiler starts helpers, which must be gone when it ends."""
    run = subprocess.Popen([sys.executable, "-c", COMPILED], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
                           stdout=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    said = run.communicate(timeout=150)[0]
    plain, compiled = json.loads(said)["False"], json.loads(said)["True"]
    assert compiled["weights"] == pytest.approx(plain["weights"], abs=1e-5)
    assert compiled["compile_s"] > 10 * compiled["train_s"]
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s and _session(run.pid):
        time.sleep(0.05)
    assert not _session(run.pid)


def _session(leader: int) -> list[int]:
    return [pid for pid in psutil.pids() if _session_of(pid) == leader]


def _session_of(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid)
    return None
