"""Epochs: what is left of an epoch, from whatever batch training is at; how a loader is read again after a resume.

Lists, loaders with `iter_from`, and DataLoaders over map-style data skip batches without loading them. A loader with
`state_dict` and `load_state_dict` (StatefulDataLoader, torch.distributed.checkpoint.stateful.Stateful) goes on by
itself. Anything else is a stream: it is read again up to where training was, and how far that is is shown.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from expkit.errors import Interruption
from expkit.trainer.batch import tensors
from expkit.trainer.checkpoint import checks
from expkit.trainer.diagnosis import explain
from expkit.trainer.keyed import KeyedLoader, can_be_keyed
from expkit.trainer.loader_failure import end_workers, has_workers, raise_failure_of
from expkit.trainer.logger import Logger
from expkit.trainer.replay import replay
from expkit.trainer.state import State
from expkit.trainer.streams import DefaultStream, Kept, seed_default, seed_of, seed_python


class Epochs:
    """The epochs of the train loader, as the loop asks for them; what a checkpoint keeps of the place in them."""

    def __init__(self, loader: Any, num_batches: int, *, seed: int, device: torch.device, rank: int) -> None:
        """`num_batches`: of an epoch, on this rank."""
        self._loader, self._num_batches, self._seed, self._device = loader, num_batches, seed, device
        self._orders = _orders_of(loader)
        self._generators = [(own, own.get_state()) for own in _generators_of(self._orders)]
        self._seeds = [_drawn_from(state) for _, state in self._generators]
        self._stateful = callable(getattr(loader, "state_dict", None)) and hasattr(loader, "load_state_dict")
        self._goes_on = False  # whether the next pass of a stateful loader begins where training is
        self._left: Any = None  # what a stateful loader said when its workers were ended
        self._keyed = self._keyed_loader(rank) if self._may_be_keyed() else None
        self._augmentation = augmentation_of(device, seed, rank)
        self._iterator: Any = None
        self._as_given: list[torch.Tensor] | None = None

    def start(self, state: State, logger: Logger, ask: Callable[[], None]) -> None:
        """Make `state.batches` what is left of the epoch; `ask` may raise while a stream is read again."""
        now = state.timestamp
        self._announce(now.epoch)
        if now.batch_in_epoch == 0:
            self._notice_changes()
            self._seed_epoch(now.epoch)
            state.batches = self._from(now.epoch, 0, now.batch)
            return
        kept = Kept(self._device)  # a training that was not interrupted did not seed here
        try:
            self._seed_epoch(now.epoch)
            if self._skips or self._goes_on:
                state.batches = self._from(now.epoch, now.batch_in_epoch, now.batch)
            else:
                state.batches = self._from(now.epoch, 0, now.batch - now.batch_in_epoch)
                count = min(now.batch_in_epoch, self._num_batches)  # other ranks may have had more
                replay(state, count, type(self._loader).__name__, logger, ask)
        finally:
            kept.put_back()

    def first_batch(self) -> Any:
        """Any batch, to see what they look like; changes nothing."""
        kept = Kept(self._device)
        try:
            return self._keyed.first_batch() if self._keyed else next(iter(self._loader))
        finally:
            kept.put_back()

    @contextlib.contextmanager
    def reading(self, state: State) -> Iterator[None]:
        """While inside, workers may run. A stream that has none stays open: it could only be read again."""
        try:
            yield
        except BaseException as e:
            if isinstance(e, Interruption):
                self._remember()
            self.close(state)
            raise_failure_of(e, state.timestamp)
            explain(e, state)
            raise
        if self._skips or self._stateful or has_workers(self._iterator):
            self._remember()
            self.close(state)

    def _remember(self) -> None:
        if self._stateful and self._iterator is not None:
            self._left = self._loader.state_dict()

    def close(self, state: State) -> None:
        """End all workers; may be called again. The next `start` goes on from where training is."""
        state.batches = None
        end_workers(self._iterator, self._loader)
        self._iterator = None
        if self._keyed:
            self._keyed.forget()
        if self._left is not None:
            self._loader.load_state_dict(self._left)
            self._goes_on = True
        for generator, given in self._generators:
            generator.set_state(given)

    @property
    def is_stateful(self) -> bool:
        """Whether the loader itself notes where it is, which it does inside `next`."""
        return self._stateful

    def state_dict(self) -> dict[str, Any]:
        """What is not in the timestamp: the place of a stateful loader, the seeds of the user's own generators."""
        own = self._loader.state_dict() if self._stateful and self._iterator is not None else self._left
        return {"loader": own, "seeds": self._seeds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next `start` goes on from there."""
        seeds = [checks.integer(seed, "a seed") for seed in checks.sequence(state["seeds"], "seeds")]
        self._seeds = seeds if len(seeds) == len(self._seeds) else self._seeds  # else it is another loader
        if self._stateful and state["loader"] is not None:
            self._left = state["loader"]
            self._loader.load_state_dict(self._left)
            self._goes_on = True

    @property
    def _skips(self) -> bool:
        return self._keyed is not None or isinstance(self._loader, (list, tuple)) or hasattr(self._loader, "iter_from")

    def _may_be_keyed(self) -> bool:
        return not self._stateful and not hasattr(self._loader, "iter_from") and can_be_keyed(self._loader)

    def _keyed_loader(self, rank: int) -> KeyedLoader:
        return KeyedLoader(self._loader, seed=self._seed, rank=rank, seed_epoch=self._seed_epoch)

    def _announce(self, epoch: int) -> None:
        for ordered in self._orders:
            if hasattr(ordered, "set_epoch"):
                ordered.set_epoch(epoch)

    def _notice_changes(self) -> None:
        """Batches of a list are the same tensors each epoch: say where the epoch before has written into the first."""
        if not isinstance(self._loader, (list, tuple)):
            return
        now = list(tensors(self._loader[0]))
        if self._as_given is None:
            self._as_given = [tensor.detach().clone() for tensor in now]
        elif not all(map(_alike, now, self._as_given)):
            self._as_given = []  # said once
            warnings.warn("training writes into the batches of the list it was given, as a layer with inplace=True "
                          "may, so each epoch trains on what the one before has left; give a DataLoader, or have model "
                          "and methods make new tensors", stacklevel=2)  # fmt: skip

    def _seed_epoch(self, epoch: int) -> None:
        for (generator, _), seed in zip(self._generators, self._seeds, strict=True):
            generator.manual_seed(seed_of(seed, "data", epoch))
        seed_default(self._device, self._seed, "data", epoch)  # a torch sampler draws its order from here
        seed_python(self._seed, "data", epoch)

    def _from(self, epoch: int, first: int, number: int) -> Iterator[Any]:
        """Batches of an epoch from the `first` on, which is the `number`-th of the training."""
        goes_on, self._goes_on, self._left = self._goes_on, False, None
        if not getattr(self._loader, "persistent_workers", False):
            end_workers(self._iterator)  # of the epoch before, before there are new ones
        if self._keyed:
            self._iterator = self._keyed.iter_from(epoch, first)
        elif hasattr(self._loader, "iter_from"):
            self._iterator = self._loader.iter_from(first)
        elif isinstance(self._loader, (list, tuple)):
            self._iterator = itertools.islice(self._loader, first, None)
        else:
            if goes_on and first == 0:
                iter(self._loader)  # takes up its state, which is that of an epoch that is over
                self._seed_epoch(epoch)
            self._iterator = iter(self._loader)
            return self._iterator if self._keeps_its_word() else self._seeded(number)
        return self._iterator  # type: ignore[no-any-return]

    def _keeps_its_word(self) -> bool:
        """Whether it is a loader of our kind, which draws by the epoch it is told and from no default generator."""
        return hasattr(self._loader, "set_epoch") and not isinstance(self._loader, torch.utils.data.DataLoader)

    def _seeded(self, number: int) -> Iterator[Any]:
        """What a stream draws in this process is keyed by the batch."""
        for batch in itertools.count(number):
            self._augmentation.at(batch)
            try:
                yield next(self._iterator)
            except StopIteration:
                return


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | (a != a)).all())


def augmentation_of(device: torch.device, seed: int, rank: int) -> DefaultStream:
    """For what is drawn for a batch as a whole, keyed by its number in the training."""
    return DefaultStream(device, seed, "augmentation", *[rank] * (rank > 0), all_libraries=True)


def _orders_of(loader: Any) -> list[Any]:
    """Whatever may have an order of its own: the loader, its data set, its samplers."""
    batches = getattr(loader, "batch_sampler", None)
    found = [loader, getattr(loader, "dataset", None), batches, getattr(batches, "sampler", None)]
    found.append(getattr(loader, "sampler", None))
    return list({id(one): one for one in found if one is not None}.values())


def _generators_of(orders: list[Any]) -> list[torch.Generator]:
    found = [getattr(one, "generator", None) for one in orders]
    return list({id(one): one for one in found if isinstance(one, torch.Generator)}.values())


def _drawn_from(state: torch.Tensor) -> int:
    """A number that this state of a generator decides."""
    generator = torch.Generator()
    generator.set_state(state)
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator))
