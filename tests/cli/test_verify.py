"""expkit verify and expkit compact: what they say of damage, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Expkit
from tests.store.synthetic import Method, make_store


def test_what_is_damaged_is_named_and_makes_the_exit_code(
    expkit: Expkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_store(tmp_path, {"ema": Method()}, seeds=(17,))
    store = made.store
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path))
    code, out, err = expkit("verify")
    assert (code, out) == (0, "") and err == "14 files and checkpoints looked at, 0 of them damaged\n"
    id12 = made.ids["ema", 17]
    path = store.layout.metrics(store.layout.attempt(id12, 0, 1), 0, 0)
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    for what in ((), ("ablate",), (id12[:6],)):
        code, out, err = expkit("verify", *what)
        assert code == 1 and out == f"{path}: was changed since it was written: its data and its seal disagree\n"
        assert "1 of them damaged" in err
    assert expkit("verify", made.ids["none", 17])[0] == 0
    code, out, err = expkit("verify", "--json")
    assert code == 1 and json.loads(out)["damaged"] == [
        {"path": str(path), "reason": "was changed since it was written: its data and its seal disagree"}
    ]
    code, _, err = expkit("verify", "nosuch")
    assert code == 2 and "there is no trial 'nosuch', and it is an unknown sweep 'nosuch'" in err
    code, out, err = expkit("compact")
    assert code == 1 and "in 1 file;" in out and f"left as it is: {path}" in err
    assert expkit("compact", "--json")[0] == 1
