"""Credit of one axis: full grids, holes, fractions, one-at-a-time designs, levels, several points, one seed."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from expkit.analysis import cube
from expkit.analysis.cells import Cell, grid_of, matched_squares
from expkit.analysis.effects import method_effects
from expkit.analysis.fraction import Partial
from expkit.analysis.intervals import Array
from expkit.analysis.least_squares import Pairwise, fit
from expkit.analysis.nested import nested
from expkit.analysis.shares import Shares, Table, shares, waterfall
from tests.analysis.test_cube import FILTRATION, GAME, cells_of

LOW, HIGH = "colout[p=0.1]", "colout[p=0.2]"


def of(cells: list[Cell], values: Array, idle: list[frozenset[str]] | None = None) -> Shares:
    return shares(Table.of(cells, values, idle or [], 0.95))


def repeated(values: Array, seeds: int = 3) -> Array:
    return np.asarray(values, dtype=float)[:, None] + np.arange(seeds) * 0.01


def values_of(found: dict[str, object] | object) -> dict[object, float]:
    return {name: one.interval.value for name, one in found.items()}  # type: ignore[attr-defined]


def test_a_full_grid_has_everything() -> None:
    found = of(cells_of("ABC"), repeated(GAME))
    assert found.basis == "full grid"
    assert list(values_of(found.shapley).values()) == pytest.approx([0.235216, 0.116010, 0.005449], abs=5e-7)
    assert list(values_of(found.leave_one_out).values()) == pytest.approx([0.228842, 0.108214, -0.058841], abs=5e-7)
    assert list(values_of(found.add_one_in).values()) == pytest.approx([0.223144, 0.105361, 0.051293], abs=5e-7)
    assert values_of(found.dividends) == pytest.approx(
        {("A", "B"): 0.087011, ("A", "C"): -0.025975, ("B", "C"): -0.028820}, abs=5e-7
    )
    assert values_of(found.shapley_interactions) == pytest.approx(
        {("A", "B"): 0.059342, ("A", "C"): -0.053644, ("B", "C"): -0.056489}, abs=5e-7
    )
    assert set(found.interactions) == {("A", "B"), ("A", "C"), ("B", "C"), ("A", "B", "C")}
    assert found.contexts == {("A", "B"): 2, ("A", "C"): 2, ("B", "C"): 2, ("A", "B", "C"): 1}
    assert sum(found.variance.values()) == pytest.approx(1)


def test_every_interaction_has_one_error_where_it_is_pooled_and_its_own_where_it_is_not() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(0, 0.04, size=(16, 5)) + rng.normal(size=5)
    pooled = of(cells_of("ABCD"), table).interactions
    widths = {one.interval.method: (one.interval.hi or 0) - (one.interval.lo or 0) for one in pooled.values()}
    assert set(widths) == {"pooled t"}
    exact = cube.interactions(table)[[3, 15]].mean(axis=1)
    assert [pooled[n].interval.value for n in (("A", "B"), ("A", "B", "C", "D"))] == pytest.approx(exact)
    table[3] *= 40
    assert of(cells_of("ABCD"), table).interactions["A", "B"].interval.method == "t over seeds"


def test_half_fraction_of_the_filtration_experiment() -> None:
    """G2: D = ABC, runs (1), ab, ac, bc, ad, bd, cd, abcd."""
    letters = ["", "AB", "AC", "BC", "AD", "BD", "CD", "ABCD"]
    cells: list[Cell] = [(frozenset(names), "") for names in letters]
    y = repeated(np.array([45, 65, 60, 80, 100, 45, 75, 96]))
    mains = {e.method: e for e in method_effects(cells, y)}
    assert {m: e.estimate.interval.value for m, e in mains.items()} == pytest.approx(
        {"A": 19.0, "B": 1.5, "C": 14.0, "D": 16.5}
    )
    assert all(e.contrast for e in mains.values())
    found = of(cells, y)
    assert values_of(found.interactions) == pytest.approx({("A", "B"): -1.0, ("A", "C"): -18.5, ("B", "C"): 19.0})
    part = Partial.of(cells)
    assert part is not None
    assert part.words() == ("A * B * C * D",)
    assert part.aliases_of(["A", "B"]) == ("C * D",)
    assert part.aliases_of(["A"]) == ("B * C * D",)
    assert found.basis == "least squares"  # main effects are clear of pairs, so they are the credit without three-way
    assert values_of(found.shapley) == pytest.approx({"A": 19.0, "B": 1.5, "C": 14.0, "D": 16.5})
    assert found.shapley_interactions == {}  # pairs are not clear of each other


def test_a_fraction_without_three_way_terms_gives_the_credit_of_the_full_grid() -> None:
    rng = np.random.default_rng(7)
    on = np.array([[m >> i & 1 for i in range(5)] for m in range(32)], dtype=float)
    v = on @ rng.normal(size=5) + np.einsum("ci,cj,ij->c", on, on, np.triu(rng.normal(size=(5, 5)), 1))
    kept = [m for m in range(32) if (5 - m.bit_count()) % 2 == 0]  # E = ABCD
    part = of([cells_of("ABCDE")[m] for m in kept], repeated(v[kept]))
    whole = of(cells_of("ABCDE"), repeated(v))
    assert values_of(part.shapley) == pytest.approx(values_of(whole.shapley))
    assert values_of(part.shapley_interactions) == pytest.approx(values_of(whole.shapley_interactions))
    assert {n: v for n, v in values_of(part.interactions).items() if len(n) == 2} == pytest.approx(
        {n: v for n, v in values_of(whole.interactions).items() if len(n) == 2}
    )


def test_a_baseline_beside_a_fraction_is_no_part_of_it() -> None:
    """E = ABCD has every single method and no baseline; pairs with the baseline alone would be one context of 16."""
    cells = [c for c in cells_of("ABCDE") if len(c[0]) % 2 == 1]
    v = np.array([float(sum(2.0 ** "ABCDE".index(m) for m in on)) for on, _ in cells])
    odd = 100.0  # the added cells, were they used
    added: list[Cell] = [*cells, (frozenset[str](), "")]
    part = Partial.of(added)
    assert part is not None
    assert (part.words(), len(part.rows)) == (("A * B * C * D * E",), 16)
    found = {e.method: e.estimate.interval.value for e in method_effects(added, repeated(np.append(v, odd)))}
    assert found == pytest.approx({"A": 1.0, "B": 2.0, "C": 4.0, "D": 8.0, "E": 16.0})


def test_a_fraction_at_several_points_and_levels_is_one() -> None:
    """D = ABC at two budgets, A with two levels: each level from the sub-grid of its own, the mean over points."""
    masks = [m for m in range(16) if m.bit_count() % 2 == 0]
    worth = {"A[x=1]": 1.0, "A[x=2]": 3.0, "B": 10.0, "C": 20.0, "D": 40.0}
    cells: list[Cell] = []
    for point, mask in itertools.product(("ssr=0.5", "ssr=1.0"), masks):
        rest = [m for i, m in enumerate("ABCD") if i and mask >> i & 1]
        ways = [["A[x=1]"], ["A[x=2]"]] if mask & 1 else [[]]
        cells += [(frozenset([*way, *rest]), point) for way in ways]
    v = np.array([sum(worth[m] for m in on) + 5 * ("ssr=1.0" in point) for on, point in cells])
    part = Partial.of(cells)
    assert part is not None
    assert (part.methods, part.words(), len(part.rows)) == (("A", "B", "C", "D"), ("A * B * C * D",), 24)
    assert part.aliases_of(["A[x=2]", "B"]) == ("C * D",)
    found = {e.method: e.estimate.interval.value for e in method_effects(cells, repeated(v))}
    assert found == pytest.approx(worth)
    interactions = values_of(of(cells, repeated(v)).interactions)
    pairs = {(level, m) for level in ("A[x=1]", "A[x=2]") for m in "BC"}
    assert interactions == pytest.approx(dict.fromkeys([*pairs, ("B", "C")], 0.0), abs=1e-9)
    everything: list[Cell] = [*cells, (frozenset({"B", "D", "C"}), "ssr=0.5"), (frozenset({"B", "D", "C"}), "ssr=1.0")]
    added = Partial.of(everything)  # a baseline in the middle, as one with three methods is
    assert added is not None
    assert (added.words(), len(added.rows)) == (("A * B * C * D",), 24)


def test_a_fraction_of_which_an_arm_failed_with_every_seed_still_has_main_effects() -> None:
    """Seven arms of D = ABC: columns agree in part, and least squares on single methods tells them apart."""
    cells = [c for c in cells_of("ABCD") if len(c[0]) % 2 == 0]
    v = repeated(np.array([float(sum(2.0 ** "ABCD".index(m) for m in on)) for on, _ in cells]))
    v[3] = math.nan
    found = method_effects(cells, v)
    assert {e.method: e.estimate.interval.value for e in found} == pytest.approx(
        {"A": 1.0, "B": 2.0, "C": 4.0, "D": 8.0}
    )
    assert {(e.contrast, e.pairs, e.planned) for e in found} == {(True, 7, 8)}
    part = Partial.of(cells, v)
    assert part is not None
    assert (part.regular, len(part.rows), part.num_cells) == (False, 7, 8)
    named = ("- 0.33 A * B", "- 0.33 A * C", "0.33 A * D", "0.33 B * C", "- 0.33 B * D", "- 0.33 C * D")
    assert part.aliases_of(["A"]) == named
    v = repeated(np.array([0.5 if len(on & {"A", "B"}) != 1 else -0.5 for on, _ in cells]))  # A * B is 1, all else 0
    v[3] = math.nan
    assert method_effects(cells, v)[0].estimate.interval.value == pytest.approx(-1 / 3)


def test_arms_are_no_fraction_where_two_methods_would_be_one_number() -> None:
    """Without the ends these six have A or B, never both; with them least squares tells the two apart."""
    cells: list[Cell] = [(frozenset(names), "") for names in ("", "A", "B", "AC", "BC", "ABC")]
    part = Partial.of(cells)
    assert part is not None
    assert (part.regular, len(part.rows)) == (False, 6)
    v = repeated(np.array([0.0, 1.0, 2.0, 5.0, 6.0, 7.0]))
    assert {e.method: e.estimate.interval.value for e in method_effects(cells, v)} == pytest.approx(
        {"A": 1.0, "B": 2.0, "C": 4.0}
    )


def test_resolution_three_cannot_share_out_the_whole() -> None:
    """C = AB: each main effect is in one number with a pair, so no share of credit is told."""
    cells: list[Cell] = [(frozenset(names), "") for names in ("C", "A", "B", "ABC")]
    found = of(cells, repeated(np.array([1.0, 2.0, 3.0, 7.0])))
    assert (found.basis, found.shapley) == ("pairs", {})
    part = Partial.of(cells)
    assert part is not None
    assert part.aliases_of(["A"]) == ("B * C",)
    assert {e.method: e.estimate.interval.value for e in method_effects(cells, np.ones((4, 2)))} == dict.fromkeys(
        "ABC", pytest.approx(0.0)
    )


def test_a_grid_with_a_hole_in_every_seed_is_fitted_with_its_blocks() -> None:
    rng = np.random.default_rng(11)
    cells = cells_of("ABC")
    table = (-np.array([0, 0.2, 0.1, 0.35, 0.05, 0.25, 0.12, 0.4]))[:, None] + rng.normal(0, 0.02, size=(8, 4))
    table += np.array([0.0, 3.0, -2.0, 1.0])  # seeds differ, and must not pass for methods
    for seed, cell in enumerate((7, 3, 0, 5)):
        table[cell, seed] = math.nan
    found = of(cells, table)
    assert found.basis == "least squares"
    rows, columns = np.nonzero(np.isfinite(table))
    data = {"y": table[rows, columns], "block": columns} | {
        m.lower(): [float(m in cells[r][0]) for r in rows] for m in "ABC"
    }  # fmt: skip
    oracle = smf.ols("y ~ (a + b + c)**2 + C(block)", pd.DataFrame(data)).fit().params
    assert found.shapley["A"].interval.value == pytest.approx(oracle["a"] + (oracle["a:b"] + oracle["a:c"]) / 2)
    assert found.shapley_interactions["A", "B"].interval.value == pytest.approx(oracle["a:b"])
    assert found.shapley["A"].interval.method == "least squares, pooled t"
    assert found.shapley["A"].interval.value == pytest.approx(-0.23, abs=0.05)
    assert found.contexts == {("A", "B"): 1, ("A", "C"): 1, ("B", "C"): 1}


def test_one_at_a_time_designs_say_what_they_can() -> None:
    bare: list[Cell] = [(frozenset(names), "") for names in ("", "A", "B", "C")]
    found = of(bare, repeated(np.array([0.0, 0.2, 0.1, 0.05])))
    assert found.basis == "pairs"
    assert values_of(found.add_one_in) == pytest.approx({"A": 0.2, "B": 0.1, "C": 0.05})
    assert (found.shapley, found.leave_one_out, found.interactions) == ({}, {}, {})
    full: list[Cell] = [(frozenset(names), "") for names in ("ABC", "BC", "AC", "AB")]
    both = of([*bare, *full], repeated(np.array([0.0, 0.2, 0.1, 0.05, 0.4, 0.15, 0.3, 0.35])))
    assert values_of(both.leave_one_out) == pytest.approx({"A": 0.25, "B": 0.1, "C": 0.05})
    pairwise = [c for c in cells_of("ABCD") if len(c[0]) <= 2]
    some = of(pairwise, repeated(np.array([float(len(c[0]) ** 2) for c in pairwise])))
    assert some.basis == "least squares"  # each pair adds 2, so that four methods make 16 without three-way terms
    assert sum(v for v in values_of(some.shapley).values()) == pytest.approx(16)
    assert values_of(some.dividends) == pytest.approx(dict.fromkeys(itertools.combinations("ABCD", 2), 2.0))


def test_a_three_way_term_shows_as_lack_of_fit() -> None:
    rng = np.random.default_rng(2)
    cells = [c for i, c in enumerate(cells_of("ABCD")) if i != 13]
    noise = rng.normal(0, 0.01, size=(15, 5))
    three = np.array([float({"A", "B", "C"} <= on) for on, _ in cells])[:, None]
    assert (of(cells, noise).lack_of_fit_p or 0) > 0.05
    assert (of(cells, noise + three).lack_of_fit_p or 1) < 1e-6


def test_what_the_cells_do_not_determine_is_not_estimated() -> None:
    cells: list[Cell] = [(frozenset(names), "") for names in ("", "A", "AB")]
    model = Pairwise.of(cells)
    asked = {"A": model.main("A"), "B": model.main("B"), "AB": model.interaction("A", "B")}
    assert fit(model, asked, np.zeros((3, 2))) == {}
    assert fit(model, asked, np.full((3, 2), math.nan)) == {}


def nested_cells() -> list[Cell]:
    return [(frozenset(s), "") for s in ((), (LOW,), (HIGH,), ("ema",), ("ema", LOW), ("ema", HIGH))]


def test_levels_make_a_grid_each_and_share_what_they_share() -> None:
    cells = nested_cells()
    grid = grid_of(cells)
    assert grid is not None
    assert (grid.k, len(grid.cubes), grid.points) == (2, 2, 1)
    v = np.array([0.0, 1.0, 3.0, 10.0, 12.0, 13.0])
    found = of(cells, repeated(v))
    low = cube.shapley_weights(2) @ v[[0, 1, 3, 4]]
    high = cube.shapley_weights(2) @ v[[0, 2, 3, 5]]
    expected = {LOW: low[0], HIGH: high[0], "ema": (low[1] + high[1]) / 2}
    assert values_of(found.shapley) == pytest.approx(expected)
    assert values_of(found.dividends) == pytest.approx({(LOW, "ema"): 1.0, (HIGH, "ema"): 0.0})
    assert found.variance == {}
    assert waterfall(Table.of(cells, repeated(v), [], 0.95), ("ema", LOW)) == ()


def test_levels_are_nested_in_their_method() -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, size=(6, 5))
    found = nested(nested_cells(), (LOW, HIGH), np.array([0.0, 1.0, 3.0, 10.0, 11.0, 13.0])[:, None] + noise)
    assert found.any_level.interval.value == pytest.approx(2.0, abs=0.1)
    assert [e.interval.value for e in found.apart] == pytest.approx([-1.0, 1.0], abs=0.1)
    assert (found.p or 1) < 1e-4
    same = nested(nested_cells(), (LOW, HIGH), noise)
    assert (same.p or 0) > 0.01
    assert nested(nested_cells(), (LOW, HIGH), noise[:, :1]).p is None


def test_points_are_averaged_over_and_never_crossed() -> None:
    cells = [(on, point) for point in ("lr=1", "lr=2") for on, _ in cells_of("AB")]
    v = np.array([0.0, 1.0, 2.0, 5.0, 100.0, 103.0, 104.0, 110.0])
    found = of(cells, repeated(v))
    assert values_of(found.shapley) == pytest.approx(
        dict(
            zip("AB", np.mean([cube.shapley_weights(2) @ v[:4], cube.shapley_weights(2) @ v[4:]], axis=0), strict=True)
        )
    )
    assert len(matched_squares(cells, ("A", "B"))) == 2


def test_arms_in_which_a_method_did_nothing_are_left_out() -> None:
    cells = cells_of("AB") + [(on | {"idle"}, "") for on, _ in cells_of("AB")]
    idle = [frozenset[str]()] * 4 + [frozenset({"idle"})] * 4
    found = of(cells, repeated(np.array([0.0, 1.0, 2.0, 4.0, 9.0, 9.0, 9.0, 9.0])), idle)
    assert found.basis == "full grid"
    assert values_of(found.shapley) == pytest.approx({"A": 1.5, "B": 2.5})


def test_one_seed_has_margins_of_lenth() -> None:
    found = of(cells_of("abcd"), FILTRATION[:, None])
    assert found.lenth is not None
    assert found.lenth.margin == pytest.approx(6.748, abs=5e-4)
    ac = found.interactions["a", "c"].interval
    assert (ac.value, ac.method, ac.n) == (-18.125, "Lenth, unreplicated", 1)
    assert found.interactions["b", "c"].interval.lo == pytest.approx(2.375 - 6.748, abs=5e-4)
    assert found.shapley["a"].interval.lo is None
    seven = [c for c in cells_of("abcd") if (4 - len(c[0])) % 2 == 0]
    assert of(seven, np.array([45, 65, 60, 80, 100, 45, 75, 96.0])[:, None]).lenth is not None


def test_a_table_without_values_has_nothing() -> None:
    assert of(cells_of("AB"), np.full((4, 3), math.nan)) == Shares()
    assert shares(Table.of([], np.zeros((0, 2)), [], 0.95)) == Shares()


def test_a_thousand_cells_of_ten_seeds_in_seconds() -> None:
    cells = cells_of("ABCDEFGHIJ")
    table = np.random.default_rng(0).normal(size=(1024, 10))
    started = time.process_time()
    whole = of(cells, table)
    assert len(whole.interactions) == 1013
    assert sum(values_of(whole.shapley).values()) == pytest.approx((table[-1] - table[0]).mean())
    table[np.arange(10) * 100, np.arange(10)] = math.nan
    assert of(cells, table).basis == "least squares"
    assert time.process_time() - started < 10
