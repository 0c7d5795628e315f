"""Evaluation: when it is due, what it leaves behind, and that samples are counted once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.errors import UsageError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from tests.trainer.doubles import Memory, Net, batches, net, trainer


def evaluated(**settings: Any) -> list[int]:
    memory = Memory()
    trainer(eval_dataloader=batches(1), loggers=[memory], **settings).fit()
    return [batch for batch, _ in memory.series("eval/accuracy")]


@pytest.mark.parametrize(
    ("interval", "at"),
    [("1ep", [7, 14]), ("0.5ep", [4, 7, 11, 14]), ("0.1ep", list(range(1, 15))), ("3ba", [3, 6, 9, 12, 14]),
     ("100ba", [14]),
     ("0.25dur", [4, 7, 11, 14]), ("13sp", [3, 5, 7, 9, 11, 13, 14]), ("2ep", [14]), ("1.5ep", [11, 14])],
)  # fmt: skip
def test_each_multiple_once_and_the_end_always_and_never_twice(interval: str, at: list[int]) -> None:
    assert evaluated(eval_interval=interval, train_dataloader=batches(7)) == at


def test_the_shipped_shape_two_epochs_of_63_batches_at_every_eighth() -> None:
    data = [(torch.zeros(1, 8), torch.zeros(1, dtype=torch.long))] * 63
    found = evaluated(train_dataloader=data, eval_interval="0.125ep")
    assert len(found) == 16
    assert found[:8] == [8, 16, 24, 32, 40, 48, 56, 63]


def test_an_interval_in_seconds_and_a_duration_in_seconds() -> None:
    found = evaluated(max_duration="0.3sec", eval_interval="0.1sec")
    assert 1 <= len(found) <= 4  # a busy machine may cross several marks within a step
    assert found == sorted(set(found))


@pytest.mark.parametrize("interval", ["0ep", "1iter"])
def test_intervals_that_make_no_sense_are_refused(interval: str) -> None:
    with pytest.raises(UsageError, match="interval"):
        evaluated(eval_interval=interval)


def test_a_small_last_batch_counts_by_its_samples() -> None:
    data = batches(3, size=10, last=1)
    memory = Memory()
    t = trainer(eval_dataloader=data, loggers=[memory], max_duration="1ba")
    t.fit()
    model = t.state.model.eval()
    right = sum(int((model(x).argmax(1) == y).sum()) for x, y in data)
    assert memory.series("eval/accuracy") == [(1, right / 21)]
    assert t.state.metrics == {"eval/accuracy": right / 21}


def test_eval_mode_no_gradient_and_everything_put_back() -> None:
    @dataclass
    class Watch(Callback):
        seen: Any = field(default_factory=list, init=False)
        kept: Any = field(default=None, init=False)

        def batch_end(self, state: Any, logger: Any) -> None:
            self.kept = (state.batch, state.outputs, state.loss)

        def eval_after_forward(self, state: Any, logger: Any) -> None:
            self.seen.append((state.model.training, state.outputs.requires_grad, state.eval_name))

        def batch_checkpoint(self, state: Any, logger: Any) -> None:
            assert self.kept == (state.batch, state.outputs, state.loss)
            assert state.eval_name is None
            assert state.model.training
            assert not state.model[2].training

    model = net()

    class Frozen(Callback):
        def fit_start(self, state: Any, logger: Any) -> None:
            pass

        def epoch_start(self, state: Any, logger: Any) -> None:
            state.model[2].eval()

    watch = Watch()
    trainer(model, eval_dataloader=batches(1), eval_interval="1ba", callbacks=[dataclass(Frozen)(), watch]).fit()
    assert set(watch.seen) == {(False, False, "eval")}


def test_several_evaluators_have_series_of_their_own() -> None:
    memory = Memory()
    good = [(x, net()(x).argmax(1)) for x, _ in batches(1)]
    bad = [(x, (y + 1) % 4) for x, y in good]
    t = trainer(
        eval_dataloader={"good": good, "bad": bad}, loggers=[memory], max_duration="1ba", schedulers=lambda k: 0.0
    )
    t.fit()
    assert t.state.metrics == {"good/accuracy": 1.0, "bad/accuracy": 0.0}


def test_a_model_without_metrics_gets_accuracy_and_cross_entropy() -> None:
    t = trainer(torch.nn.Linear(8, 4), eval_dataloader=batches(2), max_duration="1ba")
    t.fit()
    assert set(t.state.metrics) == {"eval/accuracy", "eval/cross_entropy"}


def test_weights_swapped_for_evaluation_are_what_is_measured_and_are_swapped_back() -> None:
    @dataclass
    class Swap(Algorithm):
        _own: Any = field(default=None, init=False)

        def eval_start(self, state: Any, logger: Any) -> None:
            self._own = {k: v.clone() for k, v in state.model.state_dict().items()}
            state.model.load_state_dict({k: torch.zeros_like(v) for k, v in self._own.items()})

        def eval_end(self, state: Any, logger: Any) -> None:
            state.model.load_state_dict(self._own)

    class Largest(Net):
        def metrics(self) -> dict[str, Any]:
            return {"largest": LargestOutput()}

    @dataclass
    class LargestOutput(Callback):
        value: float = 0.0

        def reset(self) -> None:
            self.value = 0.0

        def update(self, outputs: Any, targets: Any) -> None:
            self.value = max(self.value, float(outputs.abs().max()))

        def compute(self) -> float:
            return self.value

    t = trainer(Largest(), eval_dataloader=batches(1), algorithms=[Swap()])
    t.fit()
    assert t.state.metrics == {"eval/largest": 0.0}
    assert float(t.state.model[0].weight.detach().abs().max()) > 0
