"""Conformance: what every plug-in of a kind must do, ours and those of other packages.

    @pytest.mark.parametrize("check", checks("algorithms"), ids=name_of_check)
    def test_my_method_conforms(check):
        check(MyMethod(strength=0.5))

A check takes one plug-in with its settings and raises AssertionError with a sentence. Plug-ins are never used up: each
training gets a fresh one of the same settings.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import math
import os
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from expkit import plugins
from expkit.functional.losses import one_hot
from expkit.functional.resnet import ResNet, init_weights
from expkit.functional.tensor_loader import TensorLoader
from expkit.plugins import CAPABILITIES, Plugin
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.batch import targets_of
from expkit.trainer.callback import Callback
from expkit.trainer.contracts import Dataset, Metric, Model, Optimizer, Scheduler
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.schedule import Steps
from expkit.trainer.state import State
from expkit.trainer.streams import generator
from expkit.trainer.trainer import Trainer

Check = Callable[[Any], None]
NUM_CLASSES = 4


def checks(kind: str) -> list[Check]:
    """All checks for plug-ins of a kind: those for every kind, then its own."""
    return [*_ALL, *_OWN.get(kind, [])]


def name_of_check(check: Check) -> str:
    """How a check is called in a test's id."""
    return check.__name__


@dataclasses.dataclass
class Training:
    """What a short training left behind."""

    losses: list[float]
    weights: dict[str, Tensor]
    targets: list[Tensor]
    """Of each batch, as the algorithms left it at the end of the batch."""
    given: list[tuple[Tensor, Tensor]]
    """Each batch as the loader gave it, copied before anybody saw it."""
    loaded: list[tuple[Tensor, Tensor]]
    """The very tensors that the loader gave."""
    draws: list[float]
    """Of another purpose's stream, drawn at each batch."""


def train(
    algorithms: Sequence[Algorithm] = (),
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[LoggerDestination] = (),
    *,
    seed: int = 1,
    num_batches: int = 3,
    model: nn.Module | None = None,
) -> Training:
    """Train a small residual network on 8 noise images a batch, with an evaluation after every other batch."""
    loader, probe = _Recording(_noise(seed)), _Probe()
    network = _network() if model is None else model
    trainer = Trainer(
        model=network,
        train_dataloader=loader,
        eval_dataloader=_noise(seed + 1),
        optimizers=torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9),
        max_duration=f"{num_batches}ba",
        eval_interval="2ba",
        algorithms=list(algorithms),
        callbacks=[*callbacks, probe],
        loggers=list(loggers),
        device="cpu",
        seed=seed,
    )
    with trainer:
        trainer.fit()
        weights = {name: tensor.clone() for name, tensor in trainer.state.model.state_dict().items()}
    return Training(probe.losses, weights, probe.targets, loader.copies, loader.originals, probe.draws)


def _noise(seed: int) -> TensorLoader:
    """32 images of 16x16 in four classes, 16 channels so that every method has layers to work on."""
    rng = torch.Generator().manual_seed(7)
    images, targets = torch.randn(32, 16, 16, 16, generator=rng), torch.arange(32) % NUM_CLASSES

    def order(epoch: int) -> Tensor:
        return torch.randperm(32, generator=generator(seed, "data", epoch))

    return TensorLoader(images, targets, batch_size=8, order=order)


def _network() -> nn.Module:
    model = ResNet(depth=8, width=16, stem_stride=2, num_classes=NUM_CLASSES, in_channels=16)
    init_weights(model, torch.Generator().manual_seed(0))
    return model


class _Recording:
    """A loader that keeps the very tensors it gave, and copies of them made before."""

    def __init__(self, loader: TensorLoader) -> None:
        self._loader = loader
        self.batch_size, self.num_samples, self.set_epoch = loader.batch_size, loader.num_samples, loader.set_epoch
        self.copies: list[tuple[Tensor, Tensor]] = []
        self.originals: list[tuple[Tensor, Tensor]] = []

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for inputs, targets in self._loader:
            self.copies.append((inputs.clone(), targets.clone()))
            self.originals.append((inputs, targets))
            yield inputs, targets


class _Probe(Callback):
    """Writes down losses, targets and the draws of another purpose."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.targets: list[Tensor] = []
        self.draws: list[float] = []

    def batch_end(self, state: State, logger: Any) -> None:
        self.losses.append(state.train_loss)
        self.targets.append(targets_of(state.batch))
        self.draws.append(float(torch.rand((), generator=state.rng("probe", state.timestamp.batch))))


def fresh(plugin: Any) -> Any:
    """Another plug-in of the same class and settings, unused."""
    given = {f.name: getattr(plugin, f.name) for f in dataclasses.fields(plugin) if f.init}
    return type(plugin)(**copy.deepcopy(given))


def imports_without_torch(plugin: Plugin) -> None:
    """Plans, lists and explanations read the class; torch would cost them a second."""
    module = type(plugin).__module__
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"importing {module} loads torch, or fails: {done.stderr[-500:]}"


def explains_itself(plugin: Plugin) -> None:
    """A sentence for the class and one under every setting."""
    cls = type(plugin)
    own = cls.__dict__.get("__doc__") or ""
    assert own and not own.startswith(f"{cls.__name__}("), f"{cls.__name__} has no docstring"
    silent = [setting.name for setting in plugins.settings(cls) if not setting.doc]
    assert not silent, f"no sentence under the settings {', '.join(silent)} of {cls.__name__}"


def settings_survive_a_file(plugin: Plugin) -> None:
    """What is written for a trial gives the same plug-in when it is read again."""
    written = plugins.dump(plugin)
    again = plugins.adapter(type(plugin)).validate_python(written)
    assert plugins.dump(again) == written, f"{written} is read as {plugins.dump(again)}"


def declares_known_words(plugin: Plugin) -> None:
    """Capabilities come from the closed list."""
    words = plugin.capabilities() | getattr(plugin, "requires", frozenset())
    assert words <= CAPABILITIES, f"{sorted(words - CAPABILITIES)} are no capabilities"
    assert isinstance(type(plugin).version, int) and type(plugin).version >= 1


def names_its_source(algorithm: Algorithm) -> None:
    """A method says where it comes from."""
    assert algorithm.paper, f"{type(algorithm).__name__} names no paper"


def declares_names_of_algorithms(algorithm: Algorithm) -> None:
    """Conflicts and order are sets of names."""
    for declared in (algorithm.conflicts, algorithm.before, algorithm.after):
        assert isinstance(declared, frozenset) and all(isinstance(name, str) for name in declared)


def trains_to_finite_numbers(algorithm: Algorithm) -> None:
    """A few batches and two evaluations, all numbers finite."""
    done = train([fresh(algorithm)])
    assert all(map(math.isfinite, done.losses)), f"losses {done.losses}"
    assert all(bool(torch.isfinite(w).all()) for w in done.weights.values() if w.is_floating_point())


def leaves_the_batch_as_found(algorithm: Algorithm) -> None:
    """Tensors of the loader are never written to, and metrics find the targets that the data set gave."""
    done = train([fresh(algorithm)])
    for given, loaded in zip(done.given, done.loaded, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(given, loaded, strict=True)), "the loader's tensors were changed"
    if not algorithm.changes_batch:
        for given, targets in zip(done.given, done.targets, strict=True):
            assert torch.equal(given[1], targets), "the targets were not put back"


def is_deterministic(algorithm: Algorithm) -> None:
    """Twice the same seed, twice the same bits, whatever was drawn from torch's generator before."""
    torch.rand(3)
    once, again = train([fresh(algorithm)]), train([fresh(algorithm)])
    assert once.losses == again.losses
    assert all(torch.equal(w, again.weights[name]) for name, w in once.weights.items())


def changes_no_other_stream(algorithm: Algorithm) -> None:
    """With the method on, the data come in the same order and other purposes draw the same numbers."""
    without, with_it = train(), train([fresh(algorithm)])
    for (a, b), (c, d) in zip(without.given, with_it.given, strict=True):
        assert torch.equal(a, c) and torch.equal(b, d), "the order of the data moved"
    assert without.draws == with_it.draws, "another purpose drew other numbers"


def keeps_plain_state(algorithm: Algorithm) -> None:
    """Its state is plain types and tensors, which a checkpoint can be read from without running code."""
    used = fresh(algorithm)
    train([used])
    file = io.BytesIO()
    torch.save(used.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    resumed = fresh(algorithm)
    resumed.load_state_dict(loaded)


def changes_no_bit_of_training(callback: Callback) -> None:
    """Who watches does not act: losses and weights are those of a training without it."""
    loggers = [fresh(callback)] if isinstance(callback, LoggerDestination) else []
    done = train(callbacks=[] if loggers else [fresh(callback)], loggers=loggers)
    without = train()
    if not callback.changes_training:
        assert done.losses == without.losses
        assert all(torch.equal(w, without.weights[name]) for name, w in done.weights.items())


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
    assert torch.equal(torch.cat(ranks).sort().values, whole.sort().values)


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
    """Asked in any order, it gives the same finite factors, from 0 to 1."""
    for total in (1, 2, 7, 100):
        steps = Steps(total=total, per_epoch=max(1, total // 2))
        forward = [scheduler.factor(step, steps) for step in range(total + 2)]
        backward = [scheduler.factor(step, steps) for step in reversed(range(total + 2))]
        assert forward == backward[::-1], "the answer depends on what was asked before"
        assert all(math.isfinite(f) and 0 <= f <= 1 for f in forward), forward


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


_ALL: list[Check] = [imports_without_torch, explains_itself, settings_survive_a_file, declares_known_words]
_OWN: dict[str, list[Check]] = {
    "algorithms": [names_its_source, declares_names_of_algorithms, trains_to_finite_numbers, leaves_the_batch_as_found,
                   is_deterministic, changes_no_other_stream, keeps_plain_state],
    "callbacks": [changes_no_bit_of_training],
    "loggers": [changes_no_bit_of_training],
    "models": [answers_every_input_with_logits, takes_soft_targets_if_it_says_so,
               draws_weights_from_the_default_generator, provides_what_it_says],
    "datasets": [counts_what_it_gives, orders_by_seed_and_epoch_alone, shares_samples_between_ranks,
                 gives_batches_that_may_be_changed],
    "optimizers": [goes_downhill],
    "schedulers": [is_a_pure_function_of_the_step, scales_with_the_training],
    "metrics": [adds_up_over_batches],
}  # fmt: skip
