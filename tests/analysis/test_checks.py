"""Whether the conclusion hangs on the estimator: the checks beside a paired speedup."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.analysis.checks import checks
from expkit.analysis.estimates import Checks
from expkit.analysis.pairs import Pairs, unpaired_times
from expkit.analysis.replicate import Replicate
from expkit.analysis.speedup import paired, ratio_of_means, welch


def of(base: list[float], arm: list[float]) -> Checks:
    pairs = Pairs(tuple(range(len(base))), tuple(base), tuple(arm))
    return checks(paired(base, arm), pairs, (base, arm), 0.95)


def test_all_of_the_worked_example() -> None:
    base, arm = [102.0, 98, 110, 105, 95], [88.0, 86, 93, 92, 83]
    found = of(base, arm)
    assert (found.p_sign_flip, found.p_sign_flip_least) == (0.0625, 0.0625)
    assert found.rho == pytest.approx(0.974327, abs=5e-7)
    assert found.ratio_of_means == ratio_of_means(base, arm)
    assert found.unpaired == welch(base, arm).ratio
    assert found.ratio_of_medians.lo is None
    assert found.hodges_lehmann.lo is None
    assert found.sentence == ""  # with five pairs neither the sign flips nor Wilcoxon's interval can disagree


def test_a_wild_pair_is_named_as_what_parts_the_estimators() -> None:
    base = np.exp([0.10, 0.11, 0.09, 0.12, 0.10, 0.08, 0.11, 3.0]).tolist()
    found = of(base, [1.0] * 8)
    assert found.p is not None and found.p > 0.05
    assert found.hodges_lehmann.lo is not None and found.hodges_lehmann.lo > 1
    assert found.sentence.startswith("The interval does not exclude 1; Hodges-Lehmann and the sign-flip test do:")


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_pairs_give_values_or_nothing(n: int) -> None:
    found = of([2.0] * n, [1.0] * n)
    assert found.ratio_of_means.n == n
    assert found.sentence == ""
    assert (found.p is None) == (n < 2)


def trial(id: str, seconds: float, setting: str = "s", number: int = 0, state: str = "complete") -> Replicate:
    return Replicate(id, number, "a", "arm", 0, 0, state, setting=setting, threads=2, clocks={"train_s": seconds})


def test_unpaired_times_are_of_the_session_that_has_most_of_both() -> None:
    base = [trial("b0", 4.0), trial("b0", 1.0, number=1), trial("b1", 3.0), trial("b2", 9.0, "other")]
    arm = [trial("a5", 2.0), trial("a6", 1.0), trial("a7", 7.0, "other"), trial("a8", 1.0, state="failed")]
    t0, tc = unpaired_times(arm, base, "train_s")
    assert t0 == pytest.approx((2.0, 3.0))
    assert tc == pytest.approx((2.0, 1.0))
    assert unpaired_times([trial("a", 1.0, "x")], base, "train_s") == ((), ())
    assert unpaired_times(arm, [trial("b", math.nan)], "train_s")[0] == ()


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=8), st.randoms())
def test_the_order_of_blocks_does_not_matter(pairs: list[tuple[float, float]], random: Random) -> None:
    shuffled = random.sample(pairs, len(pairs))
    one, other = (of(*(list(side) for side in zip(*p, strict=True))) for p in (pairs, shuffled))
    assert one.p_sign_flip == other.p_sign_flip
    for name in ("hodges_lehmann", "ratio_of_means", "ratio_of_medians", "unpaired"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.value == pytest.approx(b.value)
        assert (a.lo is None) == (b.lo is None)
        if a.lo is not None:
            assert (a.lo, a.hi) == pytest.approx((b.lo, b.hi), rel=1e-6, abs=1e-9)
