"""expkit across: several sweeps, each a workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Expkit, as_json
from tests.store.synthetic import Method, make_store


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("across")
    make_store(made, {"resize": Method(0.8)}, sweep="images", num_batches=8, evaluations=4, seeds=[17, 18])
    make_store(made, {"resize": Method(0.9)}, sweep="words", num_batches=16, evaluations=4, seeds=[17, 18], seconds=20)
    return made


def test_a_row_an_arm(expkit: Expkit, root: Path) -> None:
    code, out, err = expkit("across", "images", "words", "--runs-dir", str(root))
    assert code == 0
    assert out.startswith("1 arm in all of images and words")
    assert "over workloads  x1.1" in out
    assert err.endswith("next: expkit report images\n")
    found = as_json(expkit("across", "images", "words", "--runs-dir", str(root), "--json"))
    assert [one["arm"] for one in found["arms"]] == ["resize"]


def test_one_sweep_and_unknown_ones_are_refused(expkit: Expkit, root: Path) -> None:
    code, out, err = expkit("across", "images", "--runs-dir", str(root))
    assert (code, out) == (2, "")
    assert "two sweeps or more" in err
    code, _, err = expkit("across", "images", "wrods", "--runs-dir", str(root))
    assert code == 2
    assert "words" in err
