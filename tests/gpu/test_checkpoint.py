"""Checkpoints on a device: a resume gives the same bits there, and what one device saved another takes up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.algorithms.ema import EMA
from expkit.algorithms.mixup import MixUp
from expkit.trainer.trainer import Trainer
from tests.trainer.resuming import RECIPES, adamw_mixup, assert_equal, fingerprint, make, run_through, tail


def resumed(recipe: Any, address: str, **settings: Any) -> tuple[Trainer, Any]:
    trainer, memory = make(recipe, load_path=address, **settings)
    trainer.fit()
    return trainer, memory


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "convolutions"])
def test_resumed_on_the_device_it_ends_as_if_it_had_run_through(device: str, name: str, tmp_path: Path) -> None:
    settings = {"device": device, "deterministic_mode": True}
    whole, rows = run_through(RECIPES[name], tmp_path / "run", "4ba", **settings)
    for address in whole.saved_checkpoints[:-1]:
        again, memory = resumed(RECIPES[name], address, **settings)
        cut = 18 - len({row[1] for row in memory.rows})
        assert memory.rows == tail(rows, cut)
        assert_equal(fingerprint(again.state), fingerprint(whole.state), address)


def average_and_mixup() -> Any:
    """No dropout: its masks are another device's own."""
    return {**adamw_mixup(), "algorithms": [MixUp(alpha=0.5), EMA(half_life="4ba")]}


@pytest.mark.parametrize("there", [True, False], ids=["to the device", "from the device"])
def test_another_device_takes_it_up_and_ends_alike_but_for_rounding(device: str, there: bool, tmp_path: Path) -> None:
    one, other = ("cpu", device) if there else (device, "cpu")
    whole, _ = run_through(average_and_mixup, tmp_path / "run", "9ba", device=one)
    again, _ = resumed(average_and_mixup, whole.saved_checkpoints[0], device=other)
    assert {p.device.type for p in again.state.model.parameters()} == {torch.device(other).type}
    own = again.state.model.state_dict()
    for name, weight in whole.state.model.state_dict().items():
        torch.testing.assert_close(own[name].cpu(), weight.cpu(), rtol=1e-3, atol=1e-4)
