"""Models of every kind: plain ones with a loss, the protocol's methods, and one that finds its labels in the batch."""

from __future__ import annotations

import collections
import copy
import functools
from typing import Any

import pytest
import torch
from torch import nn

from expkit.algorithms.cutmix import CutMix
from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.algorithms.mixup import MixUp
from expkit.algorithms.selective_backprop import SelectiveBackprop
from expkit.algorithms.seq_length_warmup import SeqLengthWarmup
from expkit.errors import ExpkitError, UsageError
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Accuracy, Memory, batches, net, trainer, weights


def fitted(model: nn.Module | None = None, **settings: Any) -> Trainer:
    t = trainer(model, **settings)
    t.fit()
    return t


class Wrapped(nn.Module):
    """The small net, called in some other way."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def metrics(self) -> dict[str, Any]:
        return {"accuracy": Accuracy()}


class ByName(Wrapped):
    def forward(self, pixels: Any, gain: float = 1.0, *, shift: float = 0.0) -> Any:
        return self.net(pixels * gain + shift)


class Everything(Wrapped):
    def forward(self, **batch: Any) -> Any:
        return self.net(batch["pixels"])


class Positional(Wrapped):
    def forward(self, whatever: Any, /, gain: float = 1.0) -> Any:
        return self.net(whatever * gain)


class OneArgument(Wrapped):
    def forward(self, whatever: Any) -> Any:
        return self.net(whatever)


class WholeBatch(Wrapped):
    def forward(self, batch: Any) -> Any:
        return self.net(batch["pixels"])


class Protocol(Wrapped):
    """In the way of Composer's models: everything gets the batch."""

    seen: Any = None

    def forward(self, batch: Any) -> Any:
        inputs, _ = batch
        return self.net(inputs)

    def loss(self, outputs: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        return nn.functional.cross_entropy(outputs, batch[1])

    def eval_forward(self, batch: Any, outputs: Any = None) -> Any:
        assert not self.training
        return self.forward(batch) if outputs is None else outputs

    def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
        self.seen = batch
        metric.update(outputs, batch[1])


PLAIN = fitted(eval_dataloader=batches(2))


def keyed(**more: Any) -> list[dict[str, Any]]:
    return [{"pixels": x, "labels": y, "image": x, **more} for x, y in batches()]


@pytest.mark.parametrize("model", [ByName, Everything, Positional, OneArgument, WholeBatch])
def test_a_mapping_goes_into_the_model_by_name_else_as_inputs_or_whole(model: Any) -> None:
    t = fitted(model(), train_dataloader=keyed(), eval_dataloader=keyed()[:2])
    assert torch.equal(weights(t), weights(PLAIN))
    assert t.state.metrics == PLAIN.state.metrics


def test_optional_parameters_are_given_where_the_batch_has_them() -> None:
    scaled = [{"pixels": x / 2, "gain": 2.0, "shift": 0.0, "labels": y} for x, y in batches()]
    assert torch.equal(weights(fitted(ByName(), train_dataloader=scaled)), weights(PLAIN))


def test_what_forward_needs_and_the_batch_lacks_is_named() -> None:
    class Two(Wrapped):
        def forward(self, left: Any, right: Any) -> Any:
            return left

    with pytest.raises(ExpkitError, match="forward of Two takes left, right, but the batch has pixels, labels, image"):
        fitted(Two(), train_dataloader=keyed())


@pytest.mark.parametrize("wrap", [
    lambda x, y: (x, y), lambda x, y: [x, y], lambda x, y: (x, y, "more"), lambda x, y: {"x": x, "y": y},
    lambda x, y: collections.namedtuple("B", "target id input")(y, [0] * len(y), x),
    lambda x, y: collections.OrderedDict(label=y, input=x),
    lambda x, y: (x, y, {"weights": [torch.ones(len(y)), "text"]}),
])  # fmt: skip
@pytest.mark.parametrize("size", [None, 4])
def test_batches_of_every_shape_train_alike_in_parts_and_in_one(wrap: Any, size: int | None) -> None:
    settings = {"device_train_microbatch_size": size, "eval_dataloader": batches(2)}
    t = fitted(net(), train_dataloader=[wrap(x, y) for x, y in batches()], **settings)
    assert torch.equal(weights(t), weights(fitted(**settings)))
    assert t.state.timestamp.sample == 48


def test_a_tensor_is_all_inputs_and_the_loss_may_look_at_the_batch() -> None:
    class Autoencoder(nn.Linear):
        def loss(self, outputs: Any, batch: Any) -> Any:
            return (outputs - batch).square().mean()

    torch.manual_seed(0)
    t = fitted(Autoencoder(8, 8), train_dataloader=[x for x, _ in batches()])
    torch.manual_seed(0)
    own = fitted(nn.Linear(8, 8), train_dataloader=[(x, x) for x, _ in batches()], loss_fn=nn.functional.mse_loss)
    torch.testing.assert_close(weights(t), weights(own))


@pytest.mark.parametrize("loss_fn", [
    nn.functional.cross_entropy, nn.CrossEntropyLoss(), functools.partial(nn.functional.cross_entropy),
    lambda outputs, targets: nn.functional.cross_entropy(outputs, targets),
    lambda outputs, batch: nn.functional.cross_entropy(outputs, batch[1]),
])  # fmt: skip
def test_a_plain_module_with_a_loss_in_any_form(loss_fn: Any) -> None:
    assert torch.equal(weights(fitted(loss_fn=loss_fn)), weights(PLAIN))


@pytest.mark.parametrize("give", [
    lambda z: {"logits": z, "hidden": 1}, lambda z: (z, "more"), lambda z: collections.OrderedDict(hidden=1, logits=z),
])  # fmt: skip
@pytest.mark.parametrize("method", [[], [LabelSmoothing()], [MixUp()], [MixUp(interpolate_loss=True)]])
def test_losses_and_metrics_and_methods_find_the_logits_in_outputs(give: Any, method: Any) -> None:
    class Giving(Wrapped):
        def forward(self, x: Any) -> Any:
            return give(self.net(x))

    t = fitted(Giving(), eval_dataloader=batches(2), algorithms=copy.deepcopy(method))
    plain = fitted(eval_dataloader=batches(2), algorithms=copy.deepcopy(method))
    assert torch.equal(weights(t), weights(plain))
    assert t.state.metrics == plain.state.metrics


def test_a_loss_given_goes_before_the_models_own() -> None:
    class Wrong(type(net())):  # type: ignore[misc]
        def loss(self, outputs: Any, targets: Any) -> Any:
            raise AssertionError

    torch.manual_seed(0)
    assert torch.equal(weights(fitted(Wrong(), loss_fn=nn.functional.cross_entropy)), weights(PLAIN))


def test_a_module_that_keeps_a_value_called_loss_has_no_loss_function() -> None:
    class Keeping(Wrapped):
        loss: Any = None

        def forward(self, x: Any) -> Any:
            self.loss = x.sum()
            return self.net(x)

    assert torch.equal(weights(fitted(Keeping())), weights(PLAIN))


def test_the_protocol_of_models_that_take_batches() -> None:
    model = Protocol()
    t = fitted(model, eval_dataloader=batches(2))
    assert torch.equal(weights(t), weights(PLAIN))
    assert t.state.metrics == PLAIN.state.metrics
    assert torch.equal(model.seen[1], batches(2)[1][1])


@pytest.mark.parametrize("method", [LabelSmoothing(), MixUp(), MixUp(interpolate_loss=True)])
def test_methods_that_change_targets_reach_a_loss_that_takes_the_batch(method: Any) -> None:
    plain = fitted(algorithms=[copy.deepcopy(method)])
    assert torch.equal(weights(fitted(Protocol(), algorithms=[copy.deepcopy(method)])), weights(plain))
    assert not torch.equal(weights(plain), weights(PLAIN))


def test_selecting_samples_scores_a_loss_that_takes_the_batch_as_any_other() -> None:
    method = {"start": 0.0, "end": 1.0, "interrupt": 0}
    plain = fitted(algorithms=[SelectiveBackprop(**method)])  # type: ignore[arg-type]
    for size in (None, 2):
        own = fitted(Protocol(), algorithms=[SelectiveBackprop(**method)],  # type: ignore[arg-type]
                     device_train_microbatch_size=size)  # fmt: skip
        torch.testing.assert_close(weights(own), weights(plain))
    assert plain.effective == {"selective_backprop": True}


def test_a_batch_without_targets_for_cross_entropy_is_said() -> None:
    with pytest.raises(UsageError, match=r"no targets for cross entropy: give the model a loss\(outputs, batch\)"):
        fitted(train_dataloader=[x for x, _ in batches()])


def test_outputs_without_logits_are_said() -> None:
    class Hidden(Wrapped):
        def forward(self, x: Any) -> Any:
            return {"hidden": self.net(x)}

    with pytest.raises(ExpkitError, match="need logits, but the model gave hidden"):
        fitted(Hidden())


class Output(collections.OrderedDict):  # type: ignore[type-arg]
    """Like the outputs of Hugging Face's models: a mapping with attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class Sequences(nn.Module):
    """Like their language models: labels come in the batch, the loss goes out with the logits (B, L, V)."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(11, 6), nn.Linear(6, 11)
        self.taken: Any = set()

    def forward(self, input_ids: Any = None, attention_mask: Any = None, labels: Any = None, **more: Any) -> Any:
        self.taken |= {"input_ids", *(["labels"] if labels is not None else []), *more}
        mask = attention_mask.unsqueeze(-1)
        logits = self.head((self.embedding(input_ids) * mask).cumsum(1) / mask.cumsum(1).clamp(min=1))
        if labels is None:
            return Output(logits=logits)
        labels = labels.clone()
        labels[:, 0] = -100
        shifted = logits[:, :-1].reshape(-1, 11), labels[:, 1:].reshape(-1)
        return Output(loss=nn.functional.cross_entropy(*shifted), logits=logits)

    def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
        metric.update(outputs.logits[:, :-1].transpose(1, 2), batch["labels"][:, 1:])

    def metrics(self) -> dict[str, Any]:
        from expkit.metrics import Accuracy, CrossEntropy

        return {"accuracy": Accuracy(), "cross_entropy": CrossEntropy()}


def sentences(cls: Any = dict, count: int = 3) -> list[Any]:
    draw = torch.Generator().manual_seed(4)
    made = []
    for _ in range(count):
        ids = torch.randint(11, (6, 9), generator=draw)
        made.append(cls({"input_ids": ids, "attention_mask": torch.ones(6, 9), "labels": ids.clone(),
                         "idx": list(range(6)), "name": ["a"] * 6}))  # fmt: skip
    return made


class Encoding(collections.UserDict):  # type: ignore[type-arg]
    pass


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, (dict, collections.UserDict)):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return bool(a == b)


@pytest.mark.parametrize("cls", [dict, Encoding])
@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize("method", [[], [SeqLengthWarmup(min_seq_length=3, step_size=2, duration=0.9)],
                                    [SelectiveBackprop(start=0.0, end=1.0, interrupt=0)]])  # fmt: skip
def test_labels_in_the_batch_and_outputs_as_a_mapping_leave_the_users_batches_as_they_were(
    cls: Any, size: int | None, method: Any
) -> None:
    data = sentences(cls)
    before, tensors = copy.deepcopy(data), [batch["labels"] for batch in data]
    model, memory = Sequences(), Memory()
    t = fitted(model, train_dataloader=data, eval_dataloader=data[:2], device_train_microbatch_size=size,
               algorithms=copy.deepcopy(method), loggers=[memory])  # fmt: skip
    assert all(same(a, b) for a, b in zip(data, before, strict=True))
    assert all(batch["labels"] is tensor for batch, tensor in zip(data, tensors, strict=True))
    assert model.taken == {"input_ids", "labels"}
    assert set(t.state.metrics) == {"eval/accuracy", "eval/cross_entropy"}
    losses = [value for _, value in memory.series("train/loss")]
    assert losses[-1] < losses[0]
    assert (t.state.timestamp.sample, t.state.timestamp.token) == (36, 36 * 9)
    assert all(t.effective.values())


def test_the_first_loss_is_the_one_that_the_model_computed() -> None:
    data, memory = sentences(), Memory()
    model = Sequences()
    expected = model(**data[0]).loss.item()
    fitted(model, train_dataloader=data, loggers=[memory], max_duration="1ba")
    assert memory.series("train/loss") == [(1, expected)]


@pytest.mark.parametrize("method", [LabelSmoothing(), MixUp(), CutMix()])
def test_a_method_that_would_change_targets_too_late_is_refused(method: Any) -> None:
    with pytest.raises(UsageError, match="changes targets after the forward pass, but the model computes its loss"):
        fitted(Sequences(), train_dataloader=sentences(), algorithms=[method])


def test_a_loss_given_replaces_the_one_that_the_model_computes() -> None:
    def own(outputs: Any, batch: Any) -> Any:
        return nn.functional.cross_entropy(outputs.logits.transpose(1, 2), batch["labels"])

    t = fitted(Sequences(), train_dataloader=sentences(), loss_fn=own)
    again = fitted(Sequences(), train_dataloader=sentences(), algorithms=[LabelSmoothing(smoothing=0.0)], loss_fn=own)
    assert torch.equal(weights(t), weights(again))
    assert not torch.equal(weights(t), weights(fitted(Sequences(), train_dataloader=sentences())))


def test_a_batch_that_a_model_takes_apart_is_whole_again_for_the_next_epoch() -> None:
    class Popping(Sequences):
        def loss(self, outputs: Any, batch: Any) -> Any:
            return nn.functional.cross_entropy(outputs.logits.transpose(1, 2), batch.pop("labels"))

    data = sentences()
    before = copy.deepcopy(data)
    fitted(Popping(), train_dataloader=data)
    assert all(same(a, b) for a, b in zip(data, before, strict=True))


def test_pictures_by_another_name_are_mixed_where_the_data_spec_says() -> None:
    data = [{"pixels": x, "labels": y} for x, y in batches()]
    t = fitted(ByName(), train_dataloader=DataSpec(data, inputs="pixels"), algorithms=[MixUp()])
    assert torch.equal(weights(t), weights(fitted(algorithms=[MixUp()])))
    assert t.effective == {"mixup": True}
    assert all(torch.equal(batch["pixels"], x) for batch, (x, _) in zip(data, batches(), strict=True))
