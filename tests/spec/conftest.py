"""The lab, with doubles of methods that are not built yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.lab import Lab, install_doubles


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    install_doubles(monkeypatch)
    return Lab(tmp_path)
