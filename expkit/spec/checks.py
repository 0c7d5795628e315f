"""What must hold between the parts of a recipe: methods that exclude each other, methods that lack what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from expkit import plugins
from expkit.errors import unknown
from expkit.spec.draft import Draft
from expkit.spec.merge import find
from expkit.spec.recipe import Component, Recipe
from expkit.spec.tree import Map, Mark, Problems

_WATCHED = ("monitor", "best_metric")
"""Settings of callbacks that name a series."""


def check_recipe(recipe: Recipe, draft: Draft, problems: Problems) -> None:
    """Problems between the parts; code of the user's own declares nothing before it runs and is not checked."""
    provided = capabilities([recipe.model, recipe.data.train])
    for one in recipe.algorithms.values():
        missing = requires(one) - provided if provided is not None else frozenset()
        if missing:
            problems.add(_at(draft, one), f"algorithms.{one.name}", lacks(one.label, missing, recipe))
    for one, other in combinations(recipe.algorithms.values(), 2):
        if exclude_each_other(one, other) and not {(one.name, other.name), (other.name, one.name)} & {*recipe.allow}:
            message = f"cannot be used together with {one.label}; allow: [[{one.name}, {other.name}]] lifts that"
            problems.add(_at(draft, other), f"algorithms.{other.name}", message)
    _check_labels(recipe, draft, problems)
    if recipe.trainer.precision == "amp_fp16" and (why := _no_fp16(recipe)):
        node = find(draft.root, ["trainer", "precision"])
        problems.add(node.mark if node else draft.root.mark, "trainer.precision", f"{why}; use amp_bf16 or fp32")


def _check_labels(recipe: Recipe, draft: Draft, problems: Problems) -> None:
    """Whatever names an evaluator, or a series of one, names one that there is."""
    labels = [*recipe.data.eval]
    for key in ("eval_interval", "eval_subset_num_batches"):
        given = getattr(recipe.trainer, key)
        for label in given if isinstance(given, Mapping) else ():
            if label not in labels:
                _complain(draft, ["trainer", key, label], unknown("evaluator", label, labels), problems)
    named = {("metrics", "primary", "name"): recipe.metrics.primary.name}
    for callback in recipe.callbacks.values():
        named |= {("callbacks", callback.name, key): str(callback.settings.get(key)) for key in _WATCHED}
    for path, series in named.items():
        label, slash, _ = series.partition("/")
        if slash and label not in (*labels, "train") and not _may_record(recipe, f"{label}/"):
            _complain(draft, path, f"{series}: {unknown('evaluator', label, labels)}", problems)


def _may_record(recipe: Recipe, prefix: str) -> bool:
    """Whether a callback or method may record such series: it says so, or is code of the user's own."""
    kinds = (("callbacks", recipe.callbacks), ("algorithms", recipe.algorithms))
    for kind, components in kinds:
        for one in components.values():
            if plugins.is_import_path(one.name) or prefix in (plugins.load(kind, one.name).__doc__ or ""):
                return True
    return False


def _complain(draft: Draft, path: Sequence[str], message: str, problems: Problems) -> None:
    node = find(draft.root, path)
    problems.add(node.mark if node else draft.root.mark, ".".join(path), message)


def _no_fp16(recipe: Recipe) -> str | None:
    """Why amp_fp16 could not be trained with, as far as a file tells."""
    device = recipe.runtime.device.partition(":")[0]
    if device not in ("auto", "cuda", "gpu"):
        return f"amp_fp16 needs a CUDA device, but runtime.device is {device}"
    again = [m.label for m in recipe.algorithms.values() if _needs_closure(m)]
    return f"cannot be amp_fp16 with {again[0]}, which needs gradients more than once a step" if again else None


def lacks(label: str, missing: Iterable[str], recipe: Recipe) -> str:
    """The sentence for a method that has nothing to work on."""
    words = ", ".join(sorted(missing))
    return (
        f"{label} requires {words}, which model {recipe.model.label} and data {recipe.data.train.label} do not provide"
    )


def capabilities(components: Iterable[Component]) -> frozenset[str] | None:
    """What plug-ins provide together with their settings; None where one of them is the user's own code."""
    kinds = iter(("models", "datasets"))
    provided: frozenset[str] = frozenset()
    for one in components:
        kind = next(kinds)
        if plugins.is_import_path(one.name):
            return None
        provided |= plugins.build(kind, one.name, one.settings).capabilities()
    return provided


def requires(method: Component) -> frozenset[str]:
    """Capabilities that a method declares to need with its settings."""
    if plugins.is_import_path(method.name):
        return frozenset()
    needs: frozenset[str] = plugins.build("algorithms", method.name, method.settings).needs()  # type: ignore[attr-defined]
    return needs


def declared_conflicts(methods: Sequence[Component]) -> list[tuple[str, str]]:
    """Pairs of method names of which either declares a conflict with the other."""
    named = {method.name: method for method in methods}
    return [(a, b) for a, b in combinations(named, 2) if exclude_each_other(named[a], named[b])]


def exclude_each_other(one: Component, other: Component) -> bool:
    """Whether either declares a conflict with the other."""
    return other.name in _declared(one, "conflicts") or one.name in _declared(other, "conflicts")


def _declared(method: Component, what: str) -> frozenset[str]:
    if plugins.is_import_path(method.name):
        return frozenset()
    declared: frozenset[str] = getattr(plugins.load("algorithms", method.name), what, frozenset())
    return declared


def _needs_closure(method: Component) -> bool:
    if plugins.is_import_path(method.name):
        return False
    return bool(getattr(plugins.load("algorithms", method.name), "needs_closure", False))


def _at(draft: Draft, method: Component) -> Mark:
    node = find(draft.root, ["algorithms"])
    entry = node.items.get(method.name) if isinstance(node, Map) else None
    return entry.mark if entry else draft.root.mark
