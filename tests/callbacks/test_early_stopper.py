from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from expkit.callbacks.early_stopper import EarlyStopper
from expkit.duration import Time
from expkit.errors import PluginError, UsageError
from expkit.loggers.memory import Memory
from expkit.metrics.cross_entropy import CrossEntropy
from expkit.trainer.contracts import Metric
from expkit.trainer.schedule import Steps
from tests.callbacks.lab import Lines, batches, state_of, trainer

NOW = Time.parse("0ba")
RISING = [0.1, 0.2, 0.3, 0.25, 0.29, 0.3, 0.28, 0.27]


class Told:
    """A training that evaluates to what it is told, after every tenth batch, and keeps why it was asked to stop."""

    def __init__(self, **given: Any) -> None:
        self.reasons: list[str] = []
        self.state = state_of(stop=self.reasons.append, **given)

    def evaluate(self, stopper: EarlyStopper, values: list[Any], name: str = "eval/accuracy") -> int | None:
        """The evaluation at which it was asked to stop, None where it was not; they count from 1."""
        stopper.fit_start(self.state, Lines())
        stopper.eval_before_all(self.state, Lines())
        for value in values:
            now = self.state.timestamp
            self.state.timestamp = now._replace(batch=now.batch + 10, sample=now.sample + 80, train_s=now.train_s + 5)
            self.state.eval_name, self.state.metrics = name.split("/")[0], {name: value}
            stopper.eval_end(self.state, Lines())
            if self.reasons:
                return int(self.state.timestamp.batch) // 10
        return None


@pytest.mark.parametrize(
    ("patience", "stops"),
    [("0ba", 4), ("9ba", 4), ("10ba", 5), ("1ep", 5), ("2ep", None), ("0.15dur", 5), ("80sp", 5), ("5sec", 5)],
)
def test_it_stops_when_more_than_patience_has_passed_since_the_best(patience: str, stops: int | None) -> None:
    values = RISING[:5]
    assert Told().evaluate(EarlyStopper("eval/accuracy", patience=Time.parse(patience)), values) == stops


def test_an_equal_value_is_no_improvement() -> None:
    assert Told().evaluate(EarlyStopper("eval/accuracy", patience=Time.parse("2ep")), RISING) == 6


def test_patience_shrinks_with_the_training() -> None:
    stopper = EarlyStopper("eval/accuracy", patience=Time.parse("20ba"))
    assert Told(steps=Steps(total=50, per_epoch=10, batch_size=8, ssr=0.5)).evaluate(stopper, RISING) == 5


@pytest.mark.parametrize(
    ("name", "comp", "values", "stops"),
    [
        ("eval/cross_entropy", None, [3, 2, 1, 1.5, 1.2], 5),
        ("eval/loss", None, [3, 2, 1, 0.5, 0.2], None),
        ("eval/error", "greater", [3, 2, 1], 3),
        ("eval/F1Score", None, [1, 2, 3, 2, 2], 5),
        ("eval/MulticlassAUROC", None, [1, 2, 3, 2, 2], 5),
        ("eval/bits", "less", [3, 2, 1], None),
    ],
)
def test_which_way_is_better_goes_by_the_name_or_by_what_was_given(
    name: str, comp: Any, values: list[float], stops: int | None
) -> None:
    assert Told().evaluate(EarlyStopper(name, comp), values, name) == stops


def test_small_improvements_do_not_count() -> None:
    assert Told().evaluate(EarlyStopper("eval/accuracy", min_delta=0.0625), [0.5, 0.53, 0.56, 0.57]) == 3
    assert Told().evaluate(EarlyStopper("eval/accuracy", min_delta=0.04), [0.5, 0.55, 0.60, 0.65]) is None


def test_nan_and_inf_are_no_improvement() -> None:
    nan, inf = math.nan, math.inf
    assert Told().evaluate(EarlyStopper("eval/accuracy"), [nan, inf, nan, 0.5]) == 3
    assert Told().evaluate(EarlyStopper("eval/accuracy"), [nan, 0.1, nan, nan]) == 4
    told = Told()
    told.evaluate(EarlyStopper("eval/accuracy"), [nan, nan, nan])
    assert told.reasons == ["eval/accuracy has not been finite for more than 1ep"]


def test_a_metric_with_several_values_is_watched_by_a_dotted_path() -> None:
    """EarlyStopper crashed on metrics that return dicts (Composer #2413)."""
    assert Told().evaluate(EarlyStopper("eval/f1.macro"), [{"macro": value} for value in RISING], "eval/f1") == 5


def test_other_evaluators_do_not_count() -> None:
    told, stopper = Told(), EarlyStopper("eval/accuracy", patience=NOW)
    assert told.evaluate(stopper, [0.5], "eval/accuracy") is None
    assert told.evaluate(stopper, [0.1, 0.1], "other/accuracy") is None


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_the_counter_goes_on_after_a_resume(cut: int) -> None:
    """EarlyStopper had no state: its counter began anew with each resume (D23)."""
    told, first, second = Told(), EarlyStopper("eval/accuracy"), EarlyStopper("eval/accuracy")
    assert told.evaluate(first, RISING[:cut]) is None
    second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    assert told.evaluate(second, RISING[cut:]) == 5


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"monitor": "accuracy"}, "a series to monitor is called eval/accuracy"),
        ({"monitor": "eval/bits"}, "comp must be less or greater, because the name 'eval/bits' does not say"),
        ({"monitor": "eval/accuracy", "patience": "3iter"}, "patience is in ep, ba, sp, tok, sec or dur"),
        ({"monitor": "eval/accuracy", "min_delta": -1}, "min_delta"),
        ({"monitor": "eval/accuracy", "patience": 3}, "not a duration"),
    ],
)
def test_settings_that_cannot_be_are_refused_when_they_are_read(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises((PluginError, ValueError), match=sentence):
        EarlyStopper(**given)


def test_a_series_that_its_evaluator_does_not_record_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"unknown series to monitor 'eval/acuracy'; did you mean 'eval/accuracy'"):
        trainer([EarlyStopper("eval/acuracy", "greater")]).fit()


class Events(Memory):
    """Keeps events as well."""

    def log_event(self, kind: str, payload: Any, state: Any) -> None:
        self.hyperparameters[kind] = payload


def test_an_evaluator_that_is_not_there_is_told_at_the_end() -> None:
    events = Events()
    trainer([EarlyStopper("evil/accuracy")], loggers=[events]).fit()
    assert "evil/accuracy was never recorded" in events.hyperparameters["monitored"]["message"]


class Improving(torch.nn.Linear):
    """Records its loss on the data it is evaluated on."""

    def metrics(self) -> dict[str, Metric]:
        return {"loss": CrossEntropy()}


def test_training_ends_after_the_evaluation_that_said_so() -> None:
    torch.manual_seed(0)
    stopper = EarlyStopper("eval/loss", "greater", patience=Time.parse("3ba"))  # its loss goes down, to be sure
    t = trainer([stopper], model=Improving(6, 3), eval_dataloader=batches(), max_duration="9ep")
    t.fit()
    assert t.state.timestamp.batch == t.state.evaluated_at["eval"] == 6  # best at 2, looked at after 4 and 6
    assert t.state.stop_reason is not None and "eval/loss has not improved on" in t.state.stop_reason
    assert not t.diverged


def test_the_mean_loss_of_an_epoch_is_what_counts_in_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train metrics were those of the last batch alone (Composer #1496)."""
    seen: list[float] = []
    monkeypatch.setattr(EarlyStopper, "_look", lambda self, value, state: value is not None and seen.append(value))
    memory = Memory()
    data = batches(last=2)
    trainer([EarlyStopper("train/loss", patience=Time.parse("9ep"))], loggers=[memory], train_dataloader=data).fit()
    losses = memory.get_timeseries("train/loss")["value"]
    weighted = [sum(4 * loss for loss in epoch[:5]) + 2 * epoch[5] for epoch in (losses[:6], losses[6:])]
    assert seen == [pytest.approx(total / 22) for total in weighted]


def test_in_batches_each_loss_counts() -> None:
    with trainer([EarlyStopper("train/loss", min_delta=100, patience=Time.parse("3ba"))]) as t:
        t.fit()
    assert t.state.timestamp.batch == 5  # best at 1, more than 3 batches later


def test_an_evaluation_asked_for_outside_of_training_is_no_news() -> None:
    stopper = EarlyStopper("eval/accuracy")
    with trainer([stopper], max_duration="2ba") as t:
        t.eval()
        assert stopper.state_dict()["since"] is None
        t.fit()
        seen = stopper.state_dict()
        t.eval()
    assert stopper.state_dict() == seen and seen["since"] == 2
