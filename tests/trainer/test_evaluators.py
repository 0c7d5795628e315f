"""Several evaluators: labels, metrics and intervals of their own; metrics in the way of torchmetrics."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

import expkit
from expkit.callbacks.early_stopper import EarlyStopper
from expkit.errors import ExpkitError, UsageError
from expkit.trainer.callback import Callback
from expkit.trainer.checkpoint.manifest import read_manifest, value_to_rank
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.evaluator import Evaluator
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Accuracy, Memory, Net, batches, net, trainer


class Counting:
    """In the way of torchmetrics: no plug-in, moves to a device, computes a tensor."""

    def __init__(self, give: Any = lambda seen: torch.tensor(float(sum(seen)))) -> None:
        self.give, self.seen, self.device = give, [], None  # type: ignore[var-annotated]

    def to(self, device: Any) -> Counting:
        self.device = device
        return self

    def update(self, preds: Any, target: Any) -> None:
        assert preds.shape == (len(target), 4)
        self.seen.append(len(target))

    def compute(self) -> Any:
        return self.give(self.seen)

    def reset(self) -> None:
        self.seen = []


def fitted(*evaluators: Any, **settings: Any) -> tuple[Trainer, Memory]:
    memory = Memory()
    given: dict[str, Any] = {"max_duration": "2ep", "loggers": [memory], **settings}
    t = trainer(eval_dataloader=list(evaluators), **given)
    t.fit()
    return t, memory


def moments(memory: Memory) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, batch, _ in memory.rows:
        if not name.startswith("train/"):
            found.setdefault(name, []).append(batch)
    return found


def test_two_evaluators_with_the_same_metric_keep_theirs_apart_defect_D26() -> None:
    good = [(x, net()(x).argmax(1)) for x, _ in batches(1)]
    bad = [(x, (y + 1) % 4) for x, y in good]
    t, memory = fitted(Evaluator("good", good), Evaluator("bad", bad), schedulers=lambda step: 0.0)
    assert t.state.metrics == {"good/accuracy": 1.0, "bad/accuracy": 0.0}
    assert memory.series("good/accuracy") == [(4, 1.0), (8, 1.0)]
    assert memory.series("bad/accuracy") == [(4, 0.0), (8, 0.0)]


def test_each_has_an_interval_of_its_own_and_all_come_at_the_end_once() -> None:
    _, memory = fitted(
        Evaluator("often", batches(1), eval_interval="3ba"),
        Evaluator("by_default", batches(1)),
        Evaluator("once", batches(1), eval_interval="1dur"),
        Evaluator("samples", batches(1), eval_interval="20sp"),
        eval_interval="5ba",
    )
    assert moments(memory) == {"often/accuracy": [3, 6, 8], "by_default/accuracy": [5, 8], "once/accuracy": [8],
                               "samples/accuracy": [4, 7, 8]}  # fmt: skip


def test_a_later_fit_evaluates_each_at_its_end_and_none_twice() -> None:
    t, memory = fitted(Evaluator("often", batches(1), eval_interval="3ba"), Evaluator("rare", batches(1)),
                       eval_interval="100ba")  # fmt: skip
    t.fit("2ba")
    t.fit("1ba")
    assert moments(memory) == {"often/accuracy": [3, 6, 8, 9, 10, 11], "rare/accuracy": [8, 10, 11]}


def test_whoever_stops_at_one_evaluator_leaves_the_others_their_last_evaluation() -> None:
    @dataclass
    class Stop(Callback):
        def eval_end(self, state: Any, logger: Any) -> None:
            if state.timestamp.batch == 3:
                state.stop("enough")

    t, memory = fitted(Evaluator("often", batches(1), eval_interval="3ba"), Evaluator("rare", batches(1)),
                       eval_interval="100ba", callbacks=[Stop()])  # fmt: skip
    assert moments(memory) == {"often/accuracy": [3], "rare/accuracy": [3]}
    assert t.state.evaluated_at == {"often": 3, "rare": 3}


def test_events_name_the_evaluator_at_work() -> None:
    @dataclass
    class Watch(Callback):
        seen: Any = field(default_factory=list, init=False)

        def eval_start(self, state: Any, logger: Any) -> None:
            self.seen.append((state.timestamp.batch, state.eval_name))

        def eval_before_all(self, state: Any, logger: Any) -> None:
            self.seen.append(state.timestamp.batch)

    watch = Watch()
    fitted(Evaluator("a", batches(1), eval_interval="3ba"), Evaluator("b", batches(1)), max_duration="4ba",
           callbacks=[watch])  # fmt: skip
    assert watch.seen == [3, (3, "a"), 4, (4, "a"), (4, "b")]


def test_some_batches_of_a_loader_even_one_that_never_ends() -> None:
    class Endless:
        def __iter__(self) -> Any:
            return itertools.cycle(batches(3, size=2))

    t, _ = fitted(
        Evaluator("two", Endless(), Counting(), subset_num_batches=2),
        Evaluator("all", batches(5, size=2), Counting(), subset_num_batches=5),
        Evaluator("default", batches(5, size=2), Counting()),
        eval_subset_num_batches=3,
    )
    assert t.state.metrics == {"two/counting": 4.0, "all/counting": 10.0, "default/counting": 6.0}


def test_a_data_spec_of_its_own_says_how_batches_are_read() -> None:
    data = [{"x": x, "kind": y} for x, y in batches(2)]
    t, _ = fitted(Evaluator("keyed", DataSpec(data, targets="kind")), Evaluator("pairs", batches(2)))
    assert t.state.metrics["keyed/accuracy"] == t.state.metrics["pairs/accuracy"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, ["accuracy"]),
        ("accuracy", ["accuracy"]),
        (["accuracy", Counting()], ["accuracy", "counting"]),
        (Counting(), ["counting"]),
        ({"mine": Counting(), "acc": "accuracy"}, ["mine", "acc"]),
        ([], []),
    ],
)
def test_metrics_of_its_own_or_some_of_the_models(given: Any, names: list[str]) -> None:
    t, _ = fitted(Evaluator("test", batches(1), metrics=given))
    assert list(t.state.metrics) == [f"test/{name}" for name in names]


def test_a_model_without_metrics_has_the_usual_ones_by_name() -> None:
    t = trainer(torch.nn.Linear(8, 4), eval_dataloader=Evaluator("test", batches(1), "cross_entropy"))
    t.fit()
    assert list(t.state.metrics) == ["test/cross_entropy"]


def test_metrics_as_torchmetrics_has_them_are_moved_reset_and_read() -> None:
    metric = Counting()
    t, memory = fitted(Evaluator("test", batches(3, size=5, last=2), metric))
    assert metric.device == t.state.device
    assert memory.series("test/counting") == [(4, 12.0), (8, 12.0)]


def test_a_metric_of_several_numbers_has_dotted_names_thread_2413() -> None:
    def report(seen: list[int]) -> Any:
        return {"macro": torch.tensor(0.5), "by": {"class": torch.tensor([0.25, 0.75]), "weighted": 1}}

    t, memory = fitted(Evaluator("test", batches(1), {"f1": Counting(report)}))
    assert t.state.metrics == {"test/f1.macro": 0.5, "test/f1.by.class.0": 0.25, "test/f1.by.class.1": 0.75,
                               "test/f1.by.weighted": 1.0}  # fmt: skip
    assert memory.series("test/f1.by.class.1") == [(4, 0.75), (8, 0.75)]


def test_an_early_stopper_watches_a_part_of_a_metric_thread_2413() -> None:
    values = iter([0.5, 0.6, 0.6, 0.6, 0.6, 0.9])
    metric = Counting(lambda seen: {"macro": next(values), "micro": 0.0})
    t, _ = fitted(Evaluator("test", batches(1), {"f1": metric}), max_duration="9ep",
                  callbacks=[EarlyStopper(monitor="test/f1.macro", comp="greater", patience="2ep")])  # fmt: skip
    assert t.state.timestamp.epoch == 5


def test_a_dict_names_data_and_evaluators() -> None:
    t = trainer(eval_dataloader={"a": batches(1), "b": Evaluator("?", batches(1), Counting())}, max_duration="1ba")
    t.fit()
    assert list(t.state.metrics) == ["a/accuracy", "b/counting"]


def test_standalone_evaluation_takes_evaluators_too() -> None:
    t = trainer(max_duration="1ba")
    values = t.eval([Evaluator("a", batches(1)), Evaluator("b", batches(1), Counting())])
    assert set(values) == {"a/accuracy", "b/counting"}
    assert t.state.evaluated_at == {}


class Quiet(Net):
    def metrics(self) -> Any:
        return [Accuracy()]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([Evaluator("a", batches(1)), Evaluator("a", batches(1))], "several are called 'a'"),
        ([Evaluator("a/b", batches(1))], "a name without a slash, but got 'a/b'"),
        ([Evaluator("", batches(1))], "a name without a slash, but got ''"),
        ([Evaluator("a", batches(1)), batches(1)], "holds nothing else, but there is a list; make it an Evaluator"),
        ([Evaluator("a", batches(1), "accurcy")], "unknown metric of evaluator a 'accurcy'; did you mean 'accuracy'"),
        ([Evaluator("a", batches(1), [Counting(), Counting()])], "two metrics of evaluator a have one name"),
        ([Evaluator("a", batches(1), [7])], r"is a int, which has no reset\(\)"),
        ([Evaluator("a", batches(1), subset_num_batches=0)], "subset_num_batches of evaluator a must be a number"),
        ([Evaluator("a", batches(1), eval_interval="often")], "eval_interval of evaluator a: 'often' is no"),
        ([Evaluator("a", batches(1), eval_interval="0ba")], "an interval must be positive"),
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_refused_in_a_sentence(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer(eval_dataloader=given)


def test_metrics_of_a_model_are_a_dict() -> None:
    with pytest.raises(ExpkitError, match=r"metrics\(\) of a model is a dict by name, but Quiet gave"):
        trainer(Quiet(), eval_dataloader=batches(1))


@pytest.mark.parametrize("value", [None, "high", {"a": object()}])
def test_what_is_no_number_is_said_with_its_name(value: Any) -> None:
    with pytest.raises(ExpkitError, match=r"test/odd(\.a)? must be a number, or a dict or list of them"):
        fitted(Evaluator("test", batches(1), {"odd": Counting(lambda seen: value)}))


def test_the_face_has_evaluators_and_data_specs() -> None:
    assert expkit.Evaluator is Evaluator
    assert expkit.DataSpec is DataSpec


def two() -> list[Evaluator]:
    return [Evaluator("often", batches(1), eval_interval="3ba"), Evaluator("rare", batches(1), eval_interval="5ba")]


@pytest.mark.parametrize("start", [2, 3, 5, 8])
def test_a_resumed_training_evaluates_each_where_it_would_have_been(tmp_path: Path, start: int) -> None:
    settings = {"eval_dataloader": two(), "max_duration": "8ba"}
    with trainer(save_folder=tmp_path, save_interval="1ba", **settings) as whole:
        whole.fit()
    memory = Memory()
    with trainer(load_path=tmp_path / f"ep{start // 4}-ba{start}", loggers=[memory], **settings) as resumed:
        if start < 8:
            resumed.fit()
    expected = {
        "often/accuracy": [b for b in (3, 6, 8) if b > start],
        "rare/accuracy": [b for b in (5, 8) if b > start],
    }
    assert moments(memory) == {name: found for name, found in expected.items() if found}
    assert resumed.state.evaluated_at == whole.state.evaluated_at == {"often": 8, "rare": 8}
    assert resumed.state.metrics == whole.state.metrics


def test_a_checkpoint_ranks_by_a_metric_only_where_its_evaluator_has_just_run(tmp_path: Path) -> None:
    with trainer(save_folder=tmp_path, save_interval="1ba", eval_dataloader=two(), max_duration="6ba") as t:
        t.fit()
    found = {}
    for batch in range(1, 7):
        manifest = read_manifest(tmp_path / f"ep{batch // 4}-ba{batch}")
        found[batch] = [value_to_rank(manifest, f"{label}/accuracy") is not None for label in ("often", "rare")]
    assert found == {1: [False, False], 2: [False, False], 3: [True, False], 4: [False, False], 5: [False, True],
                     6: [True, True]}  # fmt: skip
