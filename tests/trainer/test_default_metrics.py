"""Metrics of a model that names none: they fit what it gives, weigh what they count, and guess nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from expkit.errors import UsageError
from expkit.metrics import Accuracy, CrossEntropy
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.evaluator import Evaluator
from tests.trainer.doubles import Memory, batches, net, trainer
from tests.trainer.hugging_face import ForCausalLM, ForSequenceClassification, sentences


def measured(model: nn.Module, data: Any, metrics: Any = None, **settings: Any) -> dict[str, float]:
    """What an evaluation finds before training."""
    train = data.dataloader if isinstance(data, DataSpec) else data
    with trainer(model, train_dataloader=train, **settings) as t:
        return t.eval(Evaluator("eval", data, metrics))


def joined(model: nn.Module, data: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and labels of all batches."""
    with torch.no_grad():
        logits = torch.cat([model(batch["input_ids"]).logits for batch in data])
    return logits, torch.cat([batch["labels"] for batch in data])


def count_causal(batch: Any) -> Any:
    return (batch["labels"][:, 1:] != -100).sum()


def test_a_causal_language_model_has_its_own_loss_over_tokens_and_says_how_to_have_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, data = ForCausalLM(), sentences()
    logits, labels = joined(model, data)
    exact = cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).item()
    by_tokens = measured(model, data)
    assert list(by_tokens) == ["eval/loss"]
    assert by_tokens["eval/loss"] == pytest.approx(exact, rel=1e-2)
    losses, counts = zip(*((model(**batch).loss.item(), int((batch["labels"] != -100).sum())) for batch in data),
                         strict=True)  # fmt: skip
    expected = sum(loss * n for loss, n in zip(losses, counts, strict=True)) / sum(counts)
    assert by_tokens["eval/loss"] == pytest.approx(expected, rel=1e-6)
    assert "evaluator eval reports its loss alone" in caplog.text and "class_axis=-1, shift=1" in caplog.text
    counted = measured(model, DataSpec(data, weight_in_batch=count_causal))
    assert counted["eval/loss"] == pytest.approx(exact, rel=1e-6)


def test_what_the_message_says_gives_the_accuracy_of_the_next_token() -> None:
    model, data = ForCausalLM(), sentences()
    logits, labels = joined(model, data)
    right = (logits[:, :-1].argmax(2) == labels[:, 1:])[labels[:, 1:] != -100]
    exact = cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).item()
    found = measured(model, data, ["loss", Accuracy(class_axis=-1, shift=1), CrossEntropy(class_axis=-1, shift=1)])
    assert found["eval/accuracy"] == pytest.approx(right.float().mean().item())
    assert found["eval/cross_entropy"] == pytest.approx(exact, rel=1e-6)
    assert list(found) == ["eval/loss", "eval/accuracy", "eval/cross_entropy"]


def test_the_loss_of_an_evaluation_is_computed_as_that_of_training_is() -> None:
    memory, data = Memory(), sentences(sizes=(6,))
    settings = {"max_duration": "1ba", "precision": "amp_bf16", "schedulers": lambda step: 0.0, "loggers": [memory]}
    with trainer(ForCausalLM(), train_dataloader=data, eval_dataloader=data, **settings) as t:
        t.fit()
    assert dict(memory.series("eval/loss")) == pytest.approx(dict(memory.series("train/loss")))
    assert t.state.losses == {}


@pytest.mark.parametrize(("num_labels", "labels", "names"), [
    (3, "class", {"eval/loss", "eval/accuracy"}), (1, "value", {"eval/loss"}), (3, "marks", {"eval/loss"}),
])  # fmt: skip
def test_encoders_that_classify_or_estimate_have_what_fits_their_labels(
    num_labels: int, labels: str, names: set[str]
) -> None:
    model, data = ForSequenceClassification(num_labels), sentences(labels)
    found = measured(model, data)
    assert set(found) == names
    logits, targets = joined(model, data)
    whole = {"input_ids": torch.cat([batch["input_ids"] for batch in data]), "labels": targets}
    assert found["eval/loss"] == pytest.approx(model(**whole).loss.item(), rel=1e-6)
    if "eval/accuracy" in names:
        assert found["eval/accuracy"] == pytest.approx((logits.argmax(1) == targets).float().mean().item())


@pytest.mark.parametrize("width", [1, 4])
def test_values_have_the_loss_that_was_given_and_no_accuracy(width: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(8, width)
    data = [(x, x[:, :width].clone()) for x, _ in batches(3, last=1)]
    inputs, values = (torch.cat(parts) for parts in zip(*data, strict=True))
    found = measured(model, data, loss_fn=mse_loss)
    assert found == {"eval/loss": pytest.approx(mse_loss(model(inputs), values).item(), rel=1e-6)}
    parted = measured(model, data, loss_fn=lambda o, t: {"fit": mse_loss(o, t), "size": 2.0})
    assert parted["eval/loss"] == pytest.approx(found["eval/loss"] + 2)


class Places(nn.Module):
    """Logits with as many classes as places, so that either of two axes may be theirs."""

    def forward(self, x: Any) -> Any:
        return x.unsqueeze(1).expand(-1, 8, -1) + self.shift

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(()))


@pytest.mark.parametrize(("model", "targets", "loss_fn", "names"), [
    (net, lambda y: y, None, ["accuracy", "cross_entropy"]),
    (net, lambda y: y, lambda o, t: cross_entropy(o, t), ["accuracy", "cross_entropy"]),
    (net, lambda y: nn.functional.one_hot(y, 4).float(), nn.CrossEntropyLoss(), ["accuracy", "cross_entropy"]),
    (net, lambda y: nn.functional.one_hot(y, 4).float(), nn.BCEWithLogitsLoss(), ["loss"]),
    (Places, lambda y: y.unsqueeze(1).expand(-1, 8), cross_entropy, ["accuracy", "cross_entropy"]),
    (Places, lambda y: y.unsqueeze(1).expand(-1, 8), lambda o, t: cross_entropy(o, t), ["loss"]),
])  # fmt: skip
def test_classes_are_classes_where_shapes_or_the_loss_leave_no_doubt(
    model: Any, targets: Any, loss_fn: Any, names: list[str]
) -> None:
    bare = model()
    bare = nn.Sequential(bare) if model is net else bare  # without the metrics of its own
    data = [(x, targets(y)) for x, y in batches(2)]
    assert list(measured(bare, data, loss_fn=loss_fn)) == [f"eval/{name}" for name in names]


def test_the_loss_stands_beside_the_metrics_of_a_model() -> None:
    found = measured(net(), batches(2), ["accuracy", "loss"])
    inputs, targets = (torch.cat(parts) for parts in zip(*batches(2), strict=True))
    assert found["eval/loss"] == pytest.approx(cross_entropy(net()(inputs), targets).item(), rel=1e-6)


def test_a_batch_in_which_nothing_counts_is_left_out_and_nothing_at_all_is_nan() -> None:
    model, data = ForCausalLM(), sentences()
    nothing = {**data[0], "labels": torch.full((6, 9), -100)}
    assert measured(model, [nothing, *data]) == pytest.approx(measured(model, data))
    assert measured(model, [nothing])["eval/loss"] != measured(model, [nothing])["eval/loss"]


def test_each_evaluator_settles_by_its_own_first_batch_and_then_no_more() -> None:
    memory = Memory()
    evaluators = [Evaluator("same", batches(2)), Evaluator("values", [(x, x[:, :4]) for x, _ in batches(2)], "loss")]

    def either(outputs: Any, targets: Any) -> Any:
        return mse_loss(outputs, targets) if targets.is_floating_point() else cross_entropy(outputs, targets)

    with trainer(nn.Sequential(net()), eval_dataloader=evaluators, loss_fn=either, loggers=[memory]) as t:
        t.fit()
    assert set(t.state.metrics) == {"same/accuracy", "same/cross_entropy", "values/loss"}
    assert [batch for batch, _ in memory.series("same/accuracy")] == [4, 8]


@pytest.mark.parametrize(("model", "data", "says"), [
    (ForCausalLM, [{"input_ids": torch.zeros(2, 9, dtype=torch.long)}],
     r"no metric fits evaluator eval, whose outputs are a Output of logits and whose targets are none: the loss says "
     r"the batch has no targets.*give Evaluator\(label, data, metrics=...\), or the model a metrics\(\)"),
    (lambda: nn.Linear(8, 4), [(x, x) for x, _ in batches(1)],
     r"whose outputs are float32 \[6, 4\] and whose targets are float32 \[6, 8\]: the loss says"),
])  # fmt: skip
def test_where_nothing_fits_that_is_said_with_what_was_there(model: Any, data: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(model(), train_dataloader=data).eval(data)
