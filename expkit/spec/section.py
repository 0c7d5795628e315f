"""One top-level key of a recipe, checked: a component, a map of components, a record or a plain value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from expkit.errors import unknown
from expkit.spec.components import component, single
from expkit.spec.convert import BAD, build, checked, core_value
from expkit.spec.hints import field_hints
from expkit.spec.merge import EVALUATORS, NESTED, SINGLE, labelled, one_key
from expkit.spec.recipe import Component, Data, Metrics, Recipe, Runtime, TrainerSettings
from expkit.spec.tree import Map, Node, Problems, Scalar, Seq, join, kind
from expkit.spec.trust import Trust
from expkit.spec.words import NULL

RECORDS: dict[str, type] = {"trainer": TrainerSettings, "metrics": Metrics, "runtime": Runtime}
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
NO_MAP = "must be a map of {key} and their settings, but got {got}; write {{}} for none"


def typed(key: str, node: Node, trust: Trust, problems: Problems) -> Any:
    """The value of a key; None where it is wrong, or null where that is allowed."""
    if key in SINGLE:
        absent = isinstance(node, Scalar) and node.style != "quoted" and node.text in NULL
        return None if absent and key == "scheduler" else single(node, SINGLE[key], key, trust, problems)
    if key == "data":
        return _data(node, trust, problems)
    if key == "callbacks":
        return _many(node, trust, problems)
    if key == "allow":
        return read_pairs(node, key, problems)
    value = build(RECORDS[key], node, key, problems) if key in RECORDS else _plain(key, node, problems)
    return None if value is BAD else value


def _data(node: Node, trust: Trust, problems: Problems) -> Data | None:
    if not isinstance(node, Map):
        problems.add(node.mark, "data", f"must be a map of train and eval, but got {kind(node)}")
        return None
    for key in node.items.keys() - {"train", "eval"}:
        problems.add(node.items[key].mark, join("data", key), unknown("key", key, ("train", "eval")))
    for key in ("train", "eval"):
        if key not in node.items:
            problems.add(node.mark, join("data", key), "is required")
    given, evaluators = node.get("train"), node.get("eval")
    train = single(given, NESTED["data"], "data.train", trust, problems) if given else None
    evaluation = _evaluators(evaluators, trust, problems) if evaluators else {}
    return Data(train, evaluation) if train and evaluation else None


def _evaluators(node: Node, trust: Trust, problems: Problems) -> dict[str, Component]:
    """By label, sorted; one component without a label is called eval."""
    path = join(*EVALUATORS)
    if not isinstance(node, Map) or not labelled(node):
        alone = single(node, NESTED["data"], path, trust, problems)
        return {"eval": alone} if alone else {}
    found: dict[str, Component] = {}
    for label, entry in sorted(node.items.items()):
        if not _LABEL.fullmatch(label):
            wrong = f"the label of an evaluator is made of letters, digits, _ and -, but got {label!r}"
            problems.add(entry.mark, join(path, label), wrong)
        if label == "train":
            taken = "an evaluator cannot be called train, as metrics of the training data are"
            problems.add(entry.mark, join(path, label), taken)
        made = single(one_key(entry.node), NESTED["data"], join(path, label), trust, problems)
        found |= {label: made} if made else {}
    return found if len(found) == len(node.items) else {}


def _many(node: Node, trust: Trust, problems: Problems) -> dict[str, Component]:
    if not isinstance(node, Map):
        problems.add(node.mark, "callbacks", NO_MAP.format(key="callbacks", got=kind(node)))
        return {}
    made = [
        component(name, e.mark, e.node, "callbacks", join("callbacks", name), trust, problems)
        for name, e in node.items.items()
    ]
    return by_label([m for m in made if m], node, problems, "callbacks")


def by_label(
    made: Iterable[Component], node: Node, problems: Problems, path: str = "algorithms"
) -> dict[str, Component]:
    """Components sorted by label; two of one label are a problem."""
    found: dict[str, Component] = {}
    for one in sorted(made, key=lambda c: c.label):
        if one.label in found:
            twice = f"{found[one.label].name} and {one.name} are both called {one.label!r}; name one with `as:`"
            problems.add(node.mark, path, twice)
        found[one.label] = one
    return found


def read_pairs(node: Node, path: str, problems: Problems) -> tuple[tuple[str, str], ...]:
    """Pairs of names, from `[[mixup, cutmix]]`."""
    found = []
    items: Sequence[Node] = node.items if isinstance(node, Seq) else (node,)
    for i, item in enumerate(items):
        names = [n.text for n in item.items if isinstance(n, Scalar) and n.text] if isinstance(item, Seq) else []
        if isinstance(item, Seq) and len(names) == len(item.items) == 2 and names[0] != names[1]:
            found.append((names[0], names[1]))
        else:
            message = f"must be a list of pairs of methods such as [[mixup, cutmix]], but got {kind(item)}"
            problems.add(item.mark, join(path, i) if isinstance(node, Seq) else path, message)
    return tuple(found)


def _plain(key: str, node: Node, problems: Problems) -> Any:
    return checked(node, field_hints(Recipe)[key], key, problems)


def check_vars(node: Node, problems: Problems) -> None:
    """Variables may hold anything, under names."""
    if not isinstance(node, Map):
        problems.add(node.mark, "vars", f"must be a map of names and values, but got {kind(node)}")
        return
    core_value(node, "vars", problems)
