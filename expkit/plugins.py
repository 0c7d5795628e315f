"""Finding plug-ins, the only place that does: the folder is the registry, the file's name is the name in YAML.

A plug-in is one file with one class, a dataclass of settings and declarations that imports without torch. Packages
outside join through the entry-point group `expkit.<kind>`. Code of the user's own is named by import path,
`py:package.module:name`, and is imported only where a trial runs and only from packages that the user trusts.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import fnmatch
import functools
import importlib
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from expkit.duration import Time
from expkit.errors import PluginError, unknown

KINDS = ("algorithms", "callbacks", "loggers", "models", "datasets", "optimizers", "schedulers", "metrics",
         "samplers", "executors", "sections")  # fmt: skip
CAPABILITIES = frozenset({
    "convolutions", "strided_convolutions", "batchnorm", "layernorm", "residual_blocks", "attention", "embeddings",
    "dropout", "sequences", "images", "soft_targets",
})  # fmt: skip
"""What a method may require and a model or data set may provide; the list is closed, a new word is a decision."""

_UNTOLD = re.compile(r"func=|allow_inf_nan|union_mode")  # how a value is checked, nothing a user could write
_ROOT = Path(__file__).parent
_PY = re.compile(r"py:(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<attribute>[A-Za-z_]\w*)")


class Plugin:
    """Base of every plug-in kind: a dataclass whose fields are the settings, checked however it is made."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "arbitrary_types_allowed": True,
        "allow_inf_nan": False,  # no setting means anything at infinity
    }
    version: ClassVar[int] = 1
    """Raised when the same settings come to mean other mathematics; part of every trial's identity."""
    provides: ClassVar[frozenset[str]] = frozenset()
    """Words of CAPABILITIES; see `capabilities` where they depend on the settings."""

    def __post_init__(self) -> None:
        for name, value in coerced(type(self), self).items():
            object.__setattr__(self, name, value)

    def capabilities(self) -> frozenset[str]:
        """What this plug-in provides with these settings."""
        return self.provides


@dataclass(frozen=True)
class Setting:
    """One field of a plug-in as `expkit explain` shows it."""

    name: str
    type: str
    default: Any
    """dataclasses.MISSING where the setting must be given."""
    doc: str


def names(kind: str) -> list[str]:
    """All names of a kind, sorted: the files of its folder and the entry points of other packages. Imports none."""
    return sorted({*_own(kind), *_outside(kind)})


def known(kind: str, name: str) -> bool:
    """Whether there is one of this name; looks outside only where there is none of our own."""
    return name in _own(kind) or name in _outside(kind)


def load(kind: str, name: str) -> type[Plugin]:
    """The class behind a name; PluginError with the nearest name where there is none."""
    if name in _own(kind):
        module = importlib.import_module(f"expkit.{kind}.{name}")
        return _the_class(module, f"expkit/{kind}/{name}.py")
    if name in _outside(kind):
        found = _outside(kind)[name].load()
        if isinstance(found, type) and issubclass(found, Plugin):
            return found
        raise PluginError(f"entry point {name!r} of expkit.{kind} is no plug-in class: {found!r}")
    raise PluginError(unknown(kind.removesuffix("s"), name, names(kind)))


def build(kind: str, name: str, params: Mapping[str, Any]) -> Plugin:
    """An instance with its settings checked; PluginError names the setting that does not fit."""
    return configured(load(kind, name), params, f"{kind.removesuffix('s')} {name}")


def configured(cls: type[Plugin], params: Mapping[str, Any], what: str) -> Plugin:
    """The same of a class; `what` it is called in the error."""
    from pydantic import ValidationError

    try:
        return adapter(cls).validate_python(dict(params))  # type: ignore[no-any-return]
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
    except PluginError as e:
        raise PluginError(f"{what}: {e}") from None
    where = ".".join(map(str, first["loc"])) or "settings"
    if first["type"] == "unexpected_keyword_argument":
        raise PluginError(f"{what}: {unknown('setting', where, [f.name for f in _fields(cls)])}")
    raise PluginError(f"{what}: {where}: {first['msg']}")


def adapter(cls: type[Plugin]) -> Any:
    """The pydantic TypeAdapter of a plug-in class, for callers that want errors with their positions.

    PluginError where the class cannot have settings: it is no dataclass, its fields beside those that it inherits are
    none, or a field has a type that nobody knows.
    """
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    key: Any = cls
    if not _is_dataclass(key):
        raise PluginError(f"{cls.__name__} must be a @dataclass: its fields are its settings")
    try:
        return _adapter(key)
    except (PydanticUserError, PydanticUndefinedAnnotation) as e:
        raise PluginError(f"{cls.__name__}: its fields cannot be read as settings: {str(e).splitlines()[0]}") from None


def dump(plugin: Plugin) -> dict[str, Any]:
    """All settings, defaults filled in, as JSON values (durations in canonical form)."""
    include = {f.name for f in _fields(type(plugin))}
    return adapter(type(plugin)).dump_python(plugin, mode="json", include=include)  # type: ignore[no-any-return]


def settings(cls: type[Plugin]) -> list[Setting]:
    """The settings of a class in order, each with the sentence that stands under its field; a contract's come last."""
    docs = field_docs(cls)
    hints = get_type_hints(cls, include_extras=True)
    shown = []
    for f in sorted(dataclasses.fields(cls), key=lambda f: bool(f.kw_only)):  # type: ignore[arg-type]
        if f.init:
            made = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            shown.append(Setting(f.name, type_text(hints[f.name]), made, docs.get(f.name, "")))
    return shown


def summary(kind: str, name: str) -> str:
    """The first sentence of a plug-in's docstring; where it cannot be loaded, why."""
    try:
        return (inspect.getdoc(load(kind, name)) or "").split("\n")[0]
    except PluginError as e:
        return f"(broken: {e})"


def field_docs(cls: Any) -> dict[str, str]:
    """The sentence under each field of a dataclass, by name, read from its source."""
    docs: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(owner):
            continue
        source: Any = owner
        body = ast.parse(textwrap.dedent(inspect.getsource(source))).body[0].body  # type: ignore[attr-defined]
        for statement, after in itertools.pairwise(body):
            is_doc = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if is_doc and isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                docs[statement.target.id] = " ".join(str(after.value.value).split())
    return docs


def type_text(hint: Any) -> str:
    """A type as a user would write it: `float, ge=0, lt=1`, `last | best | none`, `duration | map of duration`."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        told = [m for info in hint.__metadata__ for m in getattr(info, "metadata", [info])]
        limits = [str(m) for m in told if not _UNTOLD.search(str(m))]
        return ", ".join([type_text(args[0]), *(re.sub(r"^\w+\((.*)\)$", r"\1", limit) for limit in limits)])
    if origin in (Union, UnionType):
        return " | ".join(map(type_text, args))
    if origin is Literal:
        return " | ".join(map(str, args))
    if origin is Mapping:
        return f"map of {type_text(args[-1])}"
    if args:
        return f"{type_text(origin)}[{', '.join('...' if a is Ellipsis else type_text(a) for a in args)}]"
    plain: dict[Any, str] = {type(None): "null", Time: "duration", Any: "any"}
    return plain.get(hint) or str(getattr(hint, "__name__", hint))


def coerced(cls: type[Plugin], plugin: Plugin) -> dict[str, Any]:
    """Each setting of an instance made in Python, converted by its field's type; PluginError where it cannot be."""
    from pydantic import ValidationError

    values = {}
    key: Any = cls
    for name, field_adapter in _field_adapters(key).items():
        try:
            values[name] = field_adapter.validate_python(getattr(plugin, name))
        except ValidationError as e:
            raise PluginError(f"{cls.__name__}: {name}: {e.errors(include_url=False)[0]['msg']}") from None
    return values


def is_import_path(name: str) -> bool:
    """Whether a component's name is code of the user's own."""
    return name.startswith("py:")


def import_path(name: str, trust: Iterable[str]) -> Any:
    """The object behind `py:package.module:name`; PluginError unless a pattern of `trust` allows it.

    The module that the object says it comes from must be trusted too, so that an allowed package cannot hand out
    what it merely imported.
    """
    module_name, attribute = parse_import_path(name)
    allowed = tuple(trust)
    if not trusted(module_name, allowed):
        raise PluginError(untrusted(name))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as e:
        raise PluginError(f"{name}: there is no module {e.name!r} to import") from e
    if not hasattr(module, attribute):
        raise PluginError(f"{name}: module {module_name} has no {attribute!r}")
    found = getattr(module, attribute)
    home = getattr(found, "__module__", module_name) or module_name
    if not trusted(home, allowed):
        raise PluginError(f"{name} comes from {home!r}, which is not trusted; name it there and trust that package")
    return found


def parse_import_path(name: str) -> tuple[str, str]:
    """`py:package.module:name` -> (module, attribute); PluginError for any other form."""
    match = _PY.fullmatch(name)
    if match is None:
        raise PluginError(f"{name!r} is no import path; the form is py:package.module:name")
    return match["module"], match["attribute"]


def trusted(module: str, trust: Iterable[str]) -> bool:
    """Whether a pattern such as `mylab.*` covers the module; `mylab.*` covers `mylab` itself as well."""
    return any(fnmatch.fnmatchcase(module, p) or module == p.removesuffix(".*") for p in trust)


def untrusted(name: str) -> str:
    """The sentence for code that nobody allowed."""
    package = parse_import_path(name)[0].split(".")[0]
    return (
        f'{name} would run code of your own, and nothing allows it; write trust = ["{package}.*"] into expkit.toml '
        f"beside your files, or pass --trust-imports '{package}.*'"
    )


def by_class_name(kind: str) -> Callable[[str], Any]:
    """A module `__getattr__` for a plug-in folder: `expkit.algorithms.BlurPool` finds `blurpool.py`."""

    def find(class_name: str) -> Any:
        plain = class_name.lower()
        for name in _own(kind):
            if name.replace("_", "") == plain:
                return load(kind, name)
        raise AttributeError(f"module 'expkit.{kind}' has no attribute {class_name!r}{_nearest(kind, class_name)}")

    return find


def class_names(kind: str) -> Callable[[], list[str]]:
    """A module `__dir__` for a plug-in folder: what notebooks and shells complete to; imports all of the kind."""
    return lambda: [load(kind, name).__name__ for name in sorted(_own(kind))]


def _nearest(kind: str, class_name: str) -> str:
    """The end of a sentence about a class that is not there; nothing for what only Python asks about."""
    if class_name.startswith("_"):
        return ""
    known = class_names(kind)()
    by_plain = {name.lower(): name for name in known}
    near = difflib.get_close_matches(class_name.replace("_", "").lower(), by_plain, n=1)
    return f"; did you mean {by_plain[near[0]]!r}?" if near else f"; there are: {', '.join(known)}"


@functools.cache
def _own(kind: str) -> frozenset[str]:
    if kind not in KINDS:
        raise PluginError(unknown("kind of plug-in", kind, KINDS))
    return frozenset(p.stem for p in (_ROOT / kind).glob("*.py") if not p.stem.startswith("_"))


@functools.cache
def _outside(kind: str) -> dict[str, Any]:
    from importlib.metadata import entry_points  # 50 ms: only where names are listed or unknown

    return {entry.name: entry for entry in entry_points(group=f"expkit.{kind}")}


def _the_class(module: Any, file: str) -> type[Plugin]:
    found = [c for c in vars(module).values()
             if isinstance(c, type) and issubclass(c, Plugin) and c.__module__ == module.__name__]  # fmt: skip
    if len(found) != 1:
        raise PluginError(f"{file} must define exactly one plug-in class, but has {len(found)}")
    return found[0]


def _is_dataclass(cls: Any) -> bool:
    """By its own decorator or, where it adds no field, by that of the class above."""
    own = vars(cls)
    return "__dataclass_fields__" in own or (dataclasses.is_dataclass(cls) and not own.get("__annotations__"))


def _fields(cls: Any) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(cls) if f.init]


@functools.cache  # building one costs about a millisecond
def _adapter(cls: Any) -> Any:
    from pydantic import TypeAdapter

    made: TypeAdapter[Any] = TypeAdapter(cls)
    if not made.pydantic_complete:
        made.rebuild()  # says which name of a type it does not know
    return made


@functools.cache
def _field_adapters(cls: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    hints = get_type_hints(cls, include_extras=True)
    config: Any = {"arbitrary_types_allowed": True, "allow_inf_nan": False}
    return {
        f.name: TypeAdapter(hints[f.name]) if _configured(hints[f.name]) else TypeAdapter(hints[f.name], config=config)
        for f in dataclasses.fields(cls)
        if f.init
    }


def _configured(hint: Any) -> bool:
    return dataclasses.is_dataclass(getattr(hint, "__origin__", hint))  # pydantic takes no second configuration
