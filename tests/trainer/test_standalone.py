"""eval() and predict(): their events, what they give, and that they leave model, state and draws as they were."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.errors import UsageError
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from tests.trainer.doubles import Memory, Net, acting_recorder, batches, net, recorder, trainer, weights
from tests.trainer.test_event import section, walk

BATCHES = 3


def seen_since(listener: Any, call: Callable[[], Any]) -> list[Event]:
    before = len(listener.seen)
    call()
    return listener.seen[before:]


@pytest.mark.parametrize("kind", ["callbacks", "algorithms"])
def test_both_follow_the_map(kind: str) -> None:
    listener = recorder() if kind == "callbacks" else acting_recorder()
    data = {"one": batches(BATCHES), "two": batches(BATCHES)}
    t = trainer(eval_dataloader=data, **{kind: [listener]})
    times = {"evaluator": 2, "evaluation batch": BATCHES, "batch": BATCHES}
    assert seen_since(listener, t.eval) == walk(section("eval():"), times)
    assert seen_since(listener, lambda: t.predict(batches(BATCHES))) == walk(section("predict():"), times)


def test_eval_gives_what_the_evaluation_in_training_gives() -> None:
    memory = Memory()
    t = trainer(eval_dataloader=batches(2), loggers=[memory])
    t.fit()
    values = t.eval()
    assert values == {"eval/accuracy": memory.series("eval/accuracy")[-2][1]}
    assert [batch for batch, _ in memory.series("eval/accuracy")] == [4, 8, 8]
    assert t.state.metrics == values


def test_eval_takes_other_data_also_several_and_a_subset() -> None:
    batch = torch.zeros(6, 8)
    with torch.no_grad():
        answer = int(net()(batch).argmax(1)[0])
    right, wrong = torch.full((6,), answer), torch.full((6,), (answer + 1) % 4)
    t = trainer(eval_dataloader=batches(2))
    assert t.eval([(batch, right), (batch, wrong)]) == {"eval/accuracy": 0.5}
    assert t.eval([(batch, right), (batch, wrong)], subset_num_batches=1) == {"eval/accuracy": 1.0}
    assert t.eval({"a": [(batch, right)], "b": [(batch, wrong)]}) == {"a/accuracy": 1.0, "b/accuracy": 0.0}
    assert t.eval([(batch, right)], subset_num_batches=9) == {"eval/accuracy": 1.0}


def test_evaluations_in_training_may_look_at_a_subset() -> None:
    listener = recorder()
    t = trainer(eval_dataloader=batches(5), eval_subset_num_batches=2, callbacks=[listener], max_duration="1ep")
    t.fit()
    assert listener.seen.count(Event.EVAL_BATCH_END) == 2
    seen = seen_since(listener, t.eval)
    assert seen.count(Event.EVAL_BATCH_END) == 2
    seen = seen_since(listener, lambda: t.eval(subset_num_batches=4))
    assert seen.count(Event.EVAL_BATCH_END) == 4


def test_predict_gives_outputs_of_each_batch_as_the_model_makes_them_when_it_does_not_train() -> None:
    t = trainer(net(dropout=0.5))
    outputs = t.predict(batches(3, last=2))
    assert [o.shape for o in outputs] == [(6, 4), (6, 4), (2, 4)]
    model = net(dropout=0.5).eval()
    for output, (inputs, _) in zip(outputs, batches(3, last=2), strict=True):
        assert torch.equal(output, model(inputs))
        assert output.device.type == "cpu" and not output.requires_grad
    assert len(t.predict(batches(3), subset_num_batches=2)) == 2
    assert t.predict([b[0] for b in batches(2)])[0].shape == (6, 4)  # inputs alone will do


def test_predict_leaves_outputs_to_listeners_and_takes_what_they_make_of_them() -> None:
    @dataclass
    class Collect(Callback):
        seen: Any = field(default_factory=list, init=False)

        def predict_after_forward(self, state: Any, logger: Any) -> None:
            state.outputs = {"classes": state.outputs.argmax(1)}

        def predict_batch_end(self, state: Any, logger: Any) -> None:
            self.seen.append(state.outputs["classes"].shape)

    collect = Collect()
    t = trainer(callbacks=[collect])
    assert t.predict(batches(2), return_outputs=False) == []
    assert collect.seen == [(6,), (6,)]
    assert t.predict(batches(1))[0]["classes"].shape == (6,)


FIELDS = ("batch", "outputs", "loss", "data", "eval_name", "timestamp", "previous_timestamp", "stop_reason", "error",
          "evaluated_at", "batches", "microbatch", "num_microbatches", "train_loss", "train_s")  # fmt: skip


@dataclass
class Failing(Callback):
    at: str = ""

    def eval_after_forward(self, state: Any, logger: Any) -> None:
        self._fail("eval")

    def eval_standalone_end(self, state: Any, logger: Any) -> None:
        self._fail("eval_end")

    def predict_batch_end(self, state: Any, logger: Any) -> None:
        self._fail("predict")

    def predict_start(self, state: Any, logger: Any) -> None:
        self._fail("predict_start")

    def _fail(self, where: str) -> None:
        if where == self.at:
            raise ZeroDivisionError(where)


@pytest.mark.parametrize("failing", ["", "eval", "eval_end", "predict", "predict_start"])
def test_model_and_state_are_left_as_they_were_also_after_an_error(failing: str) -> None:
    callback = Failing()
    model = net(dropout=0.3)
    model[0].eval()  # frozen by somebody, and to stay so
    t = trainer(model, callbacks=[callback], eval_dataloader=batches(2), max_duration="6ba", loggers=[Memory()])
    t.fit()
    model[0].eval()
    before = {name: getattr(t.state, name) for name in FIELDS}
    modes, kept, metrics = [m.training for m in model.modules()], weights(t), copy.copy(t.state.metrics)
    torch_state, python_state, part = torch.get_rng_state(), random.getstate(), t.clocks
    callback.at = failing
    for call in (t.eval, lambda: t.predict(batches(2))):
        try:
            call()
        except ZeroDivisionError as e:
            assert str(e) == failing
    assert all(getattr(t.state, name) is before[name] for name in FIELDS)
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(weights(t), kept)
    assert t.state.metrics.keys() == metrics.keys()
    assert torch.equal(torch.get_rng_state(), torch_state) and random.getstate() == python_state
    assert t.clocks["train_s"] == part["train_s"]


@pytest.mark.parametrize("error", [False, True])
def test_training_goes_on_in_the_middle_of_an_epoch_as_if_nothing_had_happened(error: bool) -> None:
    plain, disturbed = trainer(net(dropout=0.3), max_duration="3ba"), trainer(net(dropout=0.3), max_duration="3ba")
    for t in (plain, disturbed):
        t.fit()
        if t is disturbed:
            t.eval(batches(2))
            t.predict(batches(2))
            if error:
                with pytest.raises(RuntimeError):
                    t.predict([torch.zeros(2, 3)])
        t.fit("3ba")
    assert torch.equal(weights(plain), weights(disturbed))


def test_a_callback_may_evaluate_in_the_middle_of_a_batch() -> None:
    @dataclass
    class Curious(Callback):
        seen: Any = field(default_factory=list, init=False)

        def after_forward(self, state: Any, logger: Any) -> None:
            self.seen.append(t.eval(batches(1))["eval/accuracy"])

    t = trainer(net(dropout=0.3), callbacks=[Curious()], max_duration="3ba")
    t.fit()
    alone = trainer(net(dropout=0.3), max_duration="3ba")
    alone.fit()
    assert torch.equal(weights(t), weights(alone))


def test_a_model_that_draws_when_it_predicts_draws_the_same_every_time() -> None:
    class Noisy(Net):
        def forward(self, inputs: Any) -> Any:
            return super().forward(inputs) + torch.randn(4)

    t = trainer(Noisy())
    first, again = t.predict(batches(2)), t.predict(batches(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0] - Net.forward(t.state.model, batches(2)[0][0]), torch.zeros(6, 4))


def test_neither_counts_as_training() -> None:
    t = trainer(eval_dataloader=batches(2))
    t.eval()
    t.predict(batches(1))
    assert (t.state.timestamp.batch, t.clocks["train_s"]) == (0, 0.0)
    t.fit()
    billed = t.clocks
    t.eval()
    assert t.clocks["train_s"] == billed["train_s"] and t.clocks["eval_s"] > billed["eval_s"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda t: t.eval(), "nothing to evaluate on; give an eval_dataloader"),
        (lambda t: t.eval(batches(1), subset_num_batches=0), "subset_num_batches must be .* but got 0"),
        (lambda t: t.predict(batches(1), subset_num_batches=-1), "subset_num_batches must be .* but got -1"),
    ],
)
def test_refused_in_a_sentence(call: Any, says: str) -> None:
    listener = recorder()
    t = trainer(callbacks=[listener])
    before = list(listener.seen)
    with pytest.raises(UsageError, match=says):
        call(t)
    assert listener.seen == before  # refused before anybody heard of it
    with pytest.raises(UsageError, match="eval_subset_num_batches must be a number of batches"):
        trainer(eval_subset_num_batches=0)


def test_predict_takes_mappings_and_gives_back_what_the_model_gives() -> None:
    class Named(Net):
        def forward(self, pixel_values: Any, labels: Any = None) -> Any:
            logits = super().forward(pixel_values)
            return {"logits": logits, "hidden": (pixel_values * 2,)}

        def loss(self, outputs: Any, targets: Any) -> Any:
            return torch.nn.functional.cross_entropy(outputs["logits"], targets)

    data = [{"pixel_values": inputs, "labels": targets} for inputs, targets in batches(2)]
    t = trainer(Named(), train_dataloader=data, eval_dataloader=data)
    first, _ = t.predict(data)
    assert first["logits"].shape == (6, 4) and torch.equal(first["hidden"][0], data[0]["pixel_values"] * 2)
    assert t.eval().keys() == {"eval/accuracy"}
    alone = t.predict([{"pixel_values": batches(1)[0][0]}])
    assert torch.equal(alone[0]["logits"], first["logits"])
