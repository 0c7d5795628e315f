"""DataSpec: transforms, counts and splits of the user's own, in training and in evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.errors import UsageError
from expkit.functional.tensor_loader import TensorLoader
from expkit.trainer.callback import Callback
from expkit.trainer.contracts import Dataset
from expkit.trainer.data_spec import DataSpec
from tests.trainer.doubles import Memory, batches, net, trainer, weights


def doubled(batch: Any) -> Any:
    return (batch[0] * 2, batch[1])


def shifted(batch: Any) -> Any:
    return (batch[0] + 1, batch[1])


def by_hand(data: list[Any]) -> list[Any]:
    return [shifted(doubled(batch)) for batch in data]


def fitted(**settings: Any) -> Any:
    t = trainer(**settings)
    t.fit()
    return t


@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize("where", ["batch_transforms", "microbatch_transforms"])
def test_transforms_in_order_for_training_and_evaluation(where: str, size: int | None) -> None:
    settings: dict[str, Any] = {"device_train_microbatch_size": size, "max_duration": "1ep"}
    spec = DataSpec(batches(), **{where: [doubled, shifted]})
    t = fitted(train_dataloader=spec, eval_dataloader=spec, **settings)
    same = fitted(train_dataloader=by_hand(batches()), eval_dataloader=by_hand(batches()), **settings)
    assert torch.equal(weights(t), weights(same))
    assert t.state.metrics == same.state.metrics


def test_batch_transforms_come_before_the_batch_is_counted_and_seen() -> None:
    @dataclass
    class Watch(Callback):
        seen: Any = field(default_factory=list, init=False)

        def after_dataloader(self, state: Any, logger: Any) -> None:
            self.seen.append((state.num_samples, state.inputs.max().item()))

    watch = Watch()
    t = fitted(train_dataloader=DataSpec(batches(), batch_transforms=lambda b: (b[0][:2] * 0 + 7, b[1][:2])),
               callbacks=[watch], max_duration="3ba")  # fmt: skip
    assert watch.seen == [(2, 7.0)] * 3
    assert t.state.timestamp.sample == 6


@pytest.mark.parametrize("where", ["batch_transforms", "microbatch_transforms"])
def test_what_transforms_draw_is_keyed_by_the_batch(where: str) -> None:
    drawn: list[float] = []

    def noisy(batch: Any) -> Any:
        drawn.append(float(torch.rand(())))
        return batch

    loader = TensorLoader(torch.randn(12, 8), torch.arange(12) % 4, 4)
    fitted(train_dataloader=DataSpec(loader, **{where: noisy}), max_duration="1ep")
    once = drawn.copy()
    assert len(set(once)) == 3
    drawn.clear()
    torch.rand(7)
    fitted(model=net(0.5), train_dataloader=DataSpec(loader, **{where: noisy}), max_duration="1ep")
    assert drawn == once


@dataclass
class Graph:
    """Samples that lie one after the other in one tensor, as graphs do; no tree can tell them apart."""

    nodes: torch.Tensor
    counts: list[int]
    y: torch.Tensor

    def to(self, device: torch.device) -> Graph:
        return Graph(self.nodes.to(device), self.counts, self.y.to(device))

    def __getitem__(self, place: int) -> Any:
        means = [part.mean(0) for part in self.nodes.split(self.counts)]
        return torch.stack(means) if place == 0 else self.y


def graphs(num_batches: int = 3) -> list[Graph]:
    draw = torch.Generator().manual_seed(2)
    return [Graph(torch.randn(15, 8, generator=draw), [1, 2, 3, 4, 5], torch.arange(5) % 4) for _ in range(num_batches)]


def parts_of(graph: Graph, size: int) -> list[Graph]:
    nodes = graph.nodes.split(graph.counts)
    places = [range(i, min(i + size, 5)) for i in range(0, 5, size)]
    return [Graph(torch.cat([nodes[i] for i in place]), [graph.counts[i] for i in place],
                  graph.y[place.start : place.stop]) for place in places]  # fmt: skip


def spec(**settings: Any) -> DataSpec:
    own = {"split_batch": parts_of, "num_samples_in_batch": lambda g: len(g.counts), "inputs": 0, "targets": 1}
    return DataSpec(graphs(), **{**own, "num_tokens_in_batch": lambda g: len(g.nodes), **settings})


def test_a_batch_that_is_no_tree_trains_with_counts_and_a_split_of_its_own() -> None:
    whole = fitted(train_dataloader=spec(), eval_dataloader=spec())
    parts = fitted(train_dataloader=spec(), eval_dataloader=spec(), device_train_microbatch_size=2)
    torch.testing.assert_close(weights(parts), weights(whole))
    assert parts.state.num_microbatches == 3
    assert (whole.state.timestamp.sample, whole.state.timestamp.token) == (30, 90)
    assert set(whole.state.metrics) == {"eval/accuracy"}


def test_a_split_that_loses_samples_is_refused() -> None:
    with pytest.raises(UsageError, match=r"microbatches of \[2, 2\] samples out of a batch of 5"):
        fitted(train_dataloader=spec(split_batch=lambda g, n: parts_of(g, n)[:-1]), device_train_microbatch_size=2)


@dataclass
class Described(Dataset):
    """A data set that says how its batches are read."""

    def build(self, *, seed: int, rank: int, world_size: int) -> Any:
        return DataSpec([{"picture": x, "kind": y} for x, y in batches()], inputs="picture", targets="kind")


def test_a_data_set_may_describe_its_batches_itself() -> None:
    described = fitted(train_dataloader=Described(), eval_dataloader=Described())
    assert torch.equal(weights(described), weights(fitted()))
    wrapped = fitted(train_dataloader=DataSpec(Described()))
    assert torch.equal(weights(wrapped), weights(fitted()))


def test_ids_are_counted_as_tokens_wherever_they_stand_in_a_batch() -> None:
    memory = Memory()
    data = [{"input_ids": torch.zeros(2, 8, dtype=torch.long), "labels": torch.zeros(2, dtype=torch.long)}] * 3

    class Summed(torch.nn.Linear):
        def forward(self, input_ids: Any) -> Any:
            return super().forward(input_ids.float())

    t = fitted(model=Summed(8, 4), train_dataloader=data, max_duration="3ba", loggers=[memory])
    assert (t.state.timestamp.sample, t.state.timestamp.token) == (6, 48)
