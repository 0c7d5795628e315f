"""Which trials are the same: one hash over everything that can change the mathematics, and nothing else.

In it: model, data, optimizer, scheduler and algorithms with every default filled in, plug-in versions, callbacks that
change training, the trainer without checkpoints, the seed. A path to data or weights enters as its content.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from expkit import plugins
from expkit.errors import UsageError
from expkit.spec.hints import alternatives, field_hints
from expkit.spec.recipe import Component, Recipe, TrainerSettings

MAX_KEPT = 10_000


def trial_id(recipe: Recipe) -> str:
    """64 hex digits; the first 12 are shown."""
    return Identifier().id_of(recipe)


def identity(recipe: Recipe) -> dict[str, Any]:
    """What the id is the hash of, as JSON values."""
    return json.loads(Identifier().text_of(recipe))  # type: ignore[no-any-return]


class Identifier:
    """Ids of many recipes: a component or trainer that recipes share is spelled once."""

    def __init__(self) -> None:
        self._spelled: dict[int, tuple[Any, str]] = {}  # the value is kept, so that its address stays its own
        self._exact: dict[int, tuple[Any, bool]] = {}

    def id_of(self, recipe: Recipe) -> str:
        """sha256 of `text_of`."""
        return hashlib.sha256(self.text_of(recipe).encode()).hexdigest()

    def text_of(self, recipe: Recipe) -> str:
        """JSON with sorted keys, put together from the parts."""
        one = self._one
        scheduler = one(recipe.scheduler, "schedulers") if recipe.scheduler else "null"
        return (
            f'{{"algorithms":{self._many(recipe.algorithms, "algorithms")},'
            f'"callbacks":{self._kept(recipe.callbacks, self._callbacks)},'
            f'"data":{{"eval":{self._evaluators(recipe.data.eval)},"train":{one(recipe.data.train, "datasets")}}},'
            f'"model":{one(recipe.model, "models")},"optimizer":{one(recipe.optimizer, "optimizers")},'
            f'"scheduler":{scheduler},"seed":{recipe.seed},"trainer":{self._trainer(recipe)}}}'
        )

    def _evaluators(self, evaluators: Mapping[str, Component]) -> str:
        """One that is called eval is spelled as before there were labels."""
        return (
            self._one(evaluators["eval"], "datasets")
            if [*evaluators] == ["eval"]
            else self._many(evaluators, "datasets")
        )

    def _kept(self, value: Any, spelling: Callable[[Any], str]) -> str:
        """What a value is spelled like, worked out once for each object."""
        known = self._spelled.get(id(value))
        if known is None:
            if len(self._spelled) > MAX_KEPT:
                self._spelled.clear()
            known = self._spelled[id(value)] = (value, spelling(value))
        return known[1]

    def _callbacks(self, callbacks: Mapping[str, Component]) -> str:
        return self._many({k: c for k, c in callbacks.items() if _changes_training(c)}, "callbacks")

    def _many(self, components: Mapping[str, Component], kind: str) -> str:
        return "{" + ",".join(f"{_json(k)}:{self._one(components[k], kind)}" for k in sorted(components)) + "}"

    def _one(self, component: Component, kind: str) -> str:
        return self._kept(component, lambda c: spell(c, kind))

    def _trainer(self, recipe: Recipe) -> str:
        if recipe.trainer.microbatch == "auto" and not self._is_exact(recipe):
            return spell_trainer(recipe.trainer, "auto")
        return self._kept(recipe.trainer, spell_trainer)

    def _is_exact(self, recipe: Recipe) -> bool:
        """Whether a batch in parts gives the same gradient as the batch in one."""
        known = self._exact.get(id(recipe.model))
        if known is None:
            known = self._exact[id(recipe.model)] = (recipe.model, _without_batch_statistics(recipe.model))
        return known[1] and all(_exact_method(method) for method in recipe.algorithms.values())


def spell_trainer(trainer: TrainerSettings, mode: str | None = None) -> str:
    """The trainer as it enters the id: without checkpoints; a microbatch where it is a number or `mode` is given.

    What is off leaves the id as it was before there was such a key.
    """
    parts: dict[str, Any] = {
        "eval_interval": _texts(trainer.eval_interval),
        "max_duration": str(trainer.max_duration),
        "precision": trainer.precision,
        "ssr": _plain(trainer.ssr),
    }
    if trainer.eval_subset_num_batches is not None:
        parts["eval_subset_num_batches"] = trainer.eval_subset_num_batches
    if trainer.compile:
        parts["compile"] = "default" if trainer.compile is True else trainer.compile
    if trainer.activation_checkpointing:
        parts["activation_checkpointing"] = trainer.activation_checkpointing
    microbatch = trainer.microbatch if isinstance(trainer.microbatch, int) else mode
    return _json(parts if microbatch is None else {**parts, "microbatch": microbatch})


def _texts(value: Any) -> Any:
    return {key: str(inner) for key, inner in value.items()} if isinstance(value, Mapping) else str(value)


def spell(component: Component, kind: str) -> str:
    """A component as it enters the id: name, settings and, of a plug-in, its version."""
    if plugins.is_import_path(component.name):
        return _json({"name": component.name, "settings": _plain(component.settings)})
    cls: Any = plugins.load(kind, component.name)
    paths = _path_settings(cls)
    settings = {key: _content(value) if key in paths else value for key, value in component.settings.items()}
    return _json({"name": component.name, "settings": _plain(settings), "version": cls.version})


@functools.cache
def _path_settings(cls: Any) -> frozenset[str]:
    return frozenset(key for key, hint in field_hints(cls).items() if Path in alternatives(hint))


def _content(value: Any) -> Any:
    if value is None:
        return None
    path = Path(value)
    if path.is_file():
        return {"sha256": _sha256(path)}
    if path.is_dir():
        return {"sha256": {str(p.relative_to(path)): _sha256(p) for p in sorted(path.rglob("*")) if p.is_file()}}
    raise UsageError(f"there is no file {path}; its content is part of the trial's id")


def _sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _changes_training(callback: Component) -> bool:
    if plugins.is_import_path(callback.name):
        return True  # it may: what it declares is known only where it runs
    return bool(getattr(plugins.load("callbacks", callback.name), "changes_training", False))


def _without_batch_statistics(model: Component) -> bool:
    if plugins.is_import_path(model.name):
        return False
    return "batchnorm" not in plugins.build("models", model.name, model.settings).capabilities()


def _exact_method(method: Component) -> bool:
    if plugins.is_import_path(method.name):
        return False
    return bool(getattr(plugins.load("algorithms", method.name), "exact_under_microbatching", True))


def _plain(value: Any) -> Any:
    """-0.0 is 0.0; all else stays."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
