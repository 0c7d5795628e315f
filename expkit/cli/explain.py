"""`expkit explain`: a plug-in with its settings and declarations, a key of a recipe or sweep file, a statistic."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit.cli.completion import explained
from expkit.cli.options import Json, give

if TYPE_CHECKING:
    from expkit.analysis.glossary.entry import Statistic
    from expkit.plugins import Plugin

DECLARATIONS = ("paper", "requires", "conflicts", "before", "after", "provides", "changes_targets", "changes_batch",
                "changes_training", "needs_closure", "exact_under_microbatching", "resumable", "version")  # fmt: skip
_PARTS_OF_EXPKIT = ("sections", "executors", "loggers")
"""Kinds that no recipe names: where a key has the same name, the key is meant."""
_UNSAID: tuple[Any, ...] = (None, "", False, frozenset())


def explain(
    name: Annotated[
        str,
        typer.Argument(
            help="A plug-in (ema, models/resnet), a kind (schedulers), a key (ablate.design), a statistic of a report "
            "(rho, Shapley), recipe, sweep or events.",
            autocompletion=explained,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Explain a plug-in or a key: what it does, its settings, what it declares; or a statistic: its formula.

    Example: expkit explain ema
    """
    found = explanation(name)
    if as_json:
        give(found)
    else:
        print(text_of(found))
        for kind, one in _of_the_same_name(name) if found["kind"] not in ("statistic", "guard") else ():
            print(f"\nIn a report: expkit explain {kind}/{one}")


def explanation(name: str) -> dict[str, Any]:
    """What is known about a name, as one JSON value; UsageError with the nearest name where nothing is."""
    from expkit import plugins
    from expkit.analysis.glossary import find
    from expkit.errors import UsageError, unknown
    from expkit.spec import keys

    if name.startswith("py:"):
        raise UsageError(f"{name} is your own: its settings and what they mean stand in its source; it is not imported")
    if name == "events":
        return of_events()
    kinds = [kind for kind in plugins.KINDS if name.split("/")[-1] in plugins.names(kind)]
    if "/" in name:
        kinds = [kind for kind in kinds if kind == name.split("/")[0]]
    key = keys.explain(name)
    if kinds and not (key and kinds[0] in _PARTS_OF_EXPKIT):
        return of_plugin(kinds[0], name.split("/")[-1])
    if key:
        return key
    if statistics := find.find(name):
        return of_statistics(statistics)
    if name in find.KINDS:
        text = "\n".join(f"{one.name}: {one.text}" for one in find.KINDS[name])
        return {"name": name, "kind": "numbers of a report", "text": text, "settings": [], "declares": {}}
    if name in plugins.KINDS:
        every = {n: plugins.summary(name, n) for n in plugins.names(name)}
        text = "\n".join(f"{n}: {sentence}" for n, sentence in every.items())
        return {"name": name, "kind": "kind of plug-in", "text": text, "settings": [], "declares": {}}
    known = {n for kind in plugins.KINDS for n in plugins.names(kind)} | {*keys.names(), *find.names()}
    hint = "expkit list, expkit list statistics, expkit explain recipe, expkit explain sweep"
    raise UsageError(unknown("plug-in, key or statistic", name, known, hint=hint))


def _of_the_same_name(name: str) -> list[tuple[str, str]]:
    """(kind, name as one types it) of the numbers of a report that a plug-in or a key hides."""
    from expkit.analysis.glossary.find import find, typed_name

    return [(kind, typed_name(one.name)) for kind, one in find(name)]


def of_statistics(found: Sequence[tuple[str, Statistic]]) -> dict[str, Any]:
    """A number of the report, and what else has its name."""
    from expkit.analysis.glossary.find import typed_name

    (kind, one), *others = found
    text = f"{one.text}\n\n    {one.formula}"
    text += f"\n\nSource: {one.source}." if one.source else ""
    text += f"\nIn summary.json: {', '.join(one.where)}." if one.where else ""
    text += "".join(f"\nAlso: expkit explain {k}/{typed_name(other.name)}" for k, other in others)
    return {"name": one.name, "kind": {"statistics": "statistic", "guards": "guard"}[kind], "text": text,
            "formula": one.formula, "source": one.source, "where": list(one.where), "settings": [],
            "declares": {}}  # fmt: skip


def of_events() -> dict[str, Any]:
    """The map of all events; a method named after one is called there."""
    import inspect

    from expkit.trainer import event

    text = "Name a method of your Algorithm or Callback after an event in lower case, (self, state, logger).\n\n"
    return {"name": "events", "kind": "map", "text": text + inspect.cleandoc(event.__doc__ or ""), "settings": [],
            "declares": {}}  # fmt: skip


def of_plugin(kind: str, name: str) -> dict[str, Any]:
    """A plug-in as a JSON value: its text, its settings, its declarations where they say anything."""
    import inspect

    from expkit import plugins

    cls = plugins.load(kind, name)
    return {
        "name": name,
        "kind": kind,
        "text": inspect.cleandoc(cls.__doc__ or ""),
        "settings": [
            {"name": s.name, "type": s.type, "default": _default(s.default), "text": s.doc}
            for s in plugins.settings(cls)
        ],
        "declares": declared(cls),
    }


def declared(cls: type[Plugin]) -> dict[str, Any]:
    """The class-level declarations that are set, sets as sorted lists."""
    values = {key: getattr(cls, key, None) for key in DECLARATIONS}
    return {k: sorted(v) if isinstance(v, set | frozenset) else v for k, v in values.items() if v not in _UNSAID}


def text_of(found: dict[str, Any]) -> str:
    """The explanation as plain text, settings as a recipe would have them."""
    lines = [f"{found['name']} ({found['kind']})", *(["", found["text"]] if found["text"] else [])]
    if found.get("default") and not found["settings"]:
        lines.append(f"Default: {found['default']}")
    if found["settings"]:
        lines += ["", "Settings:"]
    for s in found["settings"]:
        lines += [f"  {s['name']}: {s['default']}    # {s['type']}".removesuffix("    # "), f"      {s['text']}"]
    if found["declares"]:
        lines += ["", "Declares:"]
    for key, value in found["declares"].items():
        lines.append(f"  {key}: {', '.join(value) if isinstance(value, tuple | type([])) else _default(value)}")
    return "\n".join(lines)


def _default(value: Any) -> str:
    if value is dataclasses.MISSING:
        return "(required)"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
