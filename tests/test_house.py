"""The house itself: floors import downwards only, light imports, one plug-in a file, every command with help."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "expkit"
FLOORS: list[set[str]] = [
    {"errors", "duration", "plugins", "uri", "speech"},
    {"spec", "store", "functional", "dist", "provenance"},
    {"trainer", "plan", "analysis"},
    {"launch", "report", "algorithms", "callbacks", "loggers", "models", "datasets", "optimizers", "schedulers",
     "metrics", "samplers"},
    {"executors", "sections", "sweep", "testing"},
    {"cli", "experiment", "__init__"},
]  # fmt: skip
KINDS = ("algorithms", "callbacks", "loggers", "models", "datasets", "optimizers", "schedulers", "metrics", "samplers",
         "executors", "sections")  # fmt: skip
FILES = sorted(PACKAGE.rglob("*.py"))


def room(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if name in rooms)


def imported(file: Path) -> list[str]:
    """Rooms of expkit that a file imports anywhere in it; the package's own facts (`__version__`) are no room."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            parts = [node.module or ""]
            found += [f"expkit.{a.name}" for a in node.names] if parts == ["expkit"] else parts
    return [name.split(".")[1] for name in found if name.startswith("expkit.") and name != "expkit.__version__"]


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_floors_import_downwards_only(file: Path) -> None:
    own = room(file)
    for other in imported(file):
        together = other == own or floor(other) == floor(own) == 0  # the ground floor is one room of five files
        assert together or floor(other) < floor(own), f"{own} (floor {floor(own)}) imports {other}"


def test_every_room_stands_on_a_floor() -> None:
    for file in FILES:
        floor(room(file))
    assert not {"utils", "common", "base", "helpers"} & {room(f) for f in FILES}


def test_top_level_is_what_it_was_agreed_to_be() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    top = {line.split("/")[0] for line in listed}
    assert top == {"pyproject.toml", "README.md", "expkit", "recipes", "sweeps", "tests", "docs", "Makefile", "LICENSE",
                   "CHANGELOG.md", "constraints.txt", ".ci", ".gitignore", ".pre-commit-config.yaml"}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(m.split('.')[0] for m in sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_command_line_loads_nothing_heavy() -> None:
    heavy = {"torch", "duckdb", "pyarrow", "optuna", "scipy", "altair", "numpy", "pydantic", "yaml", "rich"}
    assert not heavy & loaded_by("from expkit.cli import app")


@pytest.mark.parametrize("kind", KINDS)
def test_each_plug_in_file_holds_one_class_and_loads_no_torch(kind: str) -> None:
    code = f"from expkit import plugins\nfor n in plugins.names({kind!r}): plugins.load({kind!r}, n)"
    assert "torch" not in loaded_by(code)


def test_the_contracts_of_the_trainer_load_no_torch() -> None:
    assert "torch" not in loaded_by("import expkit.trainer.event, expkit.trainer.algorithm, expkit.trainer.callback, "
                                    "expkit.trainer.logger, expkit.trainer.contracts")  # fmt: skip


def test_a_driver_loads_no_torch_though_it_looks_at_checkpoints() -> None:
    assert "torch" not in loaded_by("import expkit.sweep, expkit.launch.single, expkit.launch.why, expkit.launch.disk")


@pytest.mark.parametrize("room_name", ["spec", "store", "plan", "analysis", "report"])
def test_rooms_of_planning_and_reading_never_name_torch(room_name: str) -> None:
    for file in (PACKAGE / room_name).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(n.split(".")[0] == "torch" for n in names), f"{file} imports torch"


def test_tests_mirror_rooms() -> None:
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name not in {"__pycache__", "samplers"}}
    assert rooms <= {p.name for p in (ROOT / "tests").iterdir()}


def test_no_name_of_a_plug_in_in_engine_or_report() -> None:
    """The engine, the report and the base classes name no plug-in: adding one is one file."""
    plugs = {p.stem for kind in ("algorithms", "callbacks", "models") for p in (PACKAGE / kind).glob("[a-z]*.py")}
    for name in ("trainer", "report", "analysis", "store"):
        for file in (PACKAGE / name).rglob("*.py"):
            words = {n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)}
            assert not plugs & {w for w in words if isinstance(w, str)}, file
