"""Plug-ins: found by file name, settings checked however they come in, own code only where trusted."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field, ValidationError

from expkit import plugins
from expkit.duration import Time
from expkit.errors import PluginError
from expkit.plugins import Plugin


@dataclass
class Damping(Plugin):
    """Damps."""

    version: ClassVar[int] = 3
    share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share that is damped,
    of the whole."""
    half_life: Time = Time.parse("12ba")
    """How long."""
    limit: int | None = None
    """At most so many."""
    seen: Any = field(init=False, repr=False, default=None)


def test_settings_are_told_with_type_range_default_and_the_sentence_under_the_field() -> None:
    share, half_life, limit = plugins.settings(Damping)
    assert (share.type, share.default, share.doc) == ("float, ge=0, lt=1", 0.1, "Share that is damped, of the whole.")
    assert (half_life.type, limit.type) == ("duration", "int | null")


def test_text_and_python_values_give_the_same_instance() -> None:
    read = plugins.adapter(Damping).validate_python({"share": "1e-3", "half_life": "1h30m"})
    assert read == Damping(share=0.001, half_life="90m")  # type: ignore[arg-type]
    assert plugins.dump(read) == {"share": 0.001, "half_life": "5400sec", "limit": None}


@pytest.mark.parametrize("bad", [{"share": 1}, {"shar": 0}, {"seen": 1}, {"half_life": "5"}])
def test_a_setting_that_does_not_fit_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        plugins.adapter(Damping).validate_python(bad)


def test_a_range_holds_in_python_too() -> None:
    with pytest.raises(PluginError, match="Damping: share: Input should be less than 1"):
        Damping(share=3)


def test_an_unknown_plug_in_and_an_unknown_kind_name_what_there_is() -> None:
    with pytest.raises(PluginError, match="unknown kind of plug-in 'algorithm'; did you mean 'algorithms'"):
        plugins.names("algorithm")
    with pytest.raises(PluginError, match="unknown algorithm 'emma'; did you mean 'ema'"):
        plugins.load("algorithms", "emma")


def test_a_class_is_found_by_its_name_in_python() -> None:
    import expkit

    assert expkit.algorithms.EMA is plugins.load("algorithms", "ema")
    with pytest.raises(AttributeError, match="NoSuchThing"):
        _ = expkit.algorithms.NoSuchThing


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lab_of_test").mkdir()
    (tmp_path / "lab_of_test" / "__init__.py").write_text("")
    (tmp_path / "lab_of_test" / "nets.py").write_text("from os import system\ndef make(): return 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "lab_of_test"
    for name in [n for n in sys.modules if n.startswith("lab_of_test")]:
        del sys.modules[name]


class Bare(Plugin):
    norm: float = 2.0


class Plain(Damping):
    half: float = 0.5


class Renamed(Damping):
    provides = frozenset({"images"})


@dataclass
class Odd(Plugin):
    norm: NoSuchType = 2.0  # type: ignore[name-defined]  # noqa: F821


@dataclass
class Fine(Plugin):
    norm: float = 2.0


@pytest.mark.parametrize(
    ("cls", "settings", "sentence"),
    [
        (Bare, {}, "py:lab:X: Bare must be a @dataclass: its fields are its settings"),
        (Plain, {}, "py:lab:X: Plain must be a @dataclass: its fields are its settings"),
        (Odd, {}, "py:lab:X: Odd: its fields cannot be read as settings: name 'NoSuchType' is not defined"),
        (Fine, {"nrom": 1}, "py:lab:X: unknown setting 'nrom'; did you mean 'norm'? there are: norm"),
        (Fine, {"norm": "x"}, "py:lab:X: norm: Input should be a valid number, unable to parse string as a number"),
    ],
)
def test_a_class_that_cannot_have_its_settings_is_one_sentence_without_internals(
    cls: type[Plugin], settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(PluginError) as caught:
        plugins.configured(cls, settings, "py:lab:X")
    assert str(caught.value) == sentence


def test_a_class_that_adds_no_setting_to_those_of_another_needs_no_decorator_of_its_own() -> None:
    made = plugins.configured(Renamed, {"share": 0.5}, "py:lab:X")
    assert isinstance(made, Renamed)
    assert made.share == 0.5


def test_an_error_while_a_module_is_imported_is_not_taken_for_a_name_that_it_lacks(lab: str, tmp_path: Path) -> None:
    (tmp_path / lab / "broken.py").write_text("import os\nos.no_such_thing\n")
    with pytest.raises(AttributeError, match="no_such_thing"):
        plugins.import_path("py:lab_of_test.broken:x", [f"{lab}.*"])


def test_own_code_runs_only_when_trusted(lab: str) -> None:
    with pytest.raises(PluginError, match=r"write trust = \[\"lab_of_test\.\*\"\] into expkit\.toml"):
        plugins.import_path("py:lab_of_test.nets:make", [])
    assert lab not in sys.modules
    assert plugins.import_path("py:lab_of_test.nets:make", ["lab_of_test.*"])() == 7


def test_a_trusted_package_cannot_hand_out_what_it_imported(lab: str) -> None:
    with pytest.raises(PluginError, match="comes from 'posix', which is not trusted"):
        plugins.import_path("py:lab_of_test.nets:system", [f"{lab}.*"])


@pytest.mark.parametrize("name", ["py:os", "py:os:path:join", "py:os:path.join", "py:../x:y", "os:system", "py::x"])
def test_only_module_and_name_make_an_import_path(name: str) -> None:
    with pytest.raises(PluginError, match=r"the form is py:package.module:name"):
        plugins.import_path(name, ["*"])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("py:lab_of_test.net:x", "no module 'lab_of_test.net'"), ("py:lab_of_test.nets:x", "has no 'x'")],
)
def test_a_wrong_import_path_says_which_part_is_wrong(lab: str, name: str, sentence: str) -> None:
    with pytest.raises(PluginError, match=sentence):
        plugins.import_path(name, [f"{lab}.*"])
