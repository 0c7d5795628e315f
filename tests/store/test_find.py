"""Trials by what a person types."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from expkit.errors import UsageError
from expkit.store.find import Found, find, find_trial, trials
from expkit.store.store import Store
from tests.store.synthetic import Method, Synthetic, make_store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    return make_store(tmp_path_factory.mktemp("store"), {"ema": Method()}, seeds=(17, 18))


def test_a_prefix_a_whole_id_and_a_replicate(made: Synthetic) -> None:
    id12 = made.ids["none", 17]
    whole = made.store.read_trial(id12)
    assert whole is not None
    assert find_trial(made.store, whole.id) == id12
    for written in (f"{id12} r1", f"{id12}/r1", f"{id12}/1", f" {id12}  r1 "):
        assert find(made.store, written) == Found(id12, 1)
    assert find(made.store, id12[:8]) == Found(id12, None)


@pytest.mark.parametrize("written", ["", "zzz", "zzz r1", "a b c", "../x", "3f2a/rx"])
def test_what_is_no_trial_is_said(made: Synthetic, written: str) -> None:
    with pytest.raises(UsageError, match="no trial"):
        find(made.store, written)


def test_a_replicate_that_there_is_not(made: Synthetic) -> None:
    with pytest.raises(UsageError, match="has no replicate r7; there are: r0, r1"):
        find(made.store, f"{made.ids['none', 17]} r7")


def test_an_ambiguous_prefix_lists_the_candidates_with_arm_and_seed(tmp_path: Path) -> None:
    made = make_store(tmp_path, {"ema": Method()}, seeds=(17,))
    twin = made.ids["ema", 17][:4] + "f" * 8
    made.store.layout.trial(twin).mkdir()
    with pytest.raises(UsageError) as e:
        find(made.store, twin[:4])
    assert str(e.value).splitlines() == [
        f"{twin[:4]!r} fits 2 trials; give more digits:", f"  {made.ids['ema', 17]}  ema  seed 17", f"  {twin}",
    ]  # fmt: skip
    for i in range(15):
        made.store.layout.trial(f"00000{i:07d}").mkdir()
    with pytest.raises(UsageError, match="and 3 more"):
        find(made.store, "00000")


def test_last_is_the_replicate_whose_status_changed_last(tmp_path: Path) -> None:
    made = make_store(tmp_path, {"ema": Method()}, seeds=(17,))
    none, ema = made.ids["none", 17], made.ids["ema", 17]
    for time, (id12, replicate) in enumerate([(ema, 0), (none, 0), (none, 1)]):
        os.utime(made.store.layout.status(id12, replicate), (time, time))
    assert [str(find(made.store, f"last{back}")) for back in ("", "~1", "~2")] == [
        f"{none} r1",
        f"{none} r0",
        f"{ema} r0",
    ]
    assert find(made.store, "last/r0") == Found(none, 0)
    with pytest.raises(UsageError, match="has 3 replicates"):
        find(made.store, "last~3")


def test_user_report_the_last_trial_of_a_sweep_was_one_of_another_sweep(tmp_path: Path) -> None:
    made = make_store(tmp_path, {"ema": Method()}, seeds=(17,))
    other = make_store(tmp_path, {}, seeds=(40,), sweep="other")
    for time, (id12, replicate) in enumerate([(made.ids["ema", 17], 0), (other.ids["none", 40], 0)]):
        os.utime(made.store.layout.status(id12, replicate), (2e9 + time, 2e9 + time))
    assert find(made.store, "last").id12 == other.ids["none", 40]
    assert find(made.store, "last", sweep="ablate").id12 == made.ids["ema", 17]
    with pytest.raises(UsageError, match="sweep ablate has 3 replicates that were started"):
        find(made.store, "last~3", sweep="ablate")


def test_an_empty_or_missing_folder_has_no_trials(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    assert trials(store.layout) == []
    with pytest.raises(UsageError, match="no such last"):
        find(store, "last")
