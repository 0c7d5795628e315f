"""Which device the suite runs on; without one named nothing here is collected, so that other runs never touch it."""

from __future__ import annotations

import os

import pytest

DEVICE = os.environ.get("EXPKIT_TEST_DEVICE")
collect_ignore_glob = {"cuda": [], "cpu": ["*_cuda.py"]}.get(DEVICE or "", ["test_*.py"])


@pytest.fixture
def device() -> str:
    """The device that `tests/gpu/run.py` was asked for."""
    assert DEVICE is not None
    return DEVICE
