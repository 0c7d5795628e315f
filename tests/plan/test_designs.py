"""Designs: which sets they list, that counting agrees with listing, and what unions do."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.plan.count import count
from expkit.plan.designs import LISTED, SIZES, Choices, design_of, num_configurations
from expkit.plan.expand import slots
from expkit.spec.draft import Method
from expkit.spec.sweep import DesignPart, Level
from expkit.spec.tree import Map, Mark
from tests.plan.test_count import EMPTY, agrees
from tests.spec.lab import Lab


def ways(levels: list[int], forced: list[bool]) -> Choices:
    """Candidates with so many levels, some of which cannot be off."""
    none: tuple[Level | None, ...] = (None,)
    made = [
        [Level(f"m{i}[{k}]", Method(f"m{i}", Map({}, Mark("", 1, 1)))) for k in range(n)] for i, n in enumerate(levels)
    ]
    return [(*(() if on else none), *levels) for levels, on in zip(made, forced, strict=True)]


@pytest.mark.parametrize(
    ("design", "sets"),
    [
        ("full", ["none", "a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]),
        ("leave_one_out", ["a+b", "a+c", "b+c", "a+b+c", "none"]),  # the baseline is added
        ("add_one_in", ["none", "a", "b", "c"]),
        ("pairwise", ["none", "a", "b", "c", "a+b", "a+c", "b+c"]),
        ("{max_size: 1}", ["none", "a", "b", "c"]),
        ("{max_size: 9}", ["none", "a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]),
        ("[leave_one_out, add_one_in]", ["none", "a", "b", "c", "a+b", "a+c", "b+c", "a+b+c"]),
        ("[add_one_in, {max_size: 2}, pairwise]", ["none", "a", "b", "c", "a+b", "a+c", "b+c"]),
    ],
)
def test_sets_of_each_design(lab: Lab, design: str, sets: list[str]) -> None:
    named = {"a": "ema", "b": "label_smoothing", "c": "progressive_resizing"}
    candidates = "{ema: {half_life: 3ba}, label_smoothing: {}, progressive_resizing: {}}"
    sweep = lab.sweep(EMPTY + f"ablate: {{candidates: {candidates}, design: {design}}}\n")
    found = {slot.arm.label for slot in slots(sweep)}
    assert found == {"+".join(named.get(part, part) for part in text.split("+")) for text in sets}
    assert agrees(sweep).sets == len(sets)


def test_levels_multiply_inside_a_design(lab: Lab) -> None:
    ablate = "{candidates: {colout: {p_row: [0.1, 0.2, 0.3]}, nasty: {whole: [1, 2]}, selective_backprop: {}}"
    assert agrees(lab.sweep(EMPTY + f"ablate: {ablate}, design: leave_one_out}}\n")).trials == 2 * (6 + 6 + 3 + 2 + 1)
    assert agrees(lab.sweep(EMPTY + f"ablate: {ablate}, design: add_one_in}}\n")).trials == 2 * (1 + 3 + 2 + 1)
    always = f"ablate: {ablate}, design: add_one_in, always: [nasty], baseline: ['nasty[whole=1]']}}\n"
    assert agrees(lab.sweep(EMPTY + always)).trials == 2 * 2 * (1 + 3 + 1)


def test_a_baseline_that_the_design_lacks_is_added_and_counted_once_a_block(lab: Lab) -> None:
    ablate = "{candidates: {colout: {}, nasty: {}, selective_backprop: {}}, design: leave_one_out, baseline: [nasty]}"
    counted = agrees(lab.sweep(EMPTY + f"ablate: {ablate}\nparameters: {{optimizer.sgd.lr: [1, 2]}}\n"))
    assert (counted.sets, counted.trials, counted.repeats) == (5, 20, 4)
    assert "the baseline nasty is no arm of the design and is added" in [step.text for step in counted.steps]


@given(
    levels=st.lists(st.integers(1, 3), min_size=0, max_size=4),
    forced=st.lists(st.booleans(), min_size=4, max_size=4),
    kinds=st.sets(st.sampled_from(sorted({*SIZES, *LISTED})), min_size=1, max_size=3),
    most=st.integers(1, 3),
    involved=st.sets(st.integers(0, 3)),
)
def test_counting_agrees_with_listing(
    levels: list[int], forced: list[bool], kinds: set[str], most: int, involved: set[int]
) -> None:
    choices = ways(levels, forced[: len(levels)])
    design = design_of([DesignPart(kind, most) for kind in kinds], choices)
    points = list(design.points(choices))
    assert len(set(points)) == len(points) == num_configurations(design, choices)
    assert all(design.holds(choices, point) for point in points)
    looked = sorted(i for i in involved if i < len(levels))
    seen = {digits: (sets, num) for digits, sets, num in design.projected(choices, looked)}
    for digits in {tuple(p[i] for i in looked) for p in points}:
        alike = [p for p in points if tuple(p[i] for i in looked) == digits]
        sets = {tuple(choices[i][d] is not None for i, d in enumerate(p)) for p in alike}
        assert seen.pop(digits) == (len(sets), len(alike))
    assert not seen
    if "full" in kinds:
        assert all(a < b for a, b in pairwise(points))


def test_a_small_design_over_many_candidates_lists_only_its_own(lab: Lab) -> None:
    many = ", ".join(f'"py:mylab.m:T{i}": {{}}' for i in range(70))
    text = EMPTY + f"ablate: {{candidates: {{{many}}}, design: pairwise}}\n"
    sweep = lab.sweep(text, trust_imports=["mylab.*"])
    assert count(sweep).trials == 2 * (1 + 70 + 70 * 69 // 2)
    assert sum(slot.role != "repeat" for slot in slots(sweep)) == count(sweep).trials
