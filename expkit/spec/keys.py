"""What each key of a recipe or sweep means, for `expkit explain`.

Taken from under the fields; written here only where a key is grammar and has no field of its own.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, get_type_hints

from expkit import plugins
from expkit.spec.recipe import Recipe
from expkit.spec.sweep import Budget, Order, Report, Run
from expkit.spec.sweep_keys import KEYS

REQUIRED = frozenset({"version", "name", "model", "data.train", "data.eval", "optimizer", "recipe"})
"""Keys of the grammar that must be written, there or in what the file extends."""
GRAMMAR = {
    "version": "Version of the file's grammar; there is 1.",
    "name": "What the recipe or sweep is called in folders and reports; nothing of it is in a trial's id.",
    "extends": "A file, or a list of files, that this one builds on; relative to this file, later ones win, maps merge "
    "by key, lists replace, and a component named differently replaces the whole component.",
    "vars": "Values to be used elsewhere in the file as ${vars.name}.",
    "presets": "Named sets of dotted overrides, applied by --preset.",
    "model": "The net: one plug-in of `expkit list models`, or py:package.module:name.",
    "data.train": "What is trained on: one plug-in of `expkit list datasets`, or py:package.module:name.",
    "data.eval": "What is evaluated on; the validation split, so that test stays unopened. One component, whose series "
    "are eval/accuracy and so on; or several by labels of your own, {val: {austen: {split: validation}}, rotated: "
    "{...}}, whose series are val/accuracy and rotated/accuracy.",
    "optimizer": "One plug-in of `expkit list optimizers`.",
    "scheduler": "One plug-in of `expkit list schedulers`; without it the learning rate is constant.",
    "algorithms": "Methods that are on, by name; their order means nothing, the engine orders them.",
    "callbacks": "Observers that are on, by name.",
    "metrics.target": "The value of the primary metric to be reached: a number; or {pilot: {seeds: 5}}, from baseline "
    "runs on seeds of their own; or null, then there is no time to target.",
    "seed": "Seed of the trial: initial weights, data order, dropout and each method draw from streams of their own.",
    "recipe": "The recipe that the sweep varies, relative to the sweep file, or its bare name.",
    "set": "Dotted overrides of the recipe for every trial of the sweep.",
    "ablate.baseline": "The set of methods that every effect is measured against; an empty list is the plain recipe.",
    "ablate.always": "Methods that are on in every arm of the design.",
    "ablate.candidates": "Methods that the design switches on and off, with settings; a list in a scalar setting gives "
    "levels, each a method of its own that excludes its sisters.",
    "ablate.design": "Which sets of candidates are tried: full is every one; leave_one_out all together and all but "
    "one; add_one_in none and each alone; pairwise at most two; {max_size: 3} at most three; {fractional: {resolution: "
    "5}} a part in which main effects and pairs are told apart (4: main effects only, 3: neither), for 10 candidates "
    "at most, whose letters go by their order in the file, in as few sets as do or in at least as many as `sets` says; "
    "{shapley: {permutations: 16}} what stands along so many "
    "random orders of switching on; a list of these is their union. A baseline that is not among them is added and "
    "counted.",
    "ablate.constraints": "Rules that remove sets: {conflicts: [a, b], because: ...} or {requires: {a: capability}}; "
    "methods' own declarations are added to them; {allow: [[a, b]], because: ...} lifts a conflict that a method "
    "declares.",
    "ablate.allow": "Pairs of methods that may be on together although one of them declares a conflict: "
    "[[mixup, cutmix]], or [{pair: [mixup, cutmix], because: ...}]; `plan` says how many sets that keeps.",
    "parameters": "Dotted path of the recipe -> list of values; every arm is run at every point. A value may be a "
    "whole component, optimizer: [{sgd: {lr: 0.5}}, {adamw: {lr: 1e-3}}], whose inner lists are values; a path inside "
    "a component, optimizer.sgd.lr, is tried only where that component is.",
    "zip": "Values that change together: [{path.a: [1, 2], path.b: [x, y]}] is two points, not four; the lists of a "
    "group have one length.",
    "budgets": "Ratios of the recipe's length at which every arm is run, its schedules scaled along: {ssr: [0.25, 0.5, "
    "1.0]}. No parameter, but the x-axis of the curves of equal quality; pilots run at the longest.",
    "grids": "Several grids whose union is run: [{parameters: ..., candidates: ..., zip: ...}]; what the sweep itself "
    "says of them holds in each, a trial that several ask for is run once.",
    "include": "Arms run besides, whatever design and exclude say: [{algorithms: {ema: {}}, parameters: {path: value}, "
    "seeds: [1]}]; exactly these methods, at the recipe's own values where no parameter is given, with their baseline.",
    "exclude": "Conditions under which a configuration is not run: {when: \"has('ema') and optimizer.sgd.lr > 0.5\", "
    "because: ...}.",
    "seeds": "How many seeds, or which: 5, [17, 18] or {count: 5, base: 17}; arms with equal seeds are pairs.",
}
_TRUST = 'In expkit.toml beside your files: trust = ["mylab.*"] lets trials import these packages, for py: components.'
_FILES = {
    "recipe": "A recipe says how one net is trained.",
    "sweep": "A sweep says which methods, values and seeds of a recipe are tried.",
    "expkit.toml": _TRUST,
    "trust": _TRUST,
}
_GRAMMAR = object()
_RECORDS: dict[str, type] = {"order": Order, "budget": Budget, "run": Run, "report": Report}


def text(key: str) -> str:
    """The sentence that explains a key."""
    return _all()[key][2]


def names() -> list[str]:
    """All keys that can be explained, dotted."""
    return sorted(_all())


def explain(key: str) -> dict[str, Any] | None:
    """A key, or a file with all its keys, as `expkit explain --json` gives it; None for what there is not.

    The last part of a key will do where no other key ends in it: `constraints` is ablate.constraints.
    """
    if key in _FILES and key not in _all():
        return _page(key, "file", _FILES[key], "", _of_file(key))
    ending = [k for k in _all() if k.endswith(f".{key}")]
    if key not in _all() and len(ending) == 1:
        key = ending[0]
    below = sorted(k for k in _all() if k.startswith(f"{key}."))
    if key not in _all() and not below:
        return None
    kind, default, text = _all().get(key) or ("map", _GRAMMAR, _of_map(key))
    if key in _FILES:
        text, below = f"{text} {_FILES[key]} Its keys:", _of_file(key)
    return _page(key, f"key, {kind}" if kind else "key", text, _text(key, default), below, f"{key}.")


def _page(name: str, kind: str, text: str, default: str, keys: list[str], prefix: str = "") -> dict[str, Any]:
    settings = [{"name": k.removeprefix(prefix), "type": _all()[k][0], "default": _text(k, _all()[k][1]),
                 "text": _all()[k][2]} for k in keys]  # fmt: skip
    return {"name": name, "kind": kind, "text": text, "default": default, "settings": settings, "declares": {}}


def _of_file(name: str) -> list[str]:
    """All keys of a recipe or a sweep, dotted."""
    if name not in ("recipe", "sweep"):
        return []
    of_sweep = {key for key in _all() if key.split(".")[0] in KEYS}
    shared = {"version", "name", "extends"}
    return sorted(of_sweep if name == "sweep" else _all().keys() - of_sweep | shared)


def _text(key: str, value: Any) -> str:
    """A default as a file would have it; a key of the grammar has none, and is required or not."""
    if value is _GRAMMAR and key not in REQUIRED:
        return "(optional)"
    if value is dataclasses.MISSING or value is _GRAMMAR:
        return "(required)"
    words = {None: "null", True: "true", False: "false", (): "[]"}
    return words[value] if value is None or isinstance(value, bool) or value == () else str(value)


@functools.cache
def _all() -> dict[str, tuple[str, Any, str]]:
    found = {key: ("", _GRAMMAR, text) for key, text in GRAMMAR.items()}
    found |= dict(_fields(Recipe, ""))
    for key, record in _RECORDS.items():
        found |= dict(_fields(record, f"{key}."))
    return found


def _fields(cls: type, prefix: str) -> Iterator[tuple[str, tuple[str, Any, str]]]:
    hints, docs = get_type_hints(cls, include_extras=True), plugins.field_docs(cls)
    for f in dataclasses.fields(cls):
        key, inner = prefix + f.name, _record_in(hints[f.name])
        if inner:
            form = "" if hints[f.name] is inner else f"{inner.__name__.lower()}."  # metrics.target: {pilot: ...}
            yield from _fields(inner, f"{key}.{form}")
        elif key not in GRAMMAR and f.name in docs:
            default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            yield key, (plugins.type_text(hints[f.name]), default, docs[f.name])


def _of_map(key: str) -> str:
    """What the record behind `trainer.checkpoint` says of itself."""
    first, *rest = key.split(".")
    record = _RECORDS.get(first) or _record_in(get_type_hints(Recipe).get(first))
    for part in rest:
        record = _record_in(get_type_hints(record).get(part)) if record else None
    return " ".join(((record.__doc__ if record else None) or "").split())


def _record_in(hint: Any) -> type | None:
    """The record behind a field such as `Checkpoint` or `float | Pilot | None`, None where the field is a value."""
    own = [t for t in (hint, *getattr(hint, "__args__", ())) if dataclasses.is_dataclass(t)]
    records = [
        t for t in own if isinstance(t, type) and t.__module__.startswith("expkit.spec") and t.__name__ != "Component"
    ]
    return records[0] if records else None
