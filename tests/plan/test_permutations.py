"""Sampled orders of switching on."""

from __future__ import annotations

import math

import pytest

from expkit.plan.expand import slots
from expkit.plan.permutations import along, orders
from tests.plan.test_count import EMPTY, agrees
from tests.spec.lab import Lab


@pytest.mark.parametrize(("num", "wanted"), [(0, 3), (1, 3), (3, 4), (3, 99), (5, 16), (8, 64), (12, 7), (30, 200)])
def test_orders_are_distinct_and_all_where_there_are_few(num: int, wanted: int) -> None:
    found = orders(num, wanted)
    assert len(set(found)) == len(found) == min(wanted, math.factorial(num))
    assert all(sorted(order) == list(range(num)) for order in found)
    assert found == orders(num, wanted)


def test_more_orders_keep_those_of_fewer() -> None:
    assert orders(8, 40)[:16] == orders(8, 16)


def test_orders_come_with_their_reverse() -> None:
    found = orders(9, 32)
    assert all(found[i][::-1] == found[i + 1] for i in range(0, 32, 2))
    places = [sum(order.index(method) for order in found) for method in range(9)]
    assert set(places) == {32 * 8 // 2}  # each method stands in the middle on average


def test_sets_along_an_order() -> None:
    assert list(along((2, 0, 1))) == [0b000, 0b100, 0b101, 0b111]


def test_a_shapley_design_is_planned_and_ignores_the_order_in_the_file(lab: Lab) -> None:
    methods = ["ema: {half_life: 3ba}", "label_smoothing: {}", "progressive_resizing: {}", "nasty: {}",
               "colout: {p_row: [0.1, 0.2]}", "selective_backprop: {}"]  # fmt: skip

    def sets(listed: list[str], permutations: int) -> set[str]:
        design = f"design: {{shapley: {{permutations: {permutations}}}}}"
        sweep = lab.sweep(EMPTY + f"ablate: {{candidates: {{{', '.join(listed)}}}, {design}}}\n")
        counted = agrees(sweep)
        assert counted.steps[0].text == f"design shapley of {permutations} permutations over 6 candidates: sets"
        return {slot.arm.label for slot in slots(sweep)}

    design = "design: {shapley: {permutations: 8}}"
    rules = "constraints: [{conflicts: [ema, nasty]}]"
    made = agrees(lab.sweep(EMPTY + f"ablate: {{candidates: {{{', '.join(methods)}}}, {design}}}\n")).orders
    assert str(made) == "8 of 720 in which candidates may be switched on; credit is the mean over them"
    made = agrees(lab.sweep(EMPTY + f"ablate: {{candidates: {{{', '.join(methods)}}}, {design}, {rules}}}\n")).orders
    assert made is not None
    assert made.whole == 0  # every order ends with all on
    assert "; rules take sets out of 8, so that credit is by least squares, assuming no three-way" in str(made)
    four = sets(methods, 4)
    assert four == sets(methods[::-1], 4)
    assert four < sets(methods, 8)
    assert "none" in four
    assert len(sets(methods, 720)) == 2**5 * 3  # all orders have all sets
