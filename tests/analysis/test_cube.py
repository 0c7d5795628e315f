"""Credit against the worked examples G1, G3, G4 and G18 of the definition sheet, and its properties."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from expkit.analysis.cells import Cell, full_grid, matched_pairs
from expkit.analysis.cube import (
    add_one_in_weights,
    dividend_weights,
    dividends,
    interaction_weights,
    interactions,
    leave_one_out_weights,
    main_weights,
    shapley_interaction_weights,
    shapley_weights,
    variance_shares,
    waterfall_weights,
)
from expkit.analysis.effects import method_effects
from expkit.analysis.intervals import pooled_error
from expkit.analysis.linear import contrasts

FILTRATION = np.array([45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96], dtype=float)
"""Montgomery's 2^4 example in standard order: (1), a, b, ab, c, ..., abcd."""
GAME = -np.log([100, 80, 90, 66, 95, 78, 88, 70])
"""G4: times of none, A, B, AB, C, AC, BC, ABC."""


def mask(letters: str) -> int:
    return sum(1 << "abcd".index(letter) for letter in letters)


def cells_of(names: str) -> list[Cell]:
    return [(frozenset(n for i, n in enumerate(names) if m >> i & 1), "") for m in range(2 ** len(names))]


def test_effects_of_the_filtration_experiment() -> None:
    found = interactions(FILTRATION)
    expected = {
        "a": 21.625, "b": 3.125, "c": 9.875, "d": 14.625, "ab": 0.125, "ac": -18.125, "ad": 16.625, "bc": 2.375,
        "bd": -0.375, "cd": -1.125, "abc": 1.875, "abd": 4.125, "acd": -1.625, "bcd": -2.625, "abcd": 1.375,
    }  # fmt: skip
    assert {name: found[mask(name)] for name in expected} == pytest.approx(expected)
    assert main_weights(4) @ FILTRATION == pytest.approx([21.625, 3.125, 9.875, 14.625])


def test_credit_in_the_filtration_experiment() -> None:
    assert shapley_weights(4) @ FILTRATION == pytest.approx([23.083333, 4.25, 9.083333, 14.583333], abs=5e-7)
    assert leave_one_out_weights(4) @ FILTRATION == pytest.approx([26, 10, -8, 31])
    assert add_one_in_weights(4) @ FILTRATION == pytest.approx([26, 3, 23, -2])
    found = dividends(FILTRATION)
    expected = {"ab": -9, "ac": -34, "ad": 31, "bc": 9, "bd": -1, "cd": 9, "abc": 2, "abd": 11, "acd": -12,
                "bcd": -16, "abcd": 11}  # fmt: skip
    assert {name: found[mask(name)] for name in expected} == pytest.approx(expected)


def test_airbench_2x2() -> None:
    found = interactions(np.array([93.40, 93.48, 93.92, 94.01]))  # bit 0 flip, bit 1 reshuffle
    assert found[1:] == pytest.approx([0.085, 0.525, 0.005])


def test_voting_and_glove_games() -> None:
    voting = np.array([sum(w for i, w in enumerate([50, 49, 1]) if m >> i & 1) >= 51 for m in range(8)], dtype=float)
    assert shapley_weights(3) @ voting == pytest.approx([2 / 3, 1 / 6, 1 / 6])
    assert main_weights(3) @ voting == pytest.approx([3 / 4, 1 / 4, 1 / 4])
    glove = np.array([bool(m & 3) and bool(m & 4) for m in range(8)], dtype=float)
    assert shapley_weights(3) @ glove == pytest.approx([1 / 6, 1 / 6, 2 / 3])
    assert main_weights(3) @ glove == pytest.approx([1 / 4, 1 / 4, 3 / 4])


def test_credit_for_times() -> None:
    phi = shapley_weights(3) @ GAME
    assert phi == pytest.approx([0.235216, 0.116010, 0.005449], abs=5e-7)
    assert np.exp(phi) == pytest.approx([1.265181, 1.123007, 1.005464], abs=5e-7)
    assert math.exp(phi.sum()) == pytest.approx(1.428571, abs=5e-7)
    banzhaf = main_weights(3) @ GAME
    assert banzhaf == pytest.approx([0.239827, 0.120622, 0.010061], abs=5e-7)
    assert (banzhaf.sum(), phi.sum()) == pytest.approx((0.370509, 0.356675), abs=1e-6)
    assert leave_one_out_weights(3) @ GAME == pytest.approx([0.228842, 0.108214, -0.058841], abs=5e-7)
    assert add_one_in_weights(3) @ GAME == pytest.approx([0.223144, 0.105361, 0.051293], abs=5e-7)
    assert dividends(GAME)[[3, 5, 6, 7]] == pytest.approx([0.087011, -0.025975, -0.028820, -0.055338], abs=5e-7)
    together = shapley_interaction_weights(3, [(0, 1), (0, 2), (1, 2)]) @ GAME
    assert together == pytest.approx([0.059342, -0.053644, -0.056489], abs=5e-7)
    assert waterfall_weights([0, 1, 2]) @ GAME == pytest.approx([0.223144, 0.192372, -0.058841], abs=5e-7)
    assert waterfall_weights([2, 1, 0]) @ GAME == pytest.approx([0.051293, 0.076540, 0.228842], abs=5e-7)


def test_log_shares_of_the_airbench_ladder() -> None:
    """G3 and F: seconds as whitening, Dirac, scalebias, freeze, lookahead, test-time augmentation, flip, compile
    come one after the other."""
    seconds = [14.5, 8.6, 7.3, 5.5, 5.2, 4.6, 4.3, 3.95, 3.5]
    v = np.zeros(2**8)
    v[[2**i - 1 for i in range(9)]] = -np.log(seconds)  # a ladder knows the cells on its way only
    steps = waterfall_weights(range(8)) @ v
    assert math.exp(steps.sum()) == pytest.approx(4.14, abs=0.005)
    shares = np.round(100 * steps / steps.sum())
    assert shares.tolist() == [37, 12, 20, 4, 9, 5, 6, 9]


def test_weights_of_sets_agree_with_the_transforms() -> None:
    sets = list(range(1, 16))
    assert interaction_weights(4, sets) @ FILTRATION == pytest.approx(interactions(FILTRATION)[1:])
    assert dividend_weights(4, sets) @ FILTRATION == pytest.approx(dividends(FILTRATION)[1:])


def test_variance_shares_of_the_filtration_experiment() -> None:
    """Montgomery's table of contributions: A 32.6 %, AC 22.9 %, AD 19.3 %, D 14.9 %, C 6.8 % of the sum of squares."""
    share = 100 * variance_shares(FILTRATION)
    assert share.sum() == pytest.approx(100)
    found = [share[mask(name)] for name in ("a", "ac", "ad", "d", "c")]
    assert found == pytest.approx([32.6397, 22.9293, 19.2911, 14.9288, 6.80626], abs=5e-5)
    assert variance_shares(np.ones(4)).tolist() == [0, 0, 0, 0]


grids = st.integers(1, 4).flatmap(
    lambda k: arrays(float, (2**k, 3), elements=st.floats(-5, 5, allow_nan=False, width=32))
)


@given(grids)
def test_shapley_shares_out_the_total_exactly(v_CS: np.ndarray) -> None:
    k = len(v_CS).bit_length() - 1
    assert (shapley_weights(k) @ v_CS).sum(axis=0) == pytest.approx(v_CS[-1] - v_CS[0], abs=1e-9)


@given(arrays(float, (5,), elements=st.floats(-3, 3)), arrays(float, (5, 5), elements=st.floats(-3, 3)))
def test_without_three_way_terms_shapley_is_the_main_effect(main: np.ndarray, pair: np.ndarray) -> None:
    on = np.array([[m >> i & 1 for i in range(5)] for m in range(32)], dtype=float)
    v = on @ main + np.einsum("ci,cj,ij->c", on, on, np.triu(pair, 1))
    assert shapley_weights(5) @ v == pytest.approx(main_weights(5) @ v, abs=1e-9)


@given(grids)
@settings(max_examples=30)
def test_a_method_that_does_nothing_earns_nothing(v_CS: np.ndarray) -> None:
    k = len(v_CS).bit_length()
    doubled = np.concatenate((v_CS, v_CS))  # the highest bit changes nothing
    for weights in (shapley_weights(k), main_weights(k), add_one_in_weights(k), leave_one_out_weights(k)):
        assert (weights @ doubled)[-1] == pytest.approx(0, abs=1e-9)


@given(grids, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_renaming_the_methods_renames_the_credits(v_CS: np.ndarray, random: object) -> None:
    k = len(v_CS).bit_length() - 1
    order = list(range(k))
    random.shuffle(order)  # type: ignore[attr-defined]
    renamed = np.array([v_CS[sum(1 << order[i] for i in range(k) if m >> i & 1)] for m in range(2**k)])
    assert (shapley_weights(k) @ renamed) == pytest.approx((shapley_weights(k) @ v_CS)[order], abs=1e-9)


def test_the_interval_over_seeds_is_that_of_the_per_seed_contrasts() -> None:
    rng = np.random.default_rng(1)
    v_CS = rng.normal(size=(8, 5)) * np.array([1, 1, 1, 1, 1, 1, 1, 50.0])[:, None]  # not homogeneous
    assert pooled_error(v_CS) is None
    found = contrasts(main_weights(3)[0], v_CS)[0].interval
    per_seed = main_weights(3)[0] @ v_CS
    assert found.method == "t over seeds"
    assert found.hi == pytest.approx(per_seed.mean() + 2.776445 * per_seed.std(ddof=1) / math.sqrt(5), abs=1e-5)


def test_the_pooled_interval_has_the_factorial_standard_error() -> None:
    rng = np.random.default_rng(2)
    v_CS = rng.normal(size=(8, 5)) * 0.04 + rng.normal(size=5)
    found = contrasts(main_weights(3)[1], v_CS, error=pooled_error(v_CS))[0].interval
    residuals = v_CS - v_CS.mean(1, keepdims=True) - v_CS.mean(0) + v_CS.mean()
    s = math.sqrt((residuals**2).sum() / 28)
    assert found.method == "pooled t"
    half = 2.048407 * 2 * s / math.sqrt(8 * 5)  # t of 28 df; 2s / sqrt(2^k r)
    assert (found.hi or 0) - (found.value or 0) == pytest.approx(half, rel=1e-6)


def test_matched_pairs_on_a_full_grid_are_the_main_effect() -> None:
    v_CS = np.stack([GAME, GAME * 1.1, GAME + 0.01], axis=1)
    found = method_effects(cells_of("ABC"), v_CS)
    assert [e.method for e in found] == ["A", "B", "C"]
    assert [e.estimate.interval.value for e in found] == pytest.approx((main_weights(3) @ v_CS).mean(axis=1))
    assert {(e.pairs, e.planned) for e in found} == {(4, 4)}


def test_a_hole_in_the_grid_leaves_the_pairs_that_are_there() -> None:
    v_CS = np.stack([GAME, GAME, GAME], axis=1)
    v_CS[7, 1] = math.nan  # ABC is missing in the second seed
    effect = {e.method: e for e in method_effects(cells_of("ABC"), v_CS)}["A"]
    assert (effect.pairs, effect.planned, effect.estimate.interval.n) == (3, 4, 3)
    assert effect.estimate.interval.method == "t over seeds"
    cells = [c for c in cells_of("ABC") if c[0] != {"A", "B", "C"}]
    assert len(matched_pairs(cells, "A")) == 3


def test_each_level_is_judged_where_its_sisters_are_off() -> None:
    low, high = "colout[p=0.1]", "colout[p=0.2]"
    cells: list[Cell] = [(frozenset(s), "") for s in ((), (low,), (high,), ("ema",), ("ema", low), ("ema", high))]
    values = np.array([0.0, 1.0, 3.0, 10.0, 11.0, 13.0])[:, None].repeat(2, axis=1)
    effects = {e.method: e for e in method_effects(cells, values, [frozenset({low, high})])}
    assert [effects[m].estimate.interval.value for m in (low, high, "ema")] == pytest.approx([1, 3, 10])
    assert [effects[m].pairs for m in (low, high, "ema")] == [2, 2, 3]


def test_cells_pair_within_one_parameter_point_and_idle_methods_earn_nothing() -> None:
    cells: list[Cell] = [(frozenset(s), lr) for lr, s in itertools.product(("lr=1", "lr=2"), ((), ("ema",)))]
    assert matched_pairs(cells, "ema") == [(0, 1), (2, 3)]
    idle = [frozenset[str](), frozenset({"ema"}), frozenset[str](), frozenset[str]()]
    assert matched_pairs(cells, "ema", idle=idle) == [(2, 3)]
    assert full_grid(cells) is None


def test_a_full_grid_is_recognised_and_methods_that_are_always_on_are_no_part_of_it() -> None:
    cells = [(on | {"always"}, point) for on, point in cells_of("ba")]
    assert full_grid(cells) == (["a", "b"], [0, 2, 1, 3])
    assert full_grid(cells[:3]) is None
    assert full_grid([]) is None
    assert method_effects([], np.zeros((0, 3))) == ()


def test_demo_grid_of_quality() -> None:
    """G18: accuracy points of a 2^4 grid over five seeds, order LS, PR, SB, EM."""
    halves = [e.interval for e in contrasts(main_weights(4), DEMO_ACCURACY_CS)]
    assert [h.value for h in halves] == pytest.approx([0.1525, -2.575, -0.245, -0.355])
    assert [(h.hi or 0) - (h.value or 0) for h in halves] == pytest.approx(
        [0.18097, 0.52024, 0.34015, 0.06819], abs=5e-6
    )
    phi = shapley_weights(4) @ DEMO_ACCURACY_CS.mean(axis=1)
    assert phi == pytest.approx([0.10833, -2.57333, -0.27167, -0.30333], abs=5e-6)
    assert phi.sum() == pytest.approx(-3.04)


def test_demo_grid_of_cpu_time() -> None:
    """G18: ln speedup in CPU seconds at a fixed budget."""
    v_CS = -np.log(DEMO_CPU_S_CS)
    mains = [e.interval for e in contrasts(main_weights(4), v_CS)]
    assert [m.value for m in mains] == pytest.approx([-0.01270, 0.20033, -0.01679, -0.02431], abs=5e-6)
    widths = [(m.hi or 0) - (m.value or 0) for m in mains]
    assert widths == pytest.approx([0.01609, 0.04135, 0.03288, 0.03195], abs=5e-6)
    phi = shapley_weights(4) @ v_CS.mean(axis=1)
    assert phi == pytest.approx([-0.00088, 0.20614, -0.01276, -0.01763], abs=5e-6)
    assert phi.sum() == pytest.approx(0.17486, abs=1e-5)


DEMO_CPU_S_CS = np.array(
    [
        [4.2912, 4.0102, 3.9186, 4.3643, 4.1638],
        [3.9291, 3.7306, 4.1907, 3.8722, 3.7734],
        [3.183, 3.1713, 3.7263, 3.0794, 2.9176],
        [3.6132, 3.5809, 3.1137, 3.0449, 3.1207],
        [4.5037, 3.9873, 3.8429, 3.8281, 4.1916],
        [4.0779, 4.2763, 3.9635, 4.0639, 4.0372],
        [3.231, 3.4057, 3.2109, 3.1839, 3.1622],
        [3.4719, 3.3811, 3.3201, 3.1137, 3.1233],
        [4.2054, 3.9828, 3.7355, 4.0223, 3.7682],
        [4.1666, 4.1197, 4.1569, 4.1505, 4.1199],
        [3.3427, 3.4043, 3.2573, 3.0455, 3.4183],
        [3.6665, 3.4878, 3.3285, 3.3376, 3.1024],
        [3.9362, 3.78, 4.6524, 3.8138, 4.1021],
        [4.0859, 4.1315, 4.523, 3.9733, 4.1011],
        [3.3196, 3.6202, 3.5663, 3.4008, 3.225],
        [3.2974, 3.3165, 4.0463, 3.5364, 3.2666],
    ]
)
"""Row = bitmask of LS, PR, SB, EM; column = seed."""

DEMO_ACCURACY_CS = np.array(
    [
        [87.3, 86.85, 86.9, 87.2, 86.85],
        [87.5, 86.6, 86.6, 87.0, 86.75],
        [85.3, 85.05, 84.25, 84.75, 84.75],
        [85.15, 84.8, 84.45, 85.35, 84.5],
        [87.05, 86.0, 86.4, 87.0, 86.35],
        [87.45, 87.15, 86.45, 87.35, 87.05],
        [84.5, 84.5, 83.7, 85.25, 84.9],
        [84.2, 85.2, 84.0, 84.5, 84.2],
        [87.45, 86.75, 87.0, 87.55, 86.55],
        [88.1, 86.8, 86.65, 87.2, 86.7],
        [83.95, 84.45, 83.35, 83.95, 83.7],
        [84.55, 83.85, 83.85, 84.4, 84.2],
        [86.85, 85.65, 86.7, 86.9, 86.25],
        [87.05, 87.15, 86.35, 87.2, 86.85],
        [83.85, 84.1, 82.45, 84.1, 84.55],
        [83.4, 84.95, 83.55, 83.8, 84.2],
    ]
)
"""Row = bitmask of LS, PR, SB, EM; column = seed."""
