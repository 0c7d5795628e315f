"""Loaders: training goes on from any batch of an epoch with the same batches, whatever they are drawn from."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import data

from expkit import dist
from expkit.errors import ExpkitError, Interruption
from expkit.functional.tensor_loader import TensorLoader
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, net, recorder, trainer, weights

INPUTS, TARGETS = batches(1, size=26)[0]


class Noisy(data.Dataset[Any]):
    """26 samples with noise from every default generator; counts what is loaded in this process."""

    def __init__(self) -> None:
        self.loaded = 0

    def __len__(self) -> int:
        return 26

    def __getitem__(self, index: Any) -> Any:
        self.loaded += 1
        noise = torch.rand(8) + random.random() + np.random.rand()
        return INPUTS[index] + 0.1 * noise, TARGETS[index]


class NoisyBatches(Noisy):
    """Reads whole batches."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        shift = torch.rand(8)
        return [(INPUTS[i] + shift, TARGETS[i]) for i in indices]


class Lazy:
    """A sampler that draws while it is asked, with repeats, from the default generators."""

    def __len__(self) -> int:
        return 26

    def __iter__(self) -> Iterator[int]:
        for _ in range(26):
            yield (random.randrange(26) + int(torch.randint(26, ())) + np.random.randint(26)) % 26


class Stream(data.IterableDataset[Any]):
    """Draws as it goes; two workers share the samples."""

    def __len__(self) -> int:
        return 26

    def __iter__(self) -> Iterator[Any]:
        worker = data.get_worker_info()
        for i in range(worker.id if worker else 0, 26, worker.num_workers if worker else 1):
            yield INPUTS[i] + random.random() + 0.1 * torch.rand(8), TARGETS[i]


class Steady(Stream):
    """Draws nothing: what persistent workers draw goes on from epoch to epoch."""

    def __iter__(self) -> Iterator[Any]:
        worker = data.get_worker_info()
        assert worker
        return ((INPUTS[i], TARGETS[i]) for i in range(worker.id, 26, worker.num_workers))


class OwnLoader(data.DataLoader[Any]):
    """Goes through its samples in a way of its own."""

    def __iter__(self) -> Any:
        return iter(list(super().__iter__()))


class Stateful:
    """A loader of unknown order that knows its place, like StatefulDataLoader."""

    batch_size = 6

    def __init__(self) -> None:
        self._next = self.read = 0

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[Any]:
        first, self._next = self._next % 5, 0
        for self._place in range(first, 5):
            self.read += 1
            self._place += 1
            yield INPUTS[self._place : self._place + 6] + torch.rand(8), TARGETS[self._place : self._place + 6]

    def state_dict(self) -> dict[str, int]:
        return {"place": self._place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._next = state["place"]


def noisy_collate(samples: list[Any]) -> Any:
    inputs, targets = data.default_collate(samples)
    return inputs + torch.rand(8), targets


def seeded_order() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def of(dataset: Callable[[], Any] = Noisy, cls: Any = data.DataLoader, **settings: Any) -> Callable[[], Any]:
    """A maker of a torch loader over 26 samples, 6 a batch: 6 6 6 6 2."""
    return lambda: cls(dataset(), **{"batch_size": 6, **{k: v() if callable(v) and k in ("sampler", "generator",
                       "batch_sampler") else v for k, v in settings.items()}})  # fmt: skip


def tensors() -> Any:
    return data.TensorDataset(INPUTS, TARGETS)


def halves() -> Any:
    return data.ConcatDataset([data.Subset(Noisy(), range(13)), data.Subset(Noisy(), range(13, 26))])


SKIPPED: dict[str, Callable[[], Any]] = {
    "list": lambda: batches(5, last=2),
    "tuple": lambda: tuple(batches(5, last=2)),
    "own": lambda: TensorLoader(INPUTS, TARGETS, 6, order=lambda epoch: torch.randperm(
        26, generator=torch.Generator().manual_seed(epoch))),
    "tensors": of(tensors, shuffle=True),
    "noisy": of(shuffle=True),
    "drop_last": of(shuffle=True, drop_last=True),
    "workers": of(shuffle=True, num_workers=2),
    "persistent": of(shuffle=True, num_workers=2, persistent_workers=True),
    "lazy sampler": of(sampler=Lazy),
    "lazy sampler, workers": of(sampler=Lazy, num_workers=2),
    "weighted": of(sampler=lambda: data.WeightedRandomSampler([1.0] * 26, 26)),
    "own generator": of(shuffle=True, generator=seeded_order),
    "replacement": of(sampler=lambda: data.RandomSampler(range(26), replacement=True, generator=seeded_order()),
                      num_workers=2),
    "batch sampler": of(batch_size=1, batch_sampler=lambda: data.BatchSampler(Lazy(), 6, True)),
    "lists of indices": of(batch_size=1, batch_sampler=lambda: [[0, 1, 2], [3, 4], [5, 3], [9, 8], [25, 1]]),
    "no batches": of(batch_size=None, sampler=lambda: data.BatchSampler(data.RandomSampler(range(26)), 6, False)),
    "noisy collate": of(tensors, shuffle=True, collate_fn=noisy_collate, num_workers=2),
    "reads batches": of(NoisyBatches, shuffle=True, num_workers=2),
    "subset": of(lambda: data.Subset(Noisy(), range(26)), shuffle=True),
    "halves": of(halves, shuffle=True),
    "distributed": of(sampler=lambda: data.DistributedSampler(range(26), num_replicas=2, rank=1)),
    "ours": of(sampler=lambda: dist.Sampler(26, shuffle=True, seed=1, rank=0, world_size=2)),
}  # fmt: skip
STREAMS: dict[str, Callable[[], Any]] = {
    "iterable": of(Stream),
    "iterable, workers": of(Stream, num_workers=2),
    "iterable, persistent": of(Steady, num_workers=2, persistent_workers=True),
    "subclass": of(cls=OwnLoader, shuffle=True),
}


@dataclass
class Watch(Callback):
    """Keeps the batches; draws from every default generator; leaves at a batch."""

    leave_at: int = 10**6
    seen: Any = field(default_factory=list, init=False)

    def batch_start(self, state: Any, logger: Any) -> None:
        self.seen.append(state.batch[0].clone())

    def batch_end(self, state: Any, logger: Any) -> None:
        torch.rand(state.timestamp.batch), random.random(), np.random.rand()
        if state.timestamp.batch == self.leave_at:
            raise Interruption("enough")


def run(loader: Any, *, then: Trainer | None = None, **settings: Any) -> tuple[Trainer, list[Any]]:
    """A training of 12 batches, or the rest of one that was left; and the batches that it saw."""
    watch = Watch(settings.pop("leave_at", 10**6))
    given = {"train_dataloader": loader, "max_duration": "12ba", "callbacks": [watch], "seed": 7, **settings}
    t = trainer(net(dropout=0.3), **given)
    if then is not None:
        t.state.model.load_state_dict(then.state.model.state_dict())
        t.state.optimizer.load_state_dict(then.state.optimizer.state_dict())
        t.state.timestamp = then.state.timestamp
        t._loop.epochs.load_state_dict(then._loop.epochs.state_dict())
    try:
        t.fit()
    except Interruption:
        assert t.state.timestamp.batch == watch.leave_at
    return t, watch.seen


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(map(torch.equal, a, b))


@pytest.mark.parametrize("name", [*SKIPPED, *STREAMS])
@pytest.mark.parametrize("leave_at", [5, 8])
def test_what_is_left_of_an_epoch_has_the_same_batches(name: str, leave_at: int) -> None:
    make = (SKIPPED | STREAMS)[name]
    whole, all_batches = run(make())
    left, first = run(make(), leave_at=leave_at)
    random.seed(99)
    resumed, rest = run(make(), then=left)
    assert same(all_batches, first + rest)
    assert torch.equal(weights(whole), weights(resumed))
    if name not in ("list", "tuple", "lists of indices", "iterable, persistent"):
        assert not torch.equal(all_batches[0], all_batches[len(make())])  # the next epoch is another


def test_workers_that_are_started_anew_go_on_as_well() -> None:
    left, first = run(SKIPPED["noisy"](), leave_at=3)
    spawned = of(shuffle=True, num_workers=1, multiprocessing_context="spawn")
    _, rest = run(spawned(), then=left, max_duration="5ba")
    assert same(run(SKIPPED["noisy"](), max_duration="5ba")[1], first + rest)


@pytest.mark.parametrize("settings", [{"num_workers": 1}, {"num_workers": 2, "persistent_workers": True}])
def test_the_draws_of_a_sample_do_not_depend_on_workers(settings: dict[str, Any]) -> None:
    for given in ({"shuffle": True}, {"sampler": Lazy}, {"dataset": tensors, "collate_fn": noisy_collate}):
        alone = run(of(**given)())[1]
        assert same(alone, run(of(**given, **settings)())[1])


def test_a_sample_has_the_same_draws_in_any_batch_and_others_in_the_next_epoch() -> None:
    def by_sample(seen: list[Any]) -> list[Any]:
        noise = torch.cat(seen)[:, None] - INPUTS
        return sorted((int(n.abs().sum(1).argmin()), round(float(n[n.abs().sum(1).argmin()].sum()), 3)) for n in noise)

    in_order, shuffled = run(of(num_workers=2)())[1], run(of(shuffle=True)())[1]
    assert by_sample(in_order[:5]) == by_sample(shuffled[:5])
    assert not same(in_order[:5], in_order[5:10])


def test_a_sample_that_comes_twice_in_an_epoch_gets_other_draws() -> None:
    twice = of(batch_size=1, batch_sampler=lambda: [[3, 3], [3, 4]])
    seen = torch.cat(run(twice())[1][:2])
    assert len({tuple(row.tolist()) for row in seen[:3]}) == 3


def test_skipping_loads_nothing_threads_3649_1090_and_2733() -> None:
    left, _ = run(SKIPPED["noisy"](), leave_at=4)
    loader = SKIPPED["noisy"]()
    t, _ = run(loader, then=left)
    assert t.state.timestamp.batch == 12
    assert loader.dataset.loaded == 2 + 26 + 6 + 6


def test_the_generators_of_the_main_process_are_left_as_they_were() -> None:
    drawn: dict[str, list[float]] = {}

    class Draw(Callback):
        def after_dataloader(self, state: Any, logger: Any) -> None:
            now = [float(torch.rand(())), random.random(), float(np.random.rand())]
            drawn.setdefault(type(state.dataloader.dataset).__name__, []).extend(now)

    for make in (SKIPPED["tensors"], SKIPPED["noisy"]):
        trainer(train_dataloader=make(), callbacks=[dataclass(Draw)()], max_duration="3ba").fit()
    assert drawn["TensorDataset"] == drawn["Noisy"]


def test_the_loader_given_and_its_generator_stay_as_they_were() -> None:
    loader = SKIPPED["own generator"]()
    before, state = dict(vars(loader)), loader.generator.get_state()
    with run(loader)[0]:
        pass
    assert vars(loader) == before
    assert torch.equal(loader.generator.get_state(), state)
    assert same(run(loader)[1], run(SKIPPED["own generator"]())[1])


def test_the_seed_of_ones_own_generator_counts() -> None:
    other = of(shuffle=True, generator=lambda: torch.Generator().manual_seed(6))
    assert not same(run(other())[1], run(SKIPPED["own generator"]())[1])


def test_attributes_of_the_data_set_are_there_for_worker_init_fn() -> None:
    def init(worker: int) -> None:
        info = data.get_worker_info()
        assert info.dataset.loaded == 0  # type: ignore[union-attr]
        info.dataset.shift = 100.0  # type: ignore[union-attr]

    class Shifted(Noisy):
        shift = 0.0

        def __getitem__(self, index: Any) -> Any:
            inputs, targets = super().__getitem__(index)
            return inputs + self.shift, targets

    seen = run(of(Shifted, num_workers=1, worker_init_fn=init)())[1]
    assert float(seen[0].min()) > 50


@pytest.mark.parametrize("leave_at", [3, 5, 7])
def test_a_loader_that_knows_its_place_goes_on_by_itself(leave_at: int) -> None:
    whole = run(Stateful())[1]
    left, first = run(Stateful(), leave_at=leave_at)
    loader = Stateful()
    _, rest = run(loader, then=left)
    assert same(whole, first + rest)
    assert loader.read == 12 - leave_at
    plain, _ = run(STREAMS["iterable"](), then=left)  # another loader makes nothing of its place, and breaks nothing
    plain.close()
    again, _ = run(loader := Stateful(), leave_at=leave_at)
    again.fit()  # in the same process too
    assert torch.equal(weights(again), weights(run(Stateful())[0]))


def test_reading_a_stream_again_is_shown_and_not_billed_thread_3860() -> None:
    left, _ = run(STREAMS["iterable"](), leave_at=8)
    memory = Memory()
    t, _ = run(STREAMS["iterable"](), then=left, loggers=[memory])
    shown = [payload for kind, _, payload in memory.events if kind == "replay"]
    assert [(p["batches"], p["of"]) for p in shown] == [(0, 3), (3, 3)]
    assert shown[-1]["remaining_s"] == 0
    assert "a DataLoader cannot skip batches" in shown[0]["reason"]
    assert t.clocks["checkpoint_s"] > 0


def test_reading_again_is_told_where_there_is_no_logger(caplog: pytest.LogCaptureFixture) -> None:
    left, _ = run(STREAMS["iterable"](), leave_at=3)
    run(STREAMS["iterable"](), then=left)
    assert "batches 3, of 3" in caplog.text


def test_reading_again_ends_when_asked_to() -> None:
    left, _ = run(STREAMS["iterable"](), leave_at=4)

    class Asking(data.DataLoader[Any]):
        def __iter__(self) -> Any:
            t.request_stop("SIGTERM")
            return super().__iter__()

    t = trainer(train_dataloader=of(Stream, cls=Asking)(), max_duration="12ba")
    t.state.timestamp = left.state.timestamp
    with pytest.raises(Interruption, match="SIGTERM"):
        t.fit()
    assert t.state.timestamp.batch == 4


def test_a_stream_that_has_become_shorter_is_named() -> None:
    left, _ = run(STREAMS["iterable"](), leave_at=4)

    class Short(Stream):
        def __iter__(self) -> Iterator[Any]:
            return iter(list(super().__iter__())[:10])

    with pytest.raises(ExpkitError, match="was at batch 4 of its epoch, but the DataLoader now ends after 2"):
        run(of(Short)(), then=left)


def test_resume_mid_epoch_does_not_fire_epoch_start_twice() -> None:
    left, _ = run(SKIPPED["noisy"](), leave_at=3)
    listener = recorder()
    t = trainer(train_dataloader=SKIPPED["noisy"](), max_duration="5ba", callbacks=[listener])
    t.state.timestamp = left.state.timestamp
    t.fit()
    assert Event.EPOCH_START not in listener.seen
    assert listener.seen.count(Event.BATCH_END) == 2


def test_left_after_the_last_batch_of_an_epoch_its_end_comes_when_training_goes_on() -> None:
    whole, seen = run(SKIPPED["noisy"]())
    left, first = run(SKIPPED["noisy"](), leave_at=5)
    assert left.state.timestamp.batch_in_epoch == 5
    listener = recorder()
    t, _ = run(SKIPPED["noisy"](), then=left, callbacks={"listener": listener, "watch": (watch := Watch())})
    assert same(seen, first + watch.seen)
    assert torch.equal(weights(whole), weights(t))
    assert [e for e in listener.seen if e in (Event.EPOCH_START, Event.EPOCH_END)] == [
        Event.EPOCH_END, Event.EPOCH_START, Event.EPOCH_END, Event.EPOCH_START]  # fmt: skip


@pytest.mark.parametrize("name", ["persistent", "lazy sampler", "iterable", "iterable, persistent", "own"])
def test_two_fits_are_one_long_fit(name: str) -> None:
    make = (SKIPPED | STREAMS)[name]
    whole, seen = run(make())
    watch = Watch()
    t = trainer(net(dropout=0.3), train_dataloader=make(), max_duration="3ba", callbacks=[watch], seed=7)
    t.fit()
    t.fit("9ba")
    assert same(seen, watch.seen)
    assert torch.equal(weights(whole), weights(t))
    t.close()
