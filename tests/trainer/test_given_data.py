"""What the trainer is given as data and cannot be right: one sentence, row by row; and what its batches lack."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from expkit import callbacks
from expkit.errors import ExpkitError, UsageError
from expkit.trainer.data_spec import DataSpec
from expkit.trainer.evaluator import Evaluator
from tests.trainer.doubles import Accuracy, batches, trainer


def loader_of(**methods: Any) -> Any:
    return type("Mine", (), {"__iter__": lambda self: iter(batches()), **methods})()


samples = torch.utils.data.TensorDataset(torch.randn(6, 8), torch.zeros(6, dtype=torch.int64))
LOADERS: list[tuple[Any, str]] = [
    (None, "a loader: a DataLoader, a list of batches, .* but got None"),
    (3, "but got 3"),
    (torch.utils.data.DataLoader, r"the class DataLoader; write DataLoader\(...\)"),
    (batches, "the function batches"),
    ("data", "but got 'data'"),
    ({"train": batches()}, "a loader: .* but got {'train'"),
    (samples, r"TensorDataset\); its parts are single samples, and DataLoader\(data, batch_size=...\) makes batches"),
    (torch.utils.data.Subset(samples, [0, 1]), "single samples"),
    (torch.randn(6, 8), r"DataLoader\(TensorDataset\(inputs, targets\), batch_size=...\) makes batches of it"),
    (np.zeros((6, 8)), "makes batches of it"),
    ([torch.utils.data.DataLoader(samples)], "it holds loaders; to evaluate on several, give a dict of them by label"),
    (DataSpec(DataSpec(batches())), "a loader: "),
]


@pytest.mark.parametrize(("loader", "says"), LOADERS)
def test_what_gives_no_batches_is_named(loader: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"^train_dataloader must be .*{says}"):
        trainer(train_dataloader=loader)
    if loader is not None and not isinstance(loader, dict):
        with pytest.raises(UsageError, match=f"^dataloader of evaluator eval must be .*{says}"):
            trainer(eval_dataloader=loader)
        with pytest.raises(UsageError, match=f"^dataloader must be .*{says}"):
            trainer().predict(loader)


LENGTHS: list[tuple[Any, str]] = [
    ([], "at least one batch, but this list is empty"),
    (loader_of(), "but Mine has none; train_subset_num_batches can say"),
    (loader_of(__len__=lambda self: -1), r"but that of Mine cannot be told: __len__\(\) should return >= 0"),
    (loader_of(__len__=lambda self: 2.5), "cannot be told: 'float' object"),
    (loader_of(__len__=lambda self: None), "cannot be told: 'NoneType' object"),
]


@pytest.mark.parametrize(("loader", "says"), LENGTHS)
def test_a_length_that_is_none_is_named(loader: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"^a loader needs .*{says}"):
        trainer(train_dataloader=loader)


SPECS: list[tuple[str, Any, str]] = [
    ("batch_transforms", 3, "a function of a batch, or a list of them, but got 3"),
    ("batch_transforms", [3], r"but got \[3\]"),
    ("microbatch_transforms", "flip", "but got 'flip'"),
    ("split_batch", 3, "a function of a batch, or None, but got 3"),
    ("num_samples_in_batch", 6, "but got 6"),
    ("weight_in_batch", [1.0], "but got"),
    ("inputs", 1.5, "a key, a place, or a tuple of them, but got 1.5"),
    ("targets", ("a", 1.5), "but got"),
]


@pytest.mark.parametrize(("name", "value", "says"), SPECS)
def test_a_field_of_a_data_spec_that_cannot_be_right_is_named(name: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} of a DataSpec must be .*{says}"):
        DataSpec(batches(), **{name: value})


COUNTS: list[tuple[str, Any, str]] = [
    ("num_samples_in_batch", -1, "gives a whole number, not negative, but got -1"),
    ("num_samples_in_batch", 6.5, "but got 6.5"),
    ("num_samples_in_batch", None, "but got None"),
    ("num_samples_in_batch", torch.tensor([1, 2]), "but got tensor"),
    ("num_samples_in_batch", math.inf, "but got inf"),
    ("num_tokens_in_batch", -1, "but got -1"),
    ("weight_in_batch", -1.0, "finite and not negative, but gave -1.0"),
    ("weight_in_batch", math.nan, "but gave nan"),
]


@pytest.mark.parametrize(("name", "value", "says"), COUNTS)
def test_a_count_that_is_none_is_named(name: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}.* must .*{says}"):
        trainer(train_dataloader=DataSpec(batches(), **{name: lambda _: value}), device_train_microbatch_size=4).fit()


def test_a_tensor_may_count() -> None:
    spec = DataSpec(batches(), num_samples_in_batch=lambda b: (b[1] >= 0).sum(), num_tokens_in_batch=lambda b: 2.0)
    done = trainer(train_dataloader=spec, max_duration="1ep")
    done.fit()
    assert (done.state.timestamp.sample, done.state.timestamp.token) == (24, 8)
    assert {type(n) for n in done.state.timestamp[:-1]} == {int}


@pytest.mark.parametrize("empty", [batches(3, last=0), DataSpec(batches(), num_samples_in_batch=lambda b: 0)])
def test_a_batch_without_samples_is_no_divergence(empty: Any) -> None:
    place = 2 if isinstance(empty, list) else 0
    with pytest.raises(ExpkitError, match=f"^batch {place} of epoch 0 has no samples, so there is nothing to train on"):
        trainer(train_dataloader=empty).fit()


TOKENS: list[tuple[dict[str, Any], str]] = [
    ({"max_duration": "1tok"}, "training is to last 1tok, but its batches have no tokens; they are the parts of"),
    (
        {"eval_interval": "1tok", "eval_dataloader": batches()},
        "eval_interval of evaluator eval=1tok counts tokens",
    ),
    ({"iteration_length": "5tok"}, "iteration_length=5tok counts tokens, but a whole epoch of batches had none"),
    ({"callbacks": callbacks.TrainMetrics(interval="5tok")}, "interval of train_metrics=5tok counts tokens"),
]


@pytest.mark.parametrize(("settings", "says"), TOKENS)
@pytest.mark.timeout(20)
def test_what_counts_tokens_where_there_are_none_ends(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=f"^{says}"):
        trainer(**settings).fit()


@pytest.mark.timeout(20)
def test_so_does_a_later_fit() -> None:
    done = trainer(max_duration="1ep")
    done.fit()
    for settings in ({"until": "7tok"}, {"duration": "7tok"}):
        with pytest.raises(UsageError, match="training is to last 7tok"):
            done.fit(**settings)  # type: ignore[arg-type]
    done.fit("1ep")


class Inplace(torch.nn.Linear):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return super().forward(inputs.mul_(0.5))


def test_a_model_that_writes_into_the_batches_of_a_list_is_noticed_once() -> None:
    with pytest.warns(UserWarning, match="training writes into the batches of the list it was given") as said:
        trainer(Inplace(8, 4), max_duration="4ep").fit()
    assert len(said) == 1
    holes = [(torch.full((6, 8), math.nan), torch.zeros(6, dtype=torch.int64))]
    trainer(train_dataloader=holes, max_duration="3ep").fit()  # nan is what it was given
    made = trainer(Inplace(8, 4), max_duration="4ep", train_dataloader=torch.utils.data.DataLoader(samples, 3))
    made.fit()


EVALUATORS: list[tuple[dict[str, Any], str]] = [
    ({"label": 3}, "the label of an evaluator is a name without a slash, but got 3"),
    ({"metrics": Accuracy}, r"a metric of evaluator a is an instance, but Accuracy is a class; write Accuracy\(...\)"),
    ({"metrics": [3]}, r"a metric of evaluator a is a int, which has no reset\(\)"),
    ({"eval_interval": 3}, "eval_interval of evaluator a must be a duration .* write 3ep or 3ba"),
    ({"subset_num_batches": 1.5}, "subset_num_batches of evaluator a must be a number of batches"),
    ({"dataloader": None}, "dataloader of evaluator a must be a loader"),
]


@pytest.mark.parametrize(("settings", "says"), EVALUATORS)
def test_an_evaluator_that_cannot_be_right_is_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=f"^{says}"):
        trainer(eval_dataloader=Evaluator(**{"label": "a", "dataloader": batches(), **settings}))


def test_metrics_of_a_model_are_looked_at_and_what_is_called_so_by_chance_is_not() -> None:
    class Own(torch.nn.Linear):
        def metrics(self) -> Any:
            return {"accuracy": Accuracy}

    class ByChance(torch.nn.Linear):
        metrics = ("loss",)

    with pytest.raises(UsageError, match=r"^a metric that metrics\(\) of Own gives is an instance, but Accuracy is a"):
        trainer(Own(8, 4), eval_dataloader=batches())
    assert set(trainer(ByChance(8, 4), eval_dataloader=batches()).eval()) == {"eval/accuracy", "eval/cross_entropy"}
