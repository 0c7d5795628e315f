"""The registry: every pitfall has a guard, every guard is tested both ways, and none breaks on nothing."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

from expkit.analysis.guards.every import EVERY, look
from expkit.analysis.guards.tables import Tables
from expkit.analysis.load import Sweep
from expkit.analysis.model import TargetInfo
from expkit.analysis.noise import aa_floor
from expkit.analysis.pairs import aa_pairs
from tests.analysis.studies import study_of

INFO = TargetInfo("eval/accuracy", "max", 0.8, "given", "number", sentence="Target 0.8 was given.")


def tables_of(labels: Sequence[str], seeds: range) -> Tables:
    study = study_of(labels, seeds, lambda label, seed, rng: (10 * (0.8 if "fast" in label else 1) + rng.normal(), 0.9))
    data = Sweep("s", None, None, None, {}, study.replicates, {}, ())
    return Tables(study, data, INFO, aa_floor(*aa_pairs(study.replicates, study.clock)), {})


def test_each_of_the_24_pitfalls_has_a_guard() -> None:
    assert {f"B{i}" for i in range(1, 25)} <= {one.pitfall for one in EVERY}
    names = [one.name for one in EVERY]
    assert len(names) == len(set(names))


def test_each_guard_says_its_own_name_and_a_sentence() -> None:
    labels = (["none", "fast", "ema"], ["none", "fast"], ["none"], ["fast"], ["none", "none lr=2"], [])
    for names, seeds in itertools.product(labels, (1, 2, 5)):
        tables = tables_of(names, range(seeds))
        found = look(tables)
        assert [g.name for g in found] == [one.name for one in EVERY if one.when(tables)]
        for guard in found:
            assert guard.sentence.endswith(".") and "nan" not in guard.sentence
            assert guard.checked == (not guard.sentence.startswith("Not checked: "))
            assert guard.checked or (guard.light, guard.number) == ("amber", None)


def test_nothing_is_green_that_was_not_looked_at() -> None:
    """A study without stored series, recipes or history: these guards have nothing to look at."""
    blind = {"fixed in advance", "schedules ended", "one unit", "clocks", "off the clock", "setup", "same seed",
             "less work", "test split", "evaluation points", "scope", "tuning"}  # fmt: skip
    found = {g.name: g for g in look(tables_of(["none", "fast", "ema"], range(5)))}
    assert {name for name, guard in found.items() if not guard.checked} >= blind - {"overlap"}


def test_a_red_guard_is_red_in_the_registry_too() -> None:
    tables = tables_of(["none", "fast"], range(1))
    assert {g.name for g in look(tables) if g.light == "red"} == {"noise floor", "seeds"}
    late = dataclasses.replace(tables, info=dataclasses.replace(INFO, exploratory=True))
    assert look(late)[0].light == "amber"


def test_no_guard_stands_outside_the_registry() -> None:
    """Each file of the room is asked by it."""
    import expkit.analysis.guards.every as every

    room = Path(every.__file__).parent
    source = (room / "every.py").read_text()
    for file in room.glob("*.py"):
        if file.stem not in ("__init__", "every", "tables", "light"):
            assert f"{file.stem}." in source
