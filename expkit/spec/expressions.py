"""Conditions of a sweep, `has('ema') and optimizer.sgd.lr > 0.5`: Python's grammar, walked by hand, nothing executed.

A path that a trial lacks is null. Comparisons with null are false, except with the word null itself, which asks for it.
Names that are no plain words are written `at('a.lambda.b')`.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from expkit.spec.tree import Mark, Problems, Scalar, fail, shown

MAX_TEXT = 1000
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False}
_FORMS = "it holds has('method'), paths such as optimizer.sgd.lr, at('odd.path'), values, comparisons, and, or, not"


@dataclass(frozen=True)
class Expression:
    """A condition that has been checked; `methods` and `paths` are what it asks about, with their places."""

    text: str
    mark: Mark
    tree: ast.expr = field(compare=False, repr=False)
    methods: dict[str, Mark]
    paths: dict[str, Mark]

    def holds(self, has: Callable[[str], bool], value: Callable[[str], Any]) -> bool:
        """Whether it is true of a trial that is asked for its methods and values."""
        return bool(self._eval(self.tree, has, value))

    def _eval(self, node: ast.expr, has: Callable[[str], bool], value: Callable[[str], Any]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.BoolOp(op=ast.And()):
                return all(self._eval(part, has, value) for part in node.values)
            case ast.BoolOp():
                return any(self._eval(part, has, value) for part in node.values)
            case ast.UnaryOp(op=ast.Not()):
                return not self._eval(node.operand, has, value)
            case ast.UnaryOp():
                return -self._eval(node.operand, has, value)
            case ast.Compare():
                return self._compare(node, has, value)
            case ast.List() | ast.Tuple():
                return [self._eval(part, has, value) for part in node.elts]
            case ast.Call():
                ask = has if _name(node.func) == "has" else value
                return ask(_argument(node))
            case ast.Name(id=name) if name in _CONSTANTS:
                return _CONSTANTS[name]
            case _:
                return value(_dotted(node))

    def _compare(self, node: ast.Compare, has: Callable[[str], bool], value: Callable[[str], Any]) -> bool:
        left = self._eval(node.left, has, value)
        asked = _is_null(node.left)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._eval(part, has, value)
            if not self._pair(op, left, right, asked or _is_null(part)):
                return False
            left, asked = right, _is_null(part)
        return True

    def _pair(self, op: ast.cmpop, left: Any, right: Any, asks_for_null: bool) -> bool:
        if (left is None or right is None) and not (asks_for_null and isinstance(op, ast.Eq | ast.NotEq)):
            return False
        if isinstance(left, bool) != isinstance(right, bool) and not isinstance(op, ast.In | ast.NotIn):
            return isinstance(op, ast.NotEq)  # true is never 1
        try:
            return _COMPARE[type(op)](left, right)
        except TypeError:
            raise fail(self.mark, "when", f"cannot compare {left!r} with {right!r} in {shown(self.text)}") from None


def parse(scalar: Scalar, path: str, problems: Problems) -> Expression | None:
    """The condition a scalar holds; None where it is none, with its place among the problems."""
    if len(scalar.text) > MAX_TEXT:
        problems.add(scalar.mark, path, f"a condition has at most {MAX_TEXT} characters")
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(scalar.text.strip(), mode="eval").body
        found = list(_asked(tree, scalar))
    except _NotAllowedError as e:
        problems.add(e.mark, path, f"{e} cannot stand in a condition; {_FORMS}")
        return None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        reason = getattr(e, "msg", None) or "cannot be read"
        problems.add(scalar.mark, path, f"{shown(scalar.text)} is no condition ({reason}); {_FORMS}")
        return None
    methods = {name: mark for kind, name, mark in found if kind == "has"}
    paths = {name: mark for kind, name, mark in found if kind == "path"}
    return Expression(scalar.text, scalar.mark, tree, methods, paths)


class _NotAllowedError(Exception):
    def __init__(self, node: ast.AST, mark: Mark) -> None:
        super().__init__(shown(ast.unparse(node)))
        self.mark = mark


def _asked(node: ast.expr, scalar: Scalar) -> Iterator[tuple[str, str, Mark]]:
    """What the tree asks about; refuses every form that is not listed here."""
    mark = _mark(node, scalar)
    match node:
        case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | str):
            return
        case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _asked(part, scalar)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            yield from _asked(part, scalar)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            return
        case ast.Compare(left=left, ops=ops, comparators=parts) if all(type(op) in _COMPARE for op in ops):
            if any(isinstance(op, ast.In | ast.NotIn) and not isinstance(p, ast.List | ast.Tuple)
                   for op, p in zip(ops, parts, strict=True)):  # fmt: skip
                raise _NotAllowedError(node, mark)
            for part in (left, *parts):
                yield from _asked(part, scalar)
        case ast.Call(func=ast.Name(id="has" | "at"), args=[ast.Constant(value=str(name))], keywords=[]):
            yield ("has" if _name(node.func) == "has" else "path"), name, mark
        case ast.Name(id=name) if name in _CONSTANTS:
            return
        case ast.Name() | ast.Attribute() if _dotted(node):
            yield "path", _dotted(node), mark
        case _:
            raise _NotAllowedError(node, mark)


def _mark(node: ast.expr, scalar: Scalar) -> Mark:
    """The place of a part: the text of a quoted scalar begins one column later."""
    indent = len(scalar.text) - len(scalar.text.lstrip())
    if "\n" in scalar.text:
        return scalar.mark
    quote = scalar.style == "quoted"
    return Mark(scalar.mark.file, scalar.mark.line, scalar.mark.column + quote + indent + node.col_offset)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _argument(node: ast.Call) -> str:
    argument = node.args[0]
    assert isinstance(argument, ast.Constant)
    return str(argument.value)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _is_null(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and node.value is None) or (isinstance(node, ast.Name) and node.id == "null")
