"""Devices: what a name means, on machines that have them and on those that have not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from expkit.errors import EnvironmentFault, UsageError
from expkit.trainer.devices import Accelerator, carry_out, chosen, device_of
from tests.trainer.doubles import trainer

ROOT = Path(__file__).parents[2]
NONE, ONE, FOUR, MAC = (Accelerator(*a) for a in ((None, 0), ("cuda", 1), ("cuda", 4), ("mps", 1)))


@pytest.mark.parametrize(
    ("name", "here", "rank", "device"),
    [
        ("auto", NONE, 0, "cpu"),
        ("auto", ONE, 0, "cuda:0"),
        ("auto", MAC, 0, "mps:0"),
        ("auto", Accelerator("xpu", 1), 0, "cpu"),
        ("cpu", FOUR, 1, "cpu"),
        ("gpu", FOUR, 0, "cuda:0"),
        ("cuda", FOUR, 3, "cuda:3"),
        ("cuda:2", FOUR, 0, "cuda:2"),
        ("gpu:1", FOUR, 0, "cuda:1"),
        ("cuda", ONE, 1, "cuda:0"),  # each rank was given one of its own to see
        ("mps", MAC, 0, "mps:0"),
    ],
)
def test_what_a_name_means(name: str, here: Accelerator, rank: int, device: str) -> None:
    assert chosen(name, here, rank) == torch.device(device)


@pytest.mark.parametrize(
    ("name", "here", "rank", "says"),
    [
        ("cuda", NONE, 0, "device is cuda, but torch finds no CUDA device; use cpu or auto"),
        ("gpu", MAC, 0, "device is gpu, but torch finds no CUDA device"),
        ("mps", FOUR, 0, "device is mps, but torch finds no MPS device"),
        ("cuda:4", FOUR, 0, "device is cuda:4, but torch finds cuda:0, cuda:1, cuda:2, cuda:3"),
        ("gpu:1", ONE, 0, "device is gpu:1, but torch finds cuda:0"),
        ("cuda", FOUR, 5, "rank 5 of this machine wants cuda:5, but torch finds cuda:0"),
    ],
)
def test_what_is_not_here_is_said(name: str, here: Accelerator, rank: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        chosen(name, here, rank)


@pytest.mark.parametrize("name", ["cudo", "cpu:1", "cuda:", "cuda:x", "mps:0", "", "GPU"])
def test_what_is_no_device_is_said(name: str) -> None:
    with pytest.raises(UsageError, match="device must be auto, cpu, gpu, cuda, mps, tpu, hpu or neuron"):
        trainer(device=name)


@pytest.mark.parametrize(
    ("name", "package"), [("tpu", "torch_xla"), ("neuron", "torch_neuronx"), ("hpu", "habana_frameworks")]
)
def test_a_device_whose_package_is_missing_names_it(name: str, package: str) -> None:
    with pytest.raises(EnvironmentFault, match=f"device is {name}, which needs the package {package}, but it does not"):
        trainer(device=name)


def test_no_cuda_device_on_any_machine_where_it_is_hidden() -> None:
    code = "from expkit.trainer.devices import device_of; print(device_of('auto')); device_of('cuda')"
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # as on a machine that has none
    done = subprocess.run([sys.executable, "-c", code], env=hidden, cwd=ROOT, capture_output=True, text=True)
    assert "UsageError: device is cuda, but torch finds no CUDA device; use cpu or auto" in done.stderr


def packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for packages that install on their makers' machines only."""
    (folder / "torch_neuronx.py").write_text("")
    (folder / "torch_xla.py").write_text(
        "import torch\ncalls = []\ndef device(): return torch.device('xla', 0)\ndef sync(): calls.append(1)\n"
    )
    core = folder / "habana_frameworks" / "torch" / "core"
    core.mkdir(parents=True)
    (core / "__init__.py").write_text("calls = []\ndef mark_step(): calls.append(1)\n")
    monkeypatch.syspath_prepend(folder)


def test_a_device_of_another_maker_is_what_its_package_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages(tmp_path, monkeypatch)
    assert [str(device_of(name)) for name in ("tpu", "neuron", "hpu")] == ["xla:0", "xla:0", "hpu"]


@pytest.mark.parametrize(("device", "package"), [("xla", "torch_xla"), ("hpu", "habana_frameworks.torch.core")])
def test_what_such_a_device_only_notes_is_carried_out_after_each_step(
    device: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages(tmp_path, monkeypatch)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    carry_out(optimizer, torch.device(device))
    sys.modules[package].calls.clear()
    optimizer.step()
    optimizer.step()
    assert sys.modules[package].calls == [1, 1]
