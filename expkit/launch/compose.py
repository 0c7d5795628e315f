"""Compose: from a recipe to a trainer that is ready to fit. Here, and only here, code of the user's own is imported."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from expkit import dist, plugins
from expkit.errors import PluginError, unknown
from expkit.plugins import Plugin
from expkit.spec.merge import default_label
from expkit.spec.recipe import EVAL_INTERVAL, Component, Recipe
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.contracts import Dataset, Model, Optimizer, Scheduler
from expkit.trainer.evaluator import Evaluator
from expkit.trainer.logger import LoggerDestination
from expkit.trainer.streams import seed_default, seed_python
from expkit.trainer.trainer import Trainer

Made = Plugin | Callable[..., Any]
P = TypeVar("P", bound=Plugin)
T = TypeVar("T")


def compose(
    recipe: Recipe,
    *,
    trust: Iterable[str],
    loggers: Iterable[LoggerDestination],
    setup_started: float | None = None,
    checkpoints: Path | None = None,
    begin_with: Path | None = None,
) -> Trainer:
    """The trainer of a trial on this rank; model weights are drawn from the stream (seed, "init").

    `checkpoints`: the folder for those that the recipe asks for. `begin_with`: the one that training goes on from.
    """
    allowed = tuple(trust)
    seed_default(torch.device("cpu"), recipe.seed, "init")
    seed_python(recipe.seed, "init")
    model = _model(recipe.model, allowed)
    settings = recipe.trainer
    return Trainer(
        model=model,
        train_dataloader=_loader(recipe.data.train, allowed, recipe.seed),
        eval_dataloader=_evaluators(recipe, allowed),
        optimizers=_optimizer(recipe.optimizer, allowed, model),
        schedulers=[_of(s, "schedulers", Scheduler, allowed) for s in (recipe.scheduler,) if s is not None],
        algorithms=_all_of(recipe.algorithms, "algorithms", Algorithm, allowed),
        callbacks={**_all_of(recipe.callbacks, "callbacks", Callback, allowed), **_saver(recipe, checkpoints)},
        loggers=tuple(loggers),
        max_duration=settings.max_duration,
        ssr=settings.ssr,
        precision=settings.precision,
        device=recipe.runtime.device,
        device_train_microbatch_size=settings.microbatch,
        compile=settings.compile,
        activation_checkpointing=settings.activation_checkpointing,
        seed=recipe.seed,
        setup_started=setup_started,
        load_path=begin_with and _escaped(begin_with),
        allow=[(default_label(a), default_label(b)) for a, b in recipe.allow],
    )


def _model(component: Component, trust: tuple[str, ...]) -> torch.nn.Module:
    made = _made(component, "models", trust)
    module = made.build() if isinstance(made, Model) else _called(made, component)()
    if not isinstance(module, torch.nn.Module):
        raise PluginError(f"model {component.name} must give a torch.nn.Module, but gave {type(module).__name__}")
    return module


def _loader(component: Component, trust: tuple[str, ...], seed: int) -> Any:
    made = _made(component, "datasets", trust)
    place = {"seed": seed, "rank": dist.rank(), "world_size": dist.world_size()}
    if isinstance(made, Dataset):
        return made.build(**place)
    make = _called(made, component)
    return make(**{name: value for name, value in place.items() if _takes(make, name)})


def _evaluators(recipe: Recipe, trust: tuple[str, ...]) -> list[Evaluator]:
    """Those of the recipe; own code may give an Evaluator instead of a loader, with metrics of its own."""
    settings, found = recipe.trainer, []
    for label, component in recipe.data.eval.items():
        made = _loader(component, trust, recipe.seed)
        evaluator = made if isinstance(made, Evaluator) else Evaluator(label, made)
        found.append(replace(
            evaluator,
            label=label,
            subset_num_batches=_of_label(settings.eval_subset_num_batches, label, evaluator.subset_num_batches),
            eval_interval=_of_label(settings.eval_interval, label, evaluator.eval_interval or EVAL_INTERVAL),
        ))  # fmt: skip
    return found


def _of_label(given: T | Mapping[str, T], label: str, default: T) -> T:
    """What a setting says for an evaluator: for all alike, or for some by their labels."""
    return given.get(label, default) if isinstance(given, Mapping) else given


def _optimizer(component: Component, trust: tuple[str, ...], model: torch.nn.Module) -> Any:
    made = _made(component, "optimizers", trust)
    if isinstance(made, Optimizer):
        return made.build(model.parameters())
    return _called(made, component)(model.parameters())


def _saver(recipe: Recipe, folder: Path | None) -> dict[str, Callback]:
    """What saves as the recipe says, after all other callbacks; nothing where no checkpoint is kept."""
    asked, primary = recipe.trainer.checkpoint, recipe.metrics.primary
    if folder is None or asked.keep == "none":
        return {}
    best = {"keep_best": 1, "best_metric": primary.name, "best_mode": primary.mode} if asked.keep == "best" else {}
    settings = {"folder": _escaped(folder), "save_interval": asked.every, "keep_last": 1, "overwrite": True, **best}
    saver = plugins.build("callbacks", "checkpoint_saver", settings)
    assert isinstance(saver, Callback)
    return {"trainer.checkpoint": saver}


def _escaped(path: Path) -> str:
    """A path that is no text with placeholders, whatever the runs folder is called."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _all_of(components: Mapping[str, Component], kind: str, contract: type[P], trust: tuple[str, ...]) -> dict[str, P]:
    return {label: _of(component, kind, contract, trust) for label, component in components.items()}


def _of(component: Component, kind: str, contract: type[P], trust: tuple[str, ...]) -> P:
    made = _made(component, kind, trust)
    if not isinstance(made, contract):
        raise PluginError(f"{component.name} must be a subclass of {contract.__module__}.{contract.__name__}")
    return made


def _made(component: Component, kind: str, trust: tuple[str, ...]) -> Made:
    """A plug-in with its settings, or the user's callable with its arguments."""
    if not plugins.is_import_path(component.name):
        return plugins.build(kind, component.name, component.settings)
    found = plugins.import_path(component.name, trust)
    if isinstance(found, type) and issubclass(found, Plugin):
        return plugins.configured(found, component.settings, component.name)
    if not callable(found):
        raise PluginError(f"{component.name} is neither a class nor a function, but {type(found).__name__}")
    _check_names(found, component)
    return functools.partial(found, **component.settings)


def _check_names(function: Callable[..., Any], component: Component) -> None:
    """PluginError for a setting that a function of the user's own does not take."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C do not say
        return
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    stray = component.settings.keys() - set(names)
    if stray and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise PluginError(f"{component.name}: {unknown('setting', min(stray), names)}")


def _called(made: Made, component: Component) -> Callable[..., Any]:
    if isinstance(made, Plugin):
        raise PluginError(f"{component.name} is a plug-in of another kind: {type(made).__mro__[1].__name__}")
    return made


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some functions written in C do not say
        return False
    given = parameters.get(name)
    bound = isinstance(function, functools.partial) and name in function.keywords
    return given is not None and not bound and given.kind is not inspect.Parameter.POSITIONAL_ONLY
