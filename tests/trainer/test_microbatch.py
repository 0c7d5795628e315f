"""Auto microbatching: halves on a real out-of-memory, and goes on as if it had started at the size found."""

from __future__ import annotations

import gc
import itertools
import json
import random
import re
import resource
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from expkit.algorithms.ema import EMA
from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.errors import TrialFailure, UsageError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from expkit.trainer.out_of_memory import is_out_of_memory
from expkit.trainer.trainer import Trainer
from tests import forks
from tests.trainer.doubles import Memory, batches, trainer, weights

pytestmark = pytest.mark.filterwarnings("ignore:training writes into the batches")  # as Greedy and Draws do
CPU = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "536870912 bytes. Error code 12 (Cannot allocate memory)"
)
CUDA = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB")
ERRORS = [CPU, CUDA, RuntimeError("could not create a primitive"), MemoryError(), MemoryError("std::bad_alloc"),
          RuntimeError("CUDA error: out of memory"), RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED"),
          SystemError("error return without exception set"),
          SystemError("<function _find_and_load> returned NULL without setting an exception")]  # fmt: skip


class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, error: Exception) -> Any:
        ctx.error = error
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise ctx.error


class Greedy(nn.Module):
    """Leaves traces wherever a model can, and runs out of memory above `fits` samples."""

    def __init__(self, fits: int = 10**6, place: str = "forward", error: Exception = CPU) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = nn.Linear(8, 16), nn.BatchNorm1d(16)
        self.dropout, self.last = nn.Dropout(0.3), nn.Linear(16, 4)
        self.fits, self.place, self.error = fits, place, error
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        x.mul_(1.1)  # in place, into the batch
        self.steps = self.steps + 1  # a new tensor for the buffer
        self.register_buffer("seen", torch.ones(3))  # a buffer that was not there
        hidden = self.dropout(torch.relu(self.norm(self.first(x))))
        hidden = hidden + random.random() + np.random.rand() + torch.rand(())
        if self.training and len(x) > self.fits:
            if self.place == "forward":
                raise self.error
            if self.place == "backward":
                hidden = FailsBackward.apply(hidden, self.error)
        return self.last(hidden)

    def loss(self, outputs: Any, targets: Any) -> Any:
        if self.place == "loss" and len(targets) > self.fits:
            raise self.error
        return torch.nn.functional.cross_entropy(outputs, targets)


@dataclass
class Draws(Algorithm):
    """Draws from a stream that goes on, changes the microbatch and counts."""

    count: Any = field(default=0, init=False)
    _rng: Any = field(default=None, init=False, repr=False, compare=False)

    def fit_start(self, state: Any, logger: Any) -> None:
        self._rng = torch.Generator().manual_seed(5)

    def before_forward(self, state: Any, logger: Any) -> None:
        inputs = state.inputs
        inputs.add_(torch.randn(inputs.shape, generator=self._rng))
        self.count += 1
        logger.log_metrics({"draws": float(self.count)})
        self.effective = True

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self._rng.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._rng.set_state(state["rng"])


@dataclass
class Counts(Callback):
    seen: Any = field(default=0, init=False)

    def after_forward(self, state: Any, logger: Any) -> None:
        self.seen += 1


def trained(model: nn.Module, size: Any, **settings: Any) -> tuple[Trainer, Memory]:
    memory = Memory()
    data = [(x.clone(), y) for x, y in batches(4, 12, last=9)]
    given = {"algorithms": [Draws(), EMA(half_life="2ba"), LabelSmoothing()], "callbacks": [Counts()], **settings}
    t = trainer(model, train_dataloader=data, eval_dataloader=batches(2), loggers=[memory],
                device_train_microbatch_size=size, **given)  # fmt: skip
    t.fit()
    return t, memory


def traces(t: Trainer) -> list[Any]:
    """Everything that a failed attempt could have left something in."""
    model, state = t.state.model, t.state
    tensors = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters()), torch.get_rng_state()]
    tensors += [v for slots in state.optimizer.state.values() for v in slots.values() if isinstance(v, torch.Tensor)]
    tensors += [x for x, _ in state.dataloader]
    draws, callback = state.algorithms["draws"], state.callbacks["counts"]
    return [[x.detach().numpy().tobytes() for x in tensors], random.getstate(), str(np.random.get_state()),
            draws.count, draws.state_dict()["rng"].tolist(), callback.seen, state.timestamp._replace(train_s=0),
            t.effective, state.train_loss, sorted(name for name, _ in model.named_buffers())]  # fmt: skip


@pytest.mark.parametrize("place", ["forward", "loss", "backward"])
@pytest.mark.parametrize(("fits", "found"), [(11, 6), (5, 3), (1, 1)])
def test_bit_by_bit_as_if_it_had_started_at_the_size_found(place: str, fits: int, found: int) -> None:
    auto, logged = trained(without_statistics(Greedy(fits, place), found), "auto")
    fixed, expected = trained(without_statistics(Greedy(), found), found)
    assert auto.microbatch_size_found == found
    assert traces(auto) == traces(fixed)
    assert logged.rows == expected.rows
    sizes = [(payload["before"], payload["after"]) for _, _, payload in logged.events]
    assert sizes == [(12, 6), (6, 3), (3, 1)][: {6: 1, 3: 2, 1: 3}[found]]
    assert {(kind, batch) for kind, batch, _ in logged.events} == {("microbatch", 0)}
    assert "can't allocate memory" in logged.events[0][2]["reason"]


def without_statistics(model: Greedy, size: int) -> Greedy:
    """One sample has no batch statistics."""
    if size == 1:
        model.norm = nn.Identity()  # type: ignore[assignment]
    return model


def test_a_whole_batch_that_fits_is_left_whole_and_costs_no_bit() -> None:
    auto, logged = trained(Greedy(), "auto")
    whole, _ = trained(Greedy(), None)
    assert auto.microbatch_size_found is None
    assert traces(auto) == traces(whole)
    assert logged.events == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__ + str(e)[:25])
def test_every_family_of_errors_counts(error: Exception) -> None:
    auto, _ = trained(Greedy(6, error=error), "auto")
    assert auto.microbatch_size_found == 6


def test_a_failure_later_on_makes_it_smaller_from_there() -> None:
    class Later(Greedy):
        def forward(self, x: Any) -> Any:
            self.fits = 6 if self.steps >= 2 and len(x) > 6 else 10**6
            return super().forward(x)

    auto, logged = trained(Later(), "auto")
    assert auto.microbatch_size_found == 6
    assert [batch for _, batch, _ in logged.events] == [2]


def test_other_errors_are_raised_at_once() -> None:
    with pytest.raises(RuntimeError, match="shapes"):
        trained(Greedy(6, error=RuntimeError("shapes do not fit")), "auto")


def test_one_sample_that_does_not_fit_is_a_failure_with_cause_oom() -> None:
    with pytest.raises(TrialFailure, match="a microbatch of one sample does not fit") as caught:
        trained(without_statistics(Greedy(0), 1), "auto")
    assert caught.value.cause == "oom"


class Fails(Callback):
    def after_forward(self, state: Any, logger: Any) -> None:
        raise MemoryError


class Loader(list[Any]):
    def __iter__(self) -> Any:
        raise MemoryError


class Steps(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        raise MemoryError


def test_callbacks_data_and_the_optimizer_are_not_tried_again() -> None:
    memory = Memory()
    for settings in ({"callbacks": [dataclass(Fails)()]}, {"train_dataloader": Loader(batches())}):
        with pytest.raises(MemoryError):
            trainer(loggers=[memory], device_train_microbatch_size="auto", **settings).fit()
    model = Greedy()
    t = Trainer(model=model, optimizers=Steps(model.parameters(), lr=0.1), train_dataloader=batches(), loggers=[memory],
                max_duration="1ep", device="cpu", device_train_microbatch_size="auto")  # fmt: skip
    with pytest.raises(MemoryError):
        t.fit()
    assert memory.events == []


def test_what_a_failed_attempt_held_is_gone_before_the_next() -> None:
    held: list[weakref.ref[Any]] = []

    class Holds(Greedy):
        def forward(self, x: Any) -> Any:
            assert not [ref for ref in held if ref() is not None and len(ref()) > len(x)]
            big = super().forward(x)
            held.append(weakref.ref(big))
            return big

    auto, _ = trained(Holds(3, "backward"), "auto", algorithms=[Draws()])
    assert auto.microbatch_size_found == 3


def test_a_method_that_needs_gradients_twice_is_refused() -> None:
    class Twice(Algorithm):
        needs_closure = True

    with pytest.raises(UsageError, match="cannot be auto with twice"):
        trainer(algorithms=[dataclass(Twice)()], device_train_microbatch_size="auto")


def test_an_error_raised_from_a_memory_error_counts_and_a_misleading_text_does_not() -> None:
    wrapped = ValueError("a layer failed")
    wrapped.__cause__ = MemoryError()
    assert is_out_of_memory(wrapped)
    assert not is_out_of_memory(ValueError("out of memory"))


def wide() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 2048), nn.BatchNorm1d(2048), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2048, 4))


def one_batch(size: Any, data: Any) -> tuple[int | None, list[bytes], Memory]:
    memory = Memory()
    t = trainer(wide(), train_dataloader=data, max_duration="1ba", loggers=[memory], device_train_microbatch_size=size)
    t.fit()
    return t.microbatch_size_found, [x.numpy().tobytes() for x in (weights(t), *t.state.model.buffers())], memory


def limited(kind: str, folder: Path) -> None:
    """A batch with 128 MiB more than are used already, and one at the size found with all there is."""
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(1)
    data = [(torch.randn(8192, 256, generator=draw), torch.randint(0, 4, (8192,), generator=draw)) for _ in range(2)]
    one_batch(None, [(x[:64], y[:64]) for x, y in data])  # whatever is imported on first use is there now
    key = {"RLIMIT_AS": "VmSize:", "RLIMIT_DATA": "VmData:"}[kind]
    (used_kib,) = re.findall(rf"{key}\s+(\d+)", Path("/proc/self/status").read_text())
    number, before = getattr(resource, kind), resource.getrlimit(getattr(resource, kind))
    resource.setrlimit(number, (int(used_kib) * 1024 + 128 * 2**20, before[1]))
    found, bits, memory = one_batch("auto", data)
    resource.setrlimit(number, before)
    gc.collect()
    told = [found, bits == one_batch(found, data)[1], [payload for _, _, payload in memory.events]]
    (folder / "told.json").write_text(json.dumps(told))


@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_under_a_real_memory_limit_it_finds_a_size_and_gives_the_same_bits(kind: str, tmp_path: Path) -> None:
    """A layer's outputs of 8,192 samples take 64 MiB, and there are 128 MiB. One batch: the next might need less."""
    process = forks.fork(limited, tmp_path / "said", {}, kind, tmp_path)
    process.join(120)
    assert process.exitcode == 0, (tmp_path / "said").read_text()
    found, equal, events = json.loads((tmp_path / "told.json").read_text())
    assert 64 <= found < 8192
    assert equal
    assert events[0]["before"] == 8192 and events[-1]["after"] == found
    assert all(after["before"] == before["after"] for before, after in itertools.pairwise(events))
    assert all(is_out_of_memory(RuntimeError(e["reason"])) or "emory" in e["reason"] or "bad_alloc" in e["reason"]
               for e in events)  # fmt: skip


def test_only_events_of_the_attempt_come_again() -> None:
    seen: list[Event] = []

    class Watch(Callback):
        def before_train_batch(self, state: Any, logger: Any) -> None:
            seen.append(Event.BEFORE_TRAIN_BATCH)

        def before_forward(self, state: Any, logger: Any) -> None:
            seen.append(Event.BEFORE_FORWARD)

        def after_train_batch(self, state: Any, logger: Any) -> None:
            seen.append(Event.AFTER_TRAIN_BATCH)

    trained(Greedy(6), "auto", algorithms=[Draws()], callbacks=[dataclass(Watch)(), Counts()], max_duration="1ba")
    before, forward, after = Event.BEFORE_TRAIN_BATCH, Event.BEFORE_FORWARD, Event.AFTER_TRAIN_BATCH
    assert seen == [before, forward, forward, forward, after]
