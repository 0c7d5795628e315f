"""Credit of whole sweeps: what the effects of a report rest on where arms are missing, seeds are one, methods idle."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from expkit.analysis.model import Summary
from expkit.analysis.summary import summarise, summary_to_json
from expkit.report.markdown import to_markdown
from expkit.report.section import make_page
from expkit.store.query import connect
from tests.store.synthetic import Cell, Method, make_store

METHODS = {"ema": Method(1.02, 0.004), "mixup": Method(1.0, 0.002), "resize": Method(0.8, -0.01)}


def credited(
    root: Path,
    change: Callable[[Cell], Cell] = lambda cell: cell,
    seeds: int = 3,
    keep: set[str] | None = None,
    methods: Mapping[str, Method] = METHODS,
) -> Summary:
    """The summary of a sweep of three methods; only the arms of `keep` where it names some."""
    made = make_store(root, methods, seeds=range(17, 17 + seeds), change=change, num_batches=16, evaluations=4)
    if keep is not None:
        rows = [row for row in made.store.read_plan("ablate") if row.arm in keep]
        made.store.write_plan("ablate", "version: 1\nname: ablate\n", rows, file="sweeps/ablate.yaml")
    with connect(root) as con:
        found = summarise(con, "ablate")
    assert "nan" not in str(summary_to_json(found)["credit"])
    return found


def without(*arms: str) -> Callable[[Cell], Cell]:
    return lambda cell: dataclasses.replace(cell, state="failed") if cell.arm in arms else cell


def test_a_full_grid_shares_out_the_whole(tmp_path: Path) -> None:
    found = credited(tmp_path)
    assert "None" not in to_markdown(make_page(found))
    assert found.credit.basis == "full grid"
    assert found.credit.sentence == "Exact, from all 8 arms of a full grid over 3 seeds."
    total = next(a for a in found.arms if a.size == 3).speedup.value
    assert math.prod(e.part_time.shapley.value or 0 for e in found.effects) == pytest.approx(total)
    for one in found.credit.waterfalls:
        assert math.prod(step.value or 0 for step in one.time) == pytest.approx(total)
    assert [w.order for w in found.credit.waterfalls] == [("resize", "mixup", "ema"), ("ema", "mixup", "resize")] or (
        found.credit.waterfalls[0].order[0] == "resize"
    )
    assert [len(i.methods) for i in found.credit.interactions] == [2, 2, 2, 3]
    shares = [e.part_time.variance_share or 0 for e in found.effects]
    assert sum(shares) + sum(i.time.variance_share or 0 for i in found.credit.interactions) == pytest.approx(1)
    resize = found.effects[-1]
    assert "Alone x1.2" in resize.sentence
    assert (resize.part_time.q or 1) < 0.001
    assert (found.effects[1].part_time.q or 0) >= (found.effects[1].part_time.p or 0)


def test_an_arm_that_is_missing_costs_the_exactness_and_not_the_credit(tmp_path: Path) -> None:
    found = credited(tmp_path, without("ema+resize"))
    assert found.credit.basis == "least squares"
    assert found.credit.sentence == "By least squares from 7 of 8 arms, assuming no three-way interactions."
    parts = {e.method: e.part_time for e in found.effects}
    assert parts["resize"].shapley.value == pytest.approx(1.25, abs=0.03)
    assert parts["resize"].add_one_in.value is not None
    assert parts["mixup"].leave_one_out.value is None
    assert {e.method: e.contexts for e in found.effects} == {"ema": 3, "mixup": 3, "resize": 3}
    assert found.credit.waterfalls == ()


def test_a_half_fraction_names_what_it_cannot_tell_apart(tmp_path: Path) -> None:
    """Resolution III, with the baseline beside it, which every sweep has."""
    kept = {"none", "ema", "mixup", "resize", "ema+mixup+resize"}
    found = credited(tmp_path, keep=kept)
    assert found.credit.basis == "least squares" or found.credit.basis == "pairs"
    assert found.credit.words == ("ema * mixup * resize",)
    assert found.credit.sentence == (
        "A fraction of resolution III: 4 of 8 sets, in which ema * mixup * resize is constant. Main effects and "
        "interactions are contrasts of all of them, each in one number with what its row names. What is told in sums "
        "cannot share out the whole; no three methods are assumed to interact."
    )
    assert {e.method: e.aliases for e in found.effects}["resize"] == ("ema * mixup",)
    resize = found.effects[-1]
    assert resize.time.value == pytest.approx(1.25, abs=0.03)
    assert resize.sentence.split("(n=3), ")[1].startswith("as a contrast of 4 arms.")
    assert resize.sentence.endswith("In one number with ema * mixup.")
    assert resize.over == "as a contrast of 4 arms"


def test_a_method_that_did_nothing_is_in_no_number(tmp_path: Path) -> None:
    """Four methods, D = ABC, of which one did nothing: the others' arms are all their combinations."""
    methods = {**METHODS, "nothing": Method(1.0, 0.0, effective=False)}
    kept = {"none", *("+".join(sorted(two)) for two in itertools.combinations(methods, 2)), "+".join(sorted(methods))}
    found = credited(tmp_path, keep=kept, methods=methods)
    others = [e for e in found.effects if e.method != "nothing"]
    assert [(e.aliases, e.contexts) for e in others] == [((), 8)] * 3
    assert found.credit.sentence.endswith("4 arms left out, in which a method did nothing.")
    assert "Interactions are contrasts" in found.credit.sentence


def test_orders_that_the_sweep_was_designed_by_reach_the_report(tmp_path: Path) -> None:
    one, other = ["ema", "mixup", "resize"], ["mixup", "ema", "resize"]
    orders = [one, one[::-1], other, other[::-1]]
    made = make_store(tmp_path, METHODS, seeds=range(17, 20), num_batches=16, evaluations=4)
    rows = [row for row in made.store.read_plan("ablate") if row.arm != "ema+resize"]
    for wanted, basis in ((orders[:2], "orders"), (orders, "least squares")):
        made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "orders": wanted})
        made.store.write_plan("ablate", "version: 1\nname: ablate\n", rows, file="sweeps/ablate.yaml")
        with connect(tmp_path) as con:
            found = summarise(con, "ablate")
        assert found.credit.basis == basis
        total = next(a for a in found.arms if a.size == 3).speedup.value
        parts = math.prod(e.part_time.shapley.value or 0 for e in found.effects)
        assert basis == "least squares" or parts == pytest.approx(total)
    made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "orders": orders[:2]})
    with connect(tmp_path) as con:
        page = to_markdown(make_page(summarise(con, "ablate")))
    assert (
        "Sampled: the mean over 2 orders of switching on, of 7 of 8 arms; intervals are over seeds and orders." in page
    )


def test_one_seed_has_margins_of_lenth(tmp_path: Path) -> None:
    found = credited(tmp_path, seeds=1)
    assert [u.axis for u in found.credit.unreplicated] == ["time", "quality"]
    resize = found.effects[-1]
    assert (resize.time.method, resize.time.n, resize.resolved_time) == ("Lenth, unreplicated", 1, True)
    assert resize.shapley_time.lo is None


def test_a_method_that_did_nothing_leaves_a_grid_of_the_others(tmp_path: Path) -> None:
    found = credited(tmp_path, methods={**METHODS, "mixup": Method(effective=False)})
    assert found.credit.sentence.endswith("4 arms left out, in which a method did nothing.")
    parts = {e.method: e.shapley_time.value for e in found.effects}
    assert set(parts) == {"ema", "resize"}
    assert math.prod(v or 0 for v in parts.values()) == pytest.approx(
        next(a for a in found.arms if a.label == "ema+resize").speedup.value
    )


def test_two_methods_that_overlap_are_told(tmp_path: Path) -> None:
    def overlap(cell: Cell) -> Cell:
        both = {"ema", "resize"} <= set(cell.methods)
        return dataclasses.replace(cell, seconds=cell.seconds * 1.2) if both else cell

    found = credited(tmp_path, overlap)
    pair = next(i for i in found.credit.interactions if i.methods == ("ema", "resize"))
    assert pair.sentence.startswith("ema and resize overlap: together x1.0")
    assert pair.time.interaction.value == pytest.approx(1 / math.sqrt(1.2), abs=0.02)
    assert pair.time.dividend.value == pytest.approx(1 / 1.2, abs=0.04)
    assert (pair.contexts, (pair.time.q or 1) < 0.001) == (2, True)


def test_a_sweep_of_which_nothing_has_run_has_no_credit(tmp_path: Path) -> None:
    found = credited(tmp_path, lambda cell: dataclasses.replace(cell, state="pending"))
    assert (found.credit.basis, found.credit.sentence, found.credit.interactions) == ("none", "", ())
