"""The README does what it says: its files are checked, its example of own code runs, its commands exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from expkit.cli import app

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.S)


def block(first_line: str) -> str:
    return next(text for _, text in BLOCKS if first_line in text.split("\n")[:3])


def expkit(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "EXPKIT_LOCK_DIR": str(folder),
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    return subprocess.run(
        [sys.executable, "-m", "expkit.cli", *args], cwd=folder, env=env, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    for _, text in BLOCKS:
        if match := re.match(r"# (\S+\.(?:py|toml|yaml))\n", text):
            file = folder / match[1]
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
    return folder


def test_the_two_files_of_the_readme_are_good(tmp_path: Path) -> None:
    for name, key in (("recipes/fashion_resnet.yaml", "name: fashion-resnet"), ("sweeps/ablate.yaml", "name: ablate")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(block(key))
    done = expkit(tmp_path, "check", "recipes/fashion_resnet.yaml", "sweeps/ablate.yaml")
    assert (done.returncode, done.stderr) == (0, "")


def test_own_model_data_and_method_run_as_the_readme_says(lab: Path) -> None:
    done = expkit(lab, "run", "blobs.yaml")
    assert done.returncode == 0, done.stderr
    done = expkit(lab, "sweep", "noise.yaml")
    assert done.returncode == 0, done.stderr
    rows = json.loads(
        expkit(lab, "query", "--json", "SELECT name, bool_and(effective) AS did FROM algorithms GROUP BY name").stdout
    )
    assert {row["name"]: row["did"] for row in rows} == {"gradient_noise": True, "ema": True}
    report = json.loads((lab / "runs/sweeps/noise/report/summary.json").read_text())
    assert {arm["label"] for arm in report["arms"]} == {"none", "ema", "gradient_noise", "ema+gradient_noise"}


def test_the_callback_of_the_readme_is_recorded(lab: Path) -> None:
    parts = (lab / "mylab" / "parts.py").read_text()
    (lab / "mylab" / "parts.py").write_text(parts + block("from expkit.trainer.callback import Callback"))
    recipe = (lab / "blobs.yaml").read_text().replace("name: blobs", "name: watched")
    (lab / "watched.yaml").write_text(recipe + 'callbacks: {"py:mylab.parts:WeightNorm": {}}\n')
    assert expkit(lab, "run", "watched.yaml", "--runs-dir", "watched").returncode == 0
    done = expkit(lab, "query", "SELECT value FROM metrics WHERE name = 'train/weight_norm'", "--json",
                  "--runs-dir", "watched")  # fmt: skip
    assert len(json.loads(done.stdout)) == 2


def test_the_trainer_of_the_readme_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from tests.trainer.doubles import batches

    monkeypatch.chdir(tmp_path)
    given = {
        "torch": torch,
        "net": torch.nn.Linear(8, 4),
        "train_dl": batches(),
        "val_dl": batches(),
        "test_dl": batches(),
    }
    exec(block("from expkit import Trainer, algorithms, callbacks, loggers"), given)
    assert given["trainer"].state.metrics.keys() == {"val/accuracy", "val/cross_entropy"}
    assert len(given["outputs"]) == len(batches())
    assert (tmp_path / "checkpoints" / "first").is_dir()


def test_own_code_is_refused_without_the_users_word(lab: Path) -> None:
    (lab / "expkit.toml").rename(lab / "aside.toml")
    try:
        done = expkit(lab, "run", "blobs.yaml", "--runs-dir", "untrusted")
    finally:
        (lab / "aside.toml").rename(lab / "expkit.toml")
    assert done.returncode == 2
    assert 'trust = ["mylab.*"]' in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_stands_in_the_readme() -> None:
    for command in app.registered_commands:
        assert f"`{command.name} " in README or f"`{command.name}`" in README, command.name
