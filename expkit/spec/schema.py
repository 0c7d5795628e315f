"""JSON Schema (draft-07) of recipe and sweep files, for editors: from the dataclasses and every plug-in's settings.

It accepts what the loader accepts, in both forms of a component, with `${...}` anywhere and `py:` names; what depends
on other files (a key that comes from `extends`, a setting that the recipe gives) it does not ask for.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from expkit import plugins
from expkit.duration import Time
from expkit.spec import keys
from expkit.spec.hints import alternatives, field_hints, is_kind, is_open, snake_case
from expkit.spec.merge import MANY, NESTED, SINGLE
from expkit.spec.recipe import Metrics, Natural, Runtime, TrainerSettings
from expkit.spec.seeds import Counted
from expkit.spec.sweep import Budget, Order, Report, Run
from expkit.spec.sweep_keys import DESIGNS, NUMBERED

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
_REFERENCE = {"type": "string", "pattern": r"\$\{"}
_TEXT: Schema = {"type": ["string", "number", "boolean"]}
_DURATION: Schema = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?(ep|ba|sp|tok|iter|dur|sec)$|^([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
}
_PLAIN: dict[Any, Schema] = {
    bool: {"anyOf": [{"type": "boolean"}, {"enum": ["on", "off", "yes", "no"]}]},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: _TEXT,
    Path: {"type": "string"},
    Time: _DURATION,
    type(None): {"type": "null"},
}
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
           "multiple_of": "multipleOf"}  # fmt: skip
_OF_LISTS = {"min_length": "minItems", "max_length": "maxItems"}
_DATASET: Schema = {"$ref": "#/$defs/dataset"}
_KINDS = (*SINGLE.values(), *NESTED.values(), *MANY.values())


def recipe_schema() -> Schema:
    """What a recipe file may hold."""
    properties: Schema = {
        "version": _said("version", {"const": 1}),
        "name": _said("name", _TEXT),
        "extends": _extends(),
        "vars": _said("vars", {"type": "object"}),
        **{key: _said(key, _component(kind)) for key, kind in SINGLE.items()},
        "data": _object(
            {
                "train": _said("data.train", {"anyOf": [_DATASET]}),
                "eval": _said("data.eval", {"anyOf": [_DATASET, _by_label(_DATASET)]}),
            }
        ),
        **{key: _said(key, _components(kind)) for key, kind in MANY.items()},
        "allow": _said("allow", _pairs()),
        "trainer": _record(TrainerSettings),
        "metrics": _record(Metrics),
        "seed": _said("seed", _value(int)),
        "runtime": _record(Runtime),
        "presets": _said("presets", {"type": "object", "additionalProperties": {"type": "object"}}),
    }
    properties["scheduler"]["anyOf"].append({"type": "null"})
    whole = {"required": ["model", "data", "optimizer", "trainer", "metrics"]}
    return {
        **_head("recipe", "How one net is trained; run it with `expkit run`, vary it with `expkit sweep`."),
        **_object(properties),
        "required": ["version", "name"],
        "anyOf": [{"required": ["extends"]}, whole],
        "$defs": {"dataset": _component("datasets"), **_settings(_KINDS)},
    }


def sweep_schema() -> Schema:
    """What a sweep file may hold."""
    lists = {"type": "object", "additionalProperties": _values()}
    candidates = _candidates()
    grid = _object({"candidates": candidates, "parameters": lists, "zip": {"type": "array", "items": lists}})
    properties: Schema = {
        "version": _said("version", {"const": 1}),
        "name": _said("name", _TEXT),
        "extends": _extends(),
        "recipe": _said("recipe", {"type": "string"}),
        "set": _said("set", {"type": "object"}),
        "ablate": _object({
            "baseline": _said("ablate.baseline", _names()),
            "always": _said("ablate.always", _names()),
            "candidates": _said("ablate.candidates", candidates),
            "design": _said("ablate.design", _design()),
            "constraints": _said("ablate.constraints", {"type": "array", "items": _constraint()}),
            "allow": _said("ablate.allow", {"type": "array", "items": {"anyOf": [_pair(), _reasoned(pair=_pair())]}}),
        }),
        "parameters": _said("parameters", lists),
        "zip": _said("zip", {"type": "array", "items": lists}),
        "budgets": _said("budgets", {**_object({"ssr": _values()}), "required": ["ssr"]}),
        "grids": _said("grids", {"type": "array", "items": grid}),
        "include": _said("include", {"type": "array", "items": _included()}),
        "exclude": _said("exclude", {"type": "array", "items": _reasoned(when={"type": "string"})}),
        "seeds": _said("seeds", _seeds()),
        **{key: _record(record) for key, record in
           (("order", Order), ("budget", Budget), ("run", Run), ("report", Report))},
    }  # fmt: skip
    return {
        **_head("sweep", "Which methods, parameters and seeds of a recipe are tried; run it with `expkit sweep`."),
        **_object(properties),
        "required": ["version", "name"],
        "anyOf": [{"required": ["extends"]}, {"required": ["recipe"]}],
        "$defs": _settings(("algorithms",), levels=True),
    }


def _by_label(one: Schema) -> Schema:
    labels = {"pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]*$", "not": {"const": "train"}}
    return {"type": "object", "propertyNames": labels, "additionalProperties": one, "minProperties": 1}


def _head(what: str, description: str) -> Schema:
    return {"$schema": DRAFT, "title": f"expkit {what}", "description": description}


def _said(key: str, schema: Schema) -> Schema:
    return {"description": keys.text(key), **schema}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _extends() -> Schema:
    files = {"type": "array", "items": {"type": "string"}}
    return _said("extends", {"anyOf": [{"type": "string"}, files]})


def _names() -> Schema:
    return {"type": "array", "items": {"type": "string"}}


def _pair() -> Schema:
    return {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}


def _pairs() -> Schema:
    return {"type": "array", "items": _pair()}


def _reasoned(**properties: Schema) -> Schema:
    """A map with these keys, and why."""
    return {**_object({**properties, "because": _TEXT}), "required": list(properties)}


def _design() -> Schema:
    plain: Schema = {"enum": [name for name in DESIGNS if name not in NUMBERED]}
    one: Schema = {"anyOf": [plain, *(_numbered(name, key, hint) for name, (key, hint, _) in NUMBERED.items())]}
    return {"anyOf": [*one["anyOf"], {"type": "array", "items": one, "minItems": 1}]}


def _numbered(name: str, key: str, hint: Any) -> Schema:
    """A design with its number: {max_size: 2}, {fractional: {resolution: 5}}."""
    more = {"sets": _value(Natural)} if name == "fractional" else {}
    inside = {**_object({key: _value(hint), **more}), "required": [key]} if key else _value(hint)
    return {**_object({name: inside}), "required": [name]}


def _constraint() -> Schema:
    needs = {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, _names()]}}
    return {"anyOf": [_reasoned(conflicts=_names()), _reasoned(requires=needs), _reasoned(allow=_pairs())]}


def _included() -> Schema:
    return _object({
        "algorithms": _components("algorithms"), "parameters": {"type": "object"}, "seeds": _seeds(),
    })  # fmt: skip


def _seeds() -> Schema:
    listed = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
    return {"anyOf": [{"type": "integer", "minimum": 1}, listed, _record(Counted), _REFERENCE]}


def _values() -> Schema:
    """The values of one parameter: a list, or a map that says so."""
    items = {"type": "array", "minItems": 1}
    forms = [{**_object({"values": items}), "required": ["values"]}, {**_object({"value": {}}), "required": ["value"]}]
    return {"anyOf": [items, *forms]}


def _candidates() -> Schema:
    return {"anyOf": [_components("algorithms"), _names()]}


def _component(kind: str) -> Schema:
    """One component: `{resnet: {depth: 8}}` or `{name: resnet, depth: 8}`."""
    one_key = {**_components(kind), "minProperties": 1, "maxProperties": 1}
    named: list[Schema] = []
    for name in plugins.names(kind):
        own = _plugin_settings(kind, name)["properties"]
        named.append({**_object({"name": {"const": name}, **own}), "required": ["name"]})
    own_code = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^py:"}}, "required": ["name"]}
    return {"anyOf": [one_key, *named, own_code, _REFERENCE]}


def _components(kind: str) -> Schema:
    """A map of components by name; `py:` names may have any settings."""
    known = {name: {"$ref": f"#/$defs/{kind}.{name}"} for name in plugins.names(kind)}
    own_code = {"^py:": {"type": "object", "description": "Code of your own; allowed by expkit.toml."}}
    return {"type": "object", "properties": known, "patternProperties": own_code, "additionalProperties": False}


def _settings(kinds: Sequence[str], levels: bool = False) -> Schema:
    """`kind.name` -> the settings of each plug-in; with `levels` each may also list several values."""
    return {f"{kind}.{name}": _plugin_settings(kind, name, levels) for kind in kinds for name in plugins.names(kind)}


def _plugin_settings(kind: str, name: str, levels: bool = False) -> Schema:
    cls = plugins.load(kind, name)
    label = {"as": {"type": "string", "description": "What it is called in arms and reports."}}
    properties = {key: _levels(schema) if levels else schema for key, schema in _fields(cls).items()}
    return {"description": (inspect.getdoc(cls) or "").split("\n")[0], **_object({**properties, **label})}


def _levels(schema: Schema) -> Schema:
    """A setting of a candidate: a value, or several of them as levels."""
    said = {key: value for key, value in schema.items() if key in ("description", "default")}
    one = {key: value for key, value in schema.items() if key not in said}
    listed = {**_object({"values": {"type": "array"}}), "required": ["values"]}
    return {**said, "anyOf": [*one.get("anyOf", [one]), {"type": "array", "items": one}, listed]}


def _record(cls: type) -> Schema:
    return {"description": (inspect.getdoc(cls) or "").split("\n")[0], **_object(_fields(cls))}


def _fields(cls: Any) -> Schema:
    """Each field of a dataclass with its sentence, its type and its default."""
    docs, hints = plugins.field_docs(cls), field_hints(cls)
    found = {}
    for f in dataclasses.fields(cls):
        if f.init:
            made = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            said = {"description": docs[f.name]} if f.name in docs else {}
            found[f.name] = {**said, **_default(made), **_value(hints[f.name])}
    return found


def _default(value: Any) -> Schema:
    if value is dataclasses.MISSING or dataclasses.is_dataclass(value):
        return {"default": str(value)} if isinstance(value, Time) else {}
    return {"default": list(value) if isinstance(value, tuple | frozenset) else value}


def _value(hint: Any) -> Schema:
    """What may stand in a field of this type, references among it."""
    options = alternatives(hint)
    if any(is_open(option) for option in options):
        return {}
    named = len(options) > 1
    limits = _limits(hint)
    return {"anyOf": [*({**_option(o, named), **_fitting(limits, o)} for o in options), _REFERENCE]}


def _option(option: Any, named: bool) -> Schema:
    if option in _PLAIN:
        return _PLAIN[option]
    if get_origin(option) is Literal:
        return {"enum": list(get_args(option))}
    if dataclasses.is_dataclass(option) and isinstance(option, type):
        record, name = _record(option), snake_case(option.__name__)
        return {**_object({name: record}), "required": [name]} if named else record
    if is_kind(option, Mapping):
        return {"type": "object", "additionalProperties": _value((get_args(option) or (str, Any))[-1])}
    assert is_kind(option, Sequence, Set)
    args = [arg for arg in get_args(option) if arg is not Ellipsis]
    schema: Schema = {"type": "array", "items": {"anyOf": [_value(arg) for arg in args]} if args else {}}
    fixed = get_origin(option) is tuple and Ellipsis not in get_args(option) and args
    return {**schema, "minItems": len(args), "maxItems": len(args)} if fixed else schema


def _limits(hint: Any) -> dict[str, Any]:
    """Limits anywhere in a hint: `Annotated[int, ge=1] | None` has them inside."""
    found: dict[str, Any] = {}
    for info in getattr(hint, "__metadata__", ()):
        for limit in getattr(info, "metadata", [info]):
            found |= {
                key: getattr(limit, key) for key in (*_LIMITS, *_OF_LISTS) if getattr(limit, key, None) is not None
            }
    if not found and not hasattr(hint, "__metadata__"):
        for part in get_args(hint) if len(alternatives(hint)) > 1 else ():
            found |= _limits(part)
    return found


def _fitting(limits: Mapping[str, Any], option: Any) -> Schema:
    """Those limits that mean something for a type."""
    if option in (int, float):
        return {_LIMITS[key]: value for key, value in limits.items() if key in _LIMITS}
    if is_kind(option, Sequence, Set) and not isinstance(option, type(Literal)):
        return {_OF_LISTS[key]: value for key, value in limits.items() if key in _OF_LISTS}
    return {}
