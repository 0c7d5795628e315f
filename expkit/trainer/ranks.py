"""Ranks: what several processes that train one model say to each other. One rank alone never comes here.

After every batch all ranks hold the same bits: gradients, loss, batch statistics and counts are summed in one
all-reduce, weighted by samples, so that the gradient is that of the whole batch on one rank, to rounding (1e-6 of its
norm in single precision). The last batch of an epoch may give ranks unequal shares, or none. Whatever ends training is
agreed first. No collective lies inside forward or backward: a rank that fails there leaves no other in the middle of
one, and a rank that goes away is noticed at the next, at once or after the time-out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _NormBase

from expkit import dist
from expkit.errors import Interruption, TrialFailure, UsageError
from expkit.trainer.contracts import Metric
from expkit.trainer.loaders import Sizes
from expkit.trainer.state import State

_HEAD = 10  # numbers in front of the gradients, all of them whole or below one, so that 24 bits hold them exactly
_CHUNK = 4096
_BLIND = (torch.utils.data.RandomSampler, torch.utils.data.SequentialSampler, torch.utils.data.SubsetRandomSampler,
          torch.utils.data.WeightedRandomSampler)  # fmt: skip


class Ranks:
    """The other ranks, as the loop sees them."""

    def __init__(self, state: State, own_batches: int) -> None:
        """`own_batches`: how many batches of an epoch this rank's loader has."""
        self._state = state
        self.own_batches = own_batches
        self.full = max(1, state.steps.batch_size)
        """Samples of a full batch of all ranks; gradients are divided by it until it is known what was there."""
        self.samples = self.tokens = 0
        """Of the batch, over all ranks, as of the last exchange."""
        self.train_s = 0.0
        """The train clock of rank 0 at the last exchange."""
        self.stop_reason: str | None = None
        """Why all ranks end training; what one of them asked for counts only once all know."""
        self.interruption: Interruption | None = None
        self.may_stop = any(callback.changes_training for callback in state.callbacks.values())
        """Whether it is worth asking after each batch; what other callbacks ask for is known one batch later."""
        self._mail: _Mail | None = None
        self._names: list[str] = []

    def meet(self, *, share: bool = True) -> None:
        """All ranks start from the weights of rank 0; TrialFailure where they have not the same model.

        Without `share` each keeps its own, which are those of a checkpoint.
        """
        tensors = [*self._state.model.parameters(), *self._state.model.buffers()]
        sizes = dist.all_gather_json([len(tensors), sum(t.numel() for t in tensors), sorted(self._state.algorithms)])
        for other, size in enumerate(sizes):
            if size != sizes[0]:
                raise TrialFailure(f"ranks must train the same model, but rank 0 has {sizes[0]} (tensors, numbers, "
                                   f"methods) and rank {other} has {size}", "config")  # fmt: skip
        if share:
            _broadcast(tensors)

    def exchange(self, loss: Tensor | None, own: tuple[int, int], weight: float | None, train_s: float,
                 asked: Interruption | None) -> Tensor:  # fmt: skip
        """Gradients, named losses and batch statistics become those of the whole batch; gives its loss.

        `loss` is this rank's part, weighted; None where it had no samples. `own`: its samples and tokens. With a
        `weight`, what counts of them, loss and gradients are the mean over that on this rank.
        """
        state = self._state
        parameters = [p for group in state.optimizer.param_groups for p in group["params"]]
        if self._mail is None or not self._mail.fits(parameters):
            self._names = self._agreed_names(loss) if self._mail is None else self._names
            self._mail = _Mail(parameters, state.model, self.full, 1 + len(self._names))
        used = state.num_samples if loss is not None else 0
        clock_s = train_s if state.rank == 0 else 0.0
        head = [used, *own[:1], *divmod(own[1], _CHUNK), clock_s // 1, clock_s % 1,
                state.stop_reason is not None, asked is not None, *divmod(weight or 0.0, _CHUNK)]  # fmt: skip
        head, (total, *named) = self._mail.send(head, self._losses(loss), weight)
        state.losses = dict(zip(self._names, named, strict=True))
        self.samples, self.tokens = round(head[1]), round(head[2]) * _CHUNK + round(head[3])
        self.train_s = head[4] + head[5]
        if head[6] or head[7]:
            self._listen(asked)
        return total  # type: ignore[no-any-return]

    def settle(self) -> None:
        """Whether a callback of any rank asked to stop; one small collective."""
        asked = torch.tensor([float(self._state.stop_reason is not None)])
        if dist.all_reduce(asked, "max", control=True).item():
            self._listen(None)

    def stop(self, reason: str) -> None:
        """All ranks know this for themselves, and at the same moment."""
        self.stop_reason = self._state.stop_reason = reason

    def part(self) -> None:
        """The end of a fit: one model everywhere, and a method that did something anywhere has done something."""
        share_buffers(self._state.model)
        did = dist.all_gather_json([bool(algorithm.effective) for algorithm in self._state.algorithms.values()])
        for algorithm, anywhere in zip(self._state.algorithms.values(), map(any, zip(*did, strict=True)), strict=False):
            if anywhere and not algorithm.effective:
                algorithm.effective = True

    def _agreed_names(self, loss: Tensor | None) -> list[str]:
        """Of the parts of the loss, which a rank without samples does not know; once a training."""
        said = dist.all_gather_json(None if loss is None else sorted(self._state.losses))
        known = [names for names in said if names is not None]
        for names in known:
            if names != known[0]:
                raise TrialFailure(f"ranks must have losses of the same names, but some have {known[0]} and some "
                                   f"{names}", "config")  # fmt: skip
        return known[0] if known else []

    def _losses(self, loss: Tensor | None) -> list[Tensor] | None:
        """The loss and its parts in the order that all ranks keep."""
        if loss is None:
            return None
        if self._state.losses.keys() != set(self._names):
            raise TrialFailure(f"losses must keep their names where there are several ranks, but {self._names} became "
                               f"{sorted(self._state.losses)}", "config")  # fmt: skip
        return [loss, *(self._state.losses[name] for name in self._names)]

    def _listen(self, asked: Interruption | None) -> None:
        own = {"stop": self._state.stop_reason, "asked": asked and [str(asked), asked.exit_code]}
        said = dist.all_gather_json(own)
        stop = next((one["stop"] for one in said if one["stop"]), None)
        self._state.stop_reason = self.stop_reason = stop
        self.interruption = next((Interruption(*one["asked"]) for one in said if one["asked"]), None)


class _Mail:
    """One flat buffer with everything that the ranks sum after a batch; laid out once, reused at every step."""

    def __init__(self, parameters: list[Tensor], model: torch.nn.Module, full: int, num_losses: int) -> None:
        self._parameters, self._full = parameters, full
        self._key = [id(p) for p in parameters]
        self._norms = [m for m in model.modules() if _has_statistics(m)]
        statistics = [b for norm in self._norms for b in _statistics(norm)]
        dtype = torch.float32
        for tensor in (*parameters, *statistics):
            dtype = torch.promote_types(dtype, tensor.dtype)
        sizes = [_HEAD, len(parameters), num_losses, *(t.numel() for t in (*parameters, *statistics))]
        self._flat = torch.zeros(sum(sizes), dtype=dtype, device=parameters[0].device)
        self._counts, self._sums = torch.split(self._flat, [_HEAD + len(parameters), sum(sizes[2:])])
        views = torch.split(self._sums, sizes[2:])
        self._losses = views[0]
        self._learned, self._statistics = torch.split(
            self._sums, [sum(sizes[2 : 3 + len(parameters)]), sum(sizes[3 + len(parameters) :])]
        )
        self._gradients = [v.view_as(p) for v, p in zip(views[1:], parameters, strict=False)]
        self._means = list(views[1 + len(parameters) :])

    def fits(self, parameters: list[Tensor]) -> bool:
        """Whether these are the parameters it was laid out for; a method may have replaced some."""
        return self._key == [id(p) for p in parameters]

    def send(self, head: list[Any], losses: list[Tensor] | None, weight: float | None) -> tuple[list[float], Tensor]:
        """Sum over ranks, spread the result; gives the summed head and losses. `head[0]`: samples that made them."""
        present = [p.grad is not None for p in self._parameters]
        self._counts.copy_(torch.tensor([*map(float, head), *map(float, present)], dtype=self._flat.dtype))
        torch.cat(list(self._weighted(losses, head[0] / self._full)), out=self._sums)
        if weight is not None:
            self._learned.mul_(weight)  # it was a mean over what counts here
        dist.all_reduce(self._flat)
        summed: list[float] = self._counts[:_HEAD].tolist()
        if weight is not None:
            self._learned.div_(summed[-2] * _CHUNK + summed[-1])
        if summed[0] not in (0, self._full):  # a batch that is not full, or that a method made smaller
            (self._sums if weight is None else self._statistics).div_(summed[0] / self._full)
        self._spread(present)
        return summed, self._losses.clone()

    def _weighted(self, losses: list[Tensor] | None, weight: float) -> Iterator[Tensor]:
        """Losses and gradients, which carry their weight already, then batch statistics; zeros where there are none."""
        yield torch.zeros_like(self._losses) if losses is None else torch.stack(losses)
        for parameter in self._parameters:
            yield (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).reshape(-1)
        for norm in self._norms:
            yield from (b * weight if weight and norm.training else torch.zeros_like(b) for b in _statistics(norm))

    def _spread(self, present: list[bool]) -> None:
        anywhere = present if all(present) else self._counts[_HEAD:].tolist()
        for parameter, gradient, has_one in zip(self._parameters, self._gradients, anywhere, strict=True):
            if not has_one:
                continue
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(gradient)
        means = iter(self._means)
        for norm in self._norms:
            for statistic, mean in zip(_statistics(norm), means, strict=False):
                if norm.training:
                    statistic.copy_(mean)


def share_buffers(model: torch.nn.Module) -> None:
    """Buffers as rank 0 has them, but for batch statistics, which are the same everywhere after each batch."""
    exchanged = {id(b) for module in model.modules() if _has_statistics(module) for b in _statistics(module)}
    _broadcast([b for b in model.buffers() if id(b) not in exchanged])


def add_up(metrics: Mapping[str, Any]) -> None:
    """Each metric as if it had seen what all ranks saw; sums and counts, no mean of means."""
    adding = [metric for metric in metrics.values() if adds_up(metric)]
    totals = [metric.totals() for metric in adding]
    summed = torch.tensor([number for numbers in totals for number in numbers], dtype=torch.float64)
    dist.all_reduce(summed, control=True)
    numbers = iter(summed.tolist())
    for metric, own in zip(adding, totals, strict=True):
        metric.set_totals(list(itertools.islice(numbers, len(own))))


def refuse_what_cannot_add_up(metrics: Mapping[str, Any]) -> None:
    """UsageError for a metric that does not say how the parts of several ranks are put together."""
    for name, metric in metrics.items():
        if not adds_up(metric) and not hasattr(metric, "sync_context"):  # torchmetrics' own meet inside compute()
            raise UsageError(f"metric {name!r} cannot be added up over {dist.world_size()} ranks: it has no totals() "
                             f"and set_totals()")  # fmt: skip


def adds_up(metric: Any) -> bool:
    """Whether a metric says what it has added up."""
    return getattr(type(metric), "totals", Metric.totals) is not Metric.totals


def all_sizes(own: Sizes) -> Sizes:
    """An epoch over all ranks; the rank with most batches says how many steps it has."""
    said = dist.all_gather_json([own.batches, own.batch_size, own.samples, own.tokens])
    batches, *counts = zip(*said, strict=True)
    return Sizes(max(batches), *map(sum, counts))


def refuse_blind_loader(loader: Any) -> None:
    """UsageError for a torch DataLoader that would give every rank the same samples."""
    batches = getattr(loader, "batch_sampler", None)
    sampler = getattr(loader if batches is None else batches, "sampler", None)
    if type(sampler) in _BLIND:
        raise UsageError(f"the train loader gives all {dist.world_size()} ranks the same samples; make it with "
                         f"DataLoader(..., sampler=expkit.dist.get_sampler(dataset, shuffle=...))")  # fmt: skip


def _has_statistics(module: torch.nn.Module) -> bool:
    return isinstance(module, _NormBase) and module.running_mean is not None


def _statistics(norm: Any) -> tuple[Tensor, Tensor]:
    return norm.running_mean, norm.running_var


def _broadcast(tensors: Iterable[Tensor]) -> None:
    """What rank 0 has, one collective a data type; nothing is sent where there is nothing."""
    by_type: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for tensor in tensors:
        by_type.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    with torch.no_grad():
        for group in by_type.values():
            flat = torch.cat([tensor.reshape(-1) for tensor in group])
            dist.broadcast(flat)
            for tensor, part in zip(group, torch.split(flat, [t.numel() for t in group]), strict=True):
                tensor.copy_(part.view_as(tensor))
