"""Metrics of the training data: sums over an interval, from the outputs that training made, whole on every road."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.algorithms.mixup import MixUp
from expkit.callbacks.train_metrics import TrainMetrics
from expkit.duration import Time
from expkit.errors import UsageError
from expkit.metrics import Accuracy, CrossEntropy
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from tests.trainer.doubles import Memory, Net, batches, net, trainer
from tests.trainer.hugging_face import ForCausalLM, sentences

DATA = batches(4, last=2)


def bare() -> nn.Module:
    return nn.Sequential(net())


def fitted(watch: TrainMetrics | None = None, **settings: Any) -> tuple[Any, Memory]:
    memory = Memory()
    given = {"model": bare(), "train_dataloader": DATA, "loggers": [memory], **settings}
    callbacks = [*given.pop("callbacks", []), watch or TrainMetrics()]
    t = trainer(given.pop("model"), callbacks=callbacks, **given)
    t.fit()
    return t, memory


class Outputs(Callback):
    """Writes down what training computed, to be summed up by hand."""

    def __init__(self) -> None:
        self.seen: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[]]

    def after_loss(self, state: Any, logger: Any) -> None:
        self.seen[-1].append((state.logits.detach().clone(), state.targets))

    def batch_end(self, state: Any, logger: Any) -> None:
        self.seen.append([])

    def accuracy(self, *steps: int) -> float:
        pairs = [pair for step in steps for pair in self.seen[step]]
        right = sum(int((logits.argmax(1) == ids).sum()) for logits, ids in pairs)
        return right / sum(len(ids) for _, ids in pairs)


@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize(("interval", "records"), [
    ("1ep", {4: (0, 1, 2, 3), 8: (4, 5, 6, 7)}),
    ("1ba", {step + 1: (step,) for step in range(8)}),
    ("3ba", {3: (0, 1, 2), 6: (3, 4, 5), 8: (6, 7)}),
])  # fmt: skip
def test_they_are_over_all_samples_since_the_last_record_thread_1496(
    interval: str, records: dict[int, tuple[int, ...]], size: int | None
) -> None:
    by_hand = Outputs()
    t, memory = fitted(TrainMetrics(interval=Time.parse(interval)), callbacks=[by_hand],
                       device_train_microbatch_size=size, model=nn.Sequential(net(dropout=0.5)))  # fmt: skip
    assert dict(memory.series("train/accuracy")) == {batch: by_hand.accuracy(*s) for batch, s in records.items()}
    assert t.state.metrics == {"train/accuracy": by_hand.accuracy(*records[8]),
                               "train/cross_entropy": memory.series("train/cross_entropy")[-1][1]}  # fmt: skip


def test_without_dropout_their_cross_entropy_is_the_loss_of_the_same_passes() -> None:
    _, memory = fitted(TrainMetrics(interval=Time.parse("1ba")), device_train_microbatch_size=4)
    losses = dict(memory.series("train/loss"))
    assert dict(memory.series("train/cross_entropy")) == pytest.approx(losses, rel=1e-6)


@pytest.mark.parametrize("methods", [[LabelSmoothing(smoothing=0.4)], [MixUp(), LabelSmoothing()]])
def test_targets_are_those_that_the_data_gave_whatever_the_loss_was_shown(methods: list[Any]) -> None:
    by_hand = Outputs()
    _, memory = fitted(callbacks=[by_hand], algorithms=methods)
    assert all(not ids.is_floating_point() for step in by_hand.seen for _, ids in step)
    assert memory.series("train/accuracy")[0][1] == by_hand.accuracy(0, 1, 2, 3)


class Protocol(Net):
    def __init__(self, calls: list[Any]) -> None:
        super().__init__(dropout=0.5)
        self.calls, self.used = calls, Accuracy()

    def metrics(self) -> dict[str, Any]:
        return {"mine": self.used}

    def eval_forward(self, batch: Any, outputs: Any = None) -> Any:
        self.calls.append((outputs is not None, self.training))
        return self(batch[0]) if outputs is None else outputs

    def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
        assert not outputs.requires_grad
        metric.update(outputs, batch[1])


class Twice(Protocol):
    def eval_forward(self, batch: Any) -> Any:  # type: ignore[override]
        self.calls.append((False, self.training))
        return self(batch[0])


@pytest.mark.parametrize(("cls", "reuses"), [(Protocol, True), (Twice, False)])
def test_outputs_are_made_once_where_the_model_allows_it_and_training_does_not_notice(cls: Any, reuses: bool) -> None:
    calls: list[Any] = []
    torch.manual_seed(0)
    model, by_hand = cls(calls), Outputs()
    t, memory = fitted(model=model, callbacks=[by_hand])
    assert calls == [(reuses, False)] * 8
    torch.manual_seed(0)
    alone = trainer(cls([]), train_dataloader=DATA)
    alone.fit()
    assert all(torch.equal(a, b) for a, b in zip(t.state.model.parameters(), alone.state.model.parameters(),
                                                 strict=True))  # fmt: skip
    assert not reuses or memory.series("train/mine")[0][1] == by_hand.accuracy(0, 1, 2, 3)


def test_an_evaluation_in_the_middle_of_an_epoch_forgets_nothing_of_it() -> None:
    """The metrics of a model may be one object, which an evaluator resets."""
    by_hand = Outputs()
    _, memory = fitted(model=Protocol([]), callbacks=[by_hand], eval_dataloader=DATA, eval_interval="1ba")
    assert len(memory.series("eval/mine")) == 8
    assert memory.series("train/mine")[0] == (4, by_hand.accuracy(0, 1, 2, 3))


class Others(Net):
    def train_metrics(self) -> dict[str, Any]:
        return {"top": Accuracy(), "nats": CrossEntropy()}


@pytest.mark.parametrize(("model", "given", "names"), [
    (net, None, {"accuracy"}),
    (Others, None, {"top", "nats"}),
    (bare, "accuracy", {"accuracy"}),
    (Others, ["accuracy"], {"accuracy"}),
    (bare, {"mine": CrossEntropy(), "mean_loss": "loss"}, {"mine", "mean_loss"}),
    (bare, [], set()),
])  # fmt: skip
def test_they_are_named_or_those_of_the_model(model: Any, given: Any, names: set[str]) -> None:
    t, memory = fitted(TrainMetrics(given), model=model())
    assert set(t.state.metrics) == {f"train/{name}" for name in names}
    assert {name for name, _, _ in memory.rows} == {"train/loss", *t.state.metrics}


def test_a_language_model_has_the_accuracy_that_was_asked_for_and_none_that_was_not() -> None:
    data = sentences()
    _, memory = fitted(model=ForCausalLM(), train_dataloader=data)
    assert {name for name, _, _ in memory.rows} == {"train/loss"}
    assert [(kind, batch) for kind, batch, _ in memory.events] == [("train_metrics", 0)]
    assert "name metrics that fit" in memory.events[0][2]["message"]
    _, memory = fitted(TrainMetrics(Accuracy(class_axis=-1, shift=1)), model=ForCausalLM(), train_dataloader=data)
    assert len(memory.series("train/accuracy")) == 2


class Stateful:
    """In the way of torchmetrics: sums that only its state has, and only where it is told to keep them."""

    def __init__(self) -> None:
        self.seen, self.kept = torch.zeros(()), False

    def persistent(self, mode: bool) -> None:
        self.kept = mode

    def update(self, preds: Any, target: Any) -> None:
        self.seen = self.seen + len(target)

    def compute(self) -> Any:
        return self.seen

    def reset(self) -> None:
        self.seen = torch.zeros(())

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen} if self.kept else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


@pytest.mark.parametrize("start", [1, 3, 4, 6])
@pytest.mark.parametrize("given", [None, {"samples": Stateful(), "accuracy": Accuracy()}])
def test_a_resumed_training_records_what_it_would_have_recorded(tmp_path: Path, start: int, given: Any) -> None:
    settings = {"save_interval": "1ba", "max_duration": "7ba"}
    _, whole = fitted(TrainMetrics(given), save_folder=tmp_path, **settings)
    t, rest = fitted(TrainMetrics(given), load_path=tmp_path / f"ep{start // 4}-ba{start}", max_duration="7ba")
    for name in t.state.metrics:
        assert rest.series(name) == [(batch, value) for batch, value in whole.series(name) if batch > start]
    assert t.state.metrics and {batch for name, batch, _ in whole.rows if name in t.state.metrics} == {4, 7}


class Full(nn.Module):
    """Has room for 3 samples, and says so when half of its work is done."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> Any:
        return _Heavy.apply(self.inner(x))


class _Heavy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        if len(gradient) > 3:
            raise RuntimeError("out of memory")
        return gradient


@pytest.mark.parametrize("given", [None, {"samples": Stateful()}])
def test_a_microbatch_that_is_tried_again_counts_once(given: Any) -> None:
    found, expected = (
        fitted(TrainMetrics(given), model=Full(bare()), device_train_microbatch_size=size)[1] for size in ("auto", 3)
    )
    names = ["train/samples"] if given else ["train/accuracy", "train/cross_entropy"]
    assert [found.series(name) for name in names] == [expected.series(name) for name in names]
    assert not given or found.series("train/samples") == [(4, 20.0), (8, 20.0)]


class Again(Algorithm):
    """Asks for gradients twice a step."""

    needs_closure = True

    def init(self, state: Any, logger: Any) -> None:
        step = state.optimizer.step

        def twice(closure: Any) -> None:
            closure()
            closure()
            step()

        state.optimizer.step = twice


def test_a_method_that_asks_for_gradients_again_does_not_count_samples_again() -> None:
    _, memory = fitted(TrainMetrics({"samples": Stateful()}), algorithms=[Again()])
    assert memory.series("train/samples") == [(4, 20.0), (8, 20.0)]


class Forgetful:
    """In the way of torchmetrics, without a state."""

    reset = update = compute = lambda *_: 0.0


@pytest.mark.parametrize(("given", "says"), [
    ("accurcy", "unknown metric of train_metrics 'accurcy'; did you mean 'accuracy'"),
    ("loss", "train_metrics cannot record loss: train/loss is recorded at every batch; give it another name"),
    ([7], r"a metric of train_metrics is a int, which has no reset\(\)"),
    ({"mine": Forgetful()}, "metric 'mine' of train_metrics could not go on after a checkpoint"),
])  # fmt: skip
def test_what_cannot_be_right_is_said_before_the_first_batch(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        fitted(TrainMetrics(given))


def test_an_interval_is_positive() -> None:
    with pytest.raises(ValueError, match="interval must be positive, but got 0ba"):
        TrainMetrics(interval=Time.parse("0ba"))
