"""Completion as the shell asks for it: in a process of its own, by the protocol that the installed script speaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.synthetic import Method, Synthetic, make_store

ROOT = Path(__file__).parents[2]
ASK = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})), file=sys.stderr))
from expkit.cli import main
main()
"""
HEAVY = {"torch", "duckdb", "pyarrow", "optuna", "scipy", "altair", "numpy", "rich"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Synthetic]:
    folder = tmp_path_factory.mktemp("lab")
    for name in ("recipes/tiny.yaml", "sweeps/grid.yaml", "own.yaml", "notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    made = make_store(folder / "runs", {"ema": Method()}, seeds=(17,))
    make_store(folder / "elsewhere", {}, seeds=(17,), sweep="other")
    return folder, made


def offered(folder: Path, line: str, **more: str) -> list[str]:
    """What bash is offered at the end of the line; nothing heavy may be loaded for it."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_EXPKIT_COMPLETE": "complete_bash"}
    env = {**os.environ, "PYTHONPATH": str(ROOT), **asked, **more}
    done = subprocess.run([sys.executable, "-c", ASK], cwd=folder, env=env, capture_output=True, text=True)
    *errors, loaded = done.stderr.splitlines()
    assert (done.returncode, errors) == (0, [])
    assert not HEAVY & set(json.loads(loaded))
    return done.stdout.split()


def test_ids_of_trials_and_their_replicates(lab: tuple[Path, Synthetic]) -> None:
    folder, made = lab
    none, ema = made.ids["none", 17], made.ids["ema", 17]
    for command in ("logs", "show", "why", "diff", "rerun"):
        assert {none, ema, "last"} <= set(offered(folder, f"expkit {command} "))
        assert offered(folder, f"expkit {command} {none[:6]}") == [none]
    assert offered(folder, f"expkit logs {none}/") == [f"{none}/r0", f"{none}/r1"]
    assert offered(folder, "expkit logs zzz") == []


def test_the_runs_folder_is_the_one_that_was_named(lab: tuple[Path, Synthetic]) -> None:
    folder, _ = lab
    assert offered(folder, "expkit report ") == ["ablate"]
    assert offered(folder, "expkit report --runs-dir elsewhere ") == ["other"]
    assert offered(folder, "expkit status o", EXPKIT_RUNS="elsewhere") == ["other"]
    assert offered(folder, "expkit status ", EXPKIT_RUNS="nowhere") == []


def test_files_by_bare_name(lab: tuple[Path, Synthetic]) -> None:
    folder, _ = lab
    assert offered(folder, "expkit sweep ") == offered(folder, "expkit plan ") == ["grid", "own.yaml"]
    assert offered(folder, "expkit run ") == ["own.yaml", "tiny"]
    assert offered(folder, "expkit check t") == ["tiny"]
    assert {"grid", "tiny"} <= set(offered(folder, "expkit show "))


def test_plug_ins_kinds_and_keys(lab: tuple[Path, Synthetic]) -> None:
    folder, _ = lab
    assert "algorithms" in offered(folder, "expkit list ")
    assert offered(folder, "expkit explain blurp") == ["blurpool"]
    assert "trainer.max_duration" in offered(folder, "expkit explain trainer.")
    assert offered(folder, "expkit explain hodges") == ["hodges_lehmann"]
    assert "guards/same_seed" in offered(folder, "expkit explain guards/")
    assert offered(folder, "expkit list stat") == ["statistics"]
    assert offered(folder, "expkit run tiny --set trainer.max_d") == ["trainer.max_duration="]


def test_commands_and_options(lab: tuple[Path, Synthetic]) -> None:
    folder, _ = lab
    assert offered(folder, "expkit log") == ["logs"]
    assert "--follow" in offered(folder, "expkit logs --f")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(lab: tuple[Path, Synthetic], shell: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "_EXPKIT_COMPLETE": f"source_{shell}"}
    done = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert "_EXPKIT_COMPLETE" in done.stdout and "expkit" in done.stdout


def test_bash_itself_completes(lab: tuple[Path, Synthetic], tmp_path: Path) -> None:
    folder, made = lab
    command = tmp_path / "expkit"
    command.write_text(f"#!{sys.executable}\nfrom expkit.cli import main\nmain()\n")
    command.chmod(0o755)
    typed = """
    source <(_EXPKIT_COMPLETE=source_bash expkit)
    COMP_WORDS=(expkit logs "$1"); COMP_CWORD=2
    _expkit_completion expkit
    echo "${COMPREPLY[@]}"
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    id12 = made.ids["ema", 17]
    done = subprocess.run(["bash", "-c", typed, "bash", id12[:5]], cwd=folder, env=env, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == ([id12], "")
