"""Suites of what a training is built from: models, data sets, optimizers, schedules, metrics."""

from __future__ import annotations

import math
import typing
from typing import Any

import torch
from torch import Tensor, nn

from expkit.functional.losses import one_hot
from expkit.testing.training import fresh
from expkit.trainer.contracts import Dataset, Metric, Model, Optimizer, Scheduler
from expkit.trainer.schedule import Steps


def answers_every_input_with_logits(model: Model) -> None:
    """(N, ...) in, (N, C, ...) out, and a gradient for every parameter."""
    module = model.build()
    outputs = module(example_inputs(model))
    loss = module.loss(outputs, example_targets(outputs))
    assert loss.ndim == 0 and math.isfinite(float(loss.detach()))
    loss.backward()
    still = [name for name, p in module.named_parameters() if p.requires_grad and p.grad is None]
    assert not still, f"no gradient reaches {still}"


def takes_soft_targets_if_it_says_so(model: Model) -> None:
    """Ids and their one-hot probabilities give one loss."""
    if "soft_targets" in model.capabilities():
        module = model.build().eval()
        outputs = module(example_inputs(model)).detach()
        targets = example_targets(outputs)
        soft = module.loss(outputs, one_hot(targets, outputs.shape[1]))
        torch.testing.assert_close(soft, module.loss(outputs, targets))


def draws_weights_from_the_default_generator(model: Model) -> None:
    """The caller seeds it; the same seed gives the same weights."""
    modules = []
    for _ in range(2):
        torch.manual_seed(5)
        modules.append(model.build().state_dict())
    assert all(torch.equal(a, b) for a, b in zip(modules[0].values(), modules[1].values(), strict=True))


def provides_what_it_says(model: Model) -> None:
    """Words about layers are true of the module that is built."""
    parts = list(model.build().modules())
    layers = {
        "convolutions": any(isinstance(m, nn.modules.conv._ConvNd) for m in parts),
        "strided_convolutions": any(isinstance(m, nn.modules.conv._ConvNd) and max(m.stride) > 1 for m in parts),
        "batchnorm": any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in parts),
        "layernorm": any(isinstance(m, nn.LayerNorm) for m in parts),
        "dropout": any(isinstance(m, nn.Dropout) for m in parts),
        "embeddings": any(isinstance(m, nn.Embedding) for m in parts),
    }
    wrong = [word for word, there in layers.items() if there is not (word in model.capabilities())]
    assert not wrong, f"{wrong} are declared and not there, or there and not declared"


def example_inputs(model: Model) -> Tensor:
    """Four inputs that suit the model's settings: `example_inputs()` of its own, else images."""
    if hasattr(model, "example_inputs"):
        return typing.cast(Tensor, model.example_inputs())
    return torch.randn(4, getattr(model, "in_channels", 1), 28, 28, generator=torch.Generator().manual_seed(0))


def example_targets(outputs: Tensor) -> Tensor:
    """Class ids for outputs (N, C, ...)."""
    shape = outputs.shape[:1] + outputs.shape[2:]
    return torch.randint(outputs.shape[1], shape, generator=torch.Generator().manual_seed(0))


def counts_what_it_gives(dataset: Dataset) -> None:
    """`len`, `batch_size` and `num_samples` are true; all numbers finite."""
    loader = dataset.build(seed=3, rank=0, world_size=1)
    loader.set_epoch(0)
    sizes = []
    for inputs, targets in loader:
        assert len(inputs) == len(targets)
        assert not inputs.is_floating_point() or bool(torch.isfinite(inputs).all())
        sizes.append(len(targets))
    assert len(sizes) == len(loader) and sum(sizes) == loader.num_samples
    assert max(sizes) == min(loader.batch_size, loader.num_samples) and len(set(sizes[:-1])) <= 1


def orders_by_seed_and_epoch_alone(dataset: Dataset) -> None:
    """The same epoch of the same seed is the same, whatever was drawn or read before."""
    loader = dataset.build(seed=3, rank=0, world_size=1)
    first = _targets(loader, 1)
    torch.rand(5)
    _targets(loader, 0)
    assert torch.equal(first, _targets(loader, 1)), "the order depends on what was read before"
    other = dataset.build(seed=3, rank=0, world_size=1)
    assert torch.equal(first, _targets(other, 1)), "another loader of the same seed has another order"
    if getattr(dataset, "shuffle", False):
        assert not torch.equal(first, _targets(loader, 2)), "two epochs have one order"
        assert not torch.equal(first, _targets(dataset.build(seed=4, rank=0, world_size=1), 1)), "seeds do not matter"


def shares_samples_between_ranks(dataset: Dataset) -> None:
    """Two ranks together see what one would see, each sample once."""
    whole = _targets(dataset.build(seed=3, rank=0, world_size=1), 0)
    ranks = [_targets(dataset.build(seed=3, rank=rank, world_size=2), 0) for rank in range(2)]
    assert torch.equal(torch.cat(ranks).flatten().sort().values, whole.flatten().sort().values)


def gives_batches_that_may_be_changed(dataset: Dataset) -> None:
    """Writing to a batch does not reach the data behind it."""
    loader = dataset.build(seed=3, rank=0, world_size=1)
    loader.set_epoch(0)
    inputs, _ = next(iter(loader))
    kept = inputs.clone()
    inputs.zero_()
    loader.set_epoch(0)
    assert torch.equal(next(iter(loader))[0], kept)


def goes_downhill(optimizer: Optimizer) -> None:
    """From (1, -2) towards the bottom of a bowl, groups and state as torch has them."""
    point = nn.Parameter(torch.tensor([1.0, -2.0]))
    built = optimizer.build([{"params": [point]}])
    assert isinstance(built, torch.optim.Optimizer)
    before = float(point.detach().square().sum())
    for _ in range(20):
        point.grad = 2 * point.detach()
        built.step()
    assert float(point.detach().square().sum()) < before
    built.load_state_dict(built.state_dict())


def is_a_pure_function_of_the_step(scheduler: Scheduler) -> None:
    """Asked in any order, it gives the same finite factors, none below 0."""
    for total in (1, 2, 7, 100):
        steps = Steps(total=total, per_epoch=max(1, total // 2))
        forward = [scheduler.factor(step, steps) for step in range(total + 2)]
        backward = [scheduler.factor(step, steps) for step in reversed(range(total + 2))]
        assert forward == backward[::-1], "the answer depends on what was asked before"
        assert all(math.isfinite(f) and f >= 0 for f in forward), forward


def scales_with_the_training(scheduler: Scheduler) -> None:
    """At half the ssr it has the same shape in half the steps, as far as whole steps allow."""
    whole, half = Steps(total=1000, per_epoch=500), Steps(total=500, per_epoch=500, ssr=0.5)
    for step in range(0, 500, 50):
        difference = abs(scheduler.factor(step, half) - scheduler.factor(2 * step, whole))
        assert difference < 0.02, f"at step {step} of 500 it is {difference} from step {2 * step} of 1000"


def adds_up_over_batches(metric: Metric) -> None:
    """Uneven batches give what one batch gives; nothing seen is NaN; reset forgets."""
    rng = torch.Generator().manual_seed(0)
    outputs, targets = torch.randn(30, 5, generator=rng), torch.randint(5, (30,), generator=rng)
    metric = fresh(metric)
    assert math.isnan(metric.compute())
    metric.update(outputs, targets)
    whole = metric.compute()
    metric.reset()
    assert math.isnan(metric.compute())
    for part in (slice(0, 1), slice(1, 20), slice(20, 30)):
        metric.update(outputs[part], targets[part])
    assert abs(metric.compute() - whole) < 1e-6


def _targets(loader: Any, epoch: int) -> Tensor:
    loader.set_epoch(epoch)
    return torch.cat([targets for _, targets in loader])
