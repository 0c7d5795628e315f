"""Devices: which one a name means here. cpu, cuda and mps are torch's own; others come with a package of their maker.

Trained on so far: cpu. The suite of `make test-gpu` is for cuda; nobody has run mps, tpu, hpu or neuron.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

import torch

from expkit import dist
from expkit.errors import EnvironmentFault, UsageError
from expkit.spec.recipe import is_device, must_be_device

OWN = ("cuda", "mps")
"""Accelerators that torch drives itself; the others' random numbers come from generators that we do not seed."""
_VENDORS = {"tpu": ("torch_xla",), "neuron": ("torch_neuronx", "torch_xla"), "hpu": ("habana_frameworks.torch.core",)}
"""What has to import, in this order; the last one says which device it is."""


@dataclass(frozen=True)
class Accelerator:
    """What torch finds on this machine."""

    type: str | None
    count: int


def device_of(given: str | torch.device) -> torch.device:
    """The device of this rank; UsageError for a name that means none, EnvironmentFault for one that is not here."""
    name = str(given)
    kind = name.partition(":")[0]
    if not isinstance(given, (str, torch.device)) or not is_device(name):
        raise UsageError(f"device {must_be_device(given)}")
    if kind in _VENDORS:
        return _vendor_device(kind)
    device = chosen(name, found(), dist.local_rank())
    if device.type != "cpu":
        torch.accelerator.set_device_index(device)
    return device


def found() -> Accelerator:
    """The accelerator that torch can use now."""
    here = torch.accelerator.current_accelerator(check_available=True)
    return Accelerator(here.type, torch.accelerator.device_count()) if here else Accelerator(None, 0)


def chosen(name: str, here: Accelerator, local_rank: int = 0) -> torch.device:
    """What `auto`, `cpu`, `cuda`, `cuda:1` or `mps` mean where torch finds `here`; each rank has one of its own."""
    kind, _, number = name.replace("gpu", "cuda").partition(":")
    if kind == "auto":
        kind = here.type if here.type in OWN else "cpu"
    if kind == "cpu":
        return torch.device("cpu")
    if kind != here.type:
        raise UsageError(f"device is {name}, but torch finds no {kind.upper()} device; use cpu or auto")
    index = int(number) if number else local_rank if here.count > 1 else 0  # else each rank may see one of its own
    if index >= here.count:
        who = f"device is {name}" if number else f"rank {local_rank} of this machine wants cuda:{index}"
        raise UsageError(f"{who}, but torch finds {', '.join(f'{kind}:{i}' for i in range(here.count))}")
    return torch.device(kind, index)


def synchronize(device: torch.device) -> None:
    """Wait until the accelerator has done what it was asked to, so that a clock can be read."""
    if device.type in OWN:
        torch.accelerator.synchronize(device)


def carry_out(optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Make a device that only notes what it is asked to do really do it, after each step of the optimizer."""
    if device.type == "xla":
        module = importlib.import_module("torch_xla")
        optimizer.register_step_post_hook(lambda *_: module.sync())
    elif device.type == "hpu":
        module = importlib.import_module(_VENDORS["hpu"][-1])
        optimizer.register_step_post_hook(lambda *_: module.mark_step())


def _vendor_device(kind: str) -> torch.device:
    modules = [_imported(kind, name) for name in _VENDORS[kind]]
    return torch.device("hpu") if kind == "hpu" else modules[-1].device()


def _imported(kind: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as e:
        package = name.partition(".")[0]
        raise EnvironmentFault(f"device is {kind}, which needs the package {package}, but it does not import: {e}"
                               ) from None  # fmt: skip
