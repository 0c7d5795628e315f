"""Fractions against section D of the definition sheet, and against what the report finds in their cells."""

from __future__ import annotations

import itertools

import pytest

from expkit.analysis import aliases
from expkit.analysis.fraction import Partial
from expkit.errors import SpecError
from expkit.plan.count import count
from expkit.plan.expand import slots
from expkit.plan.fractions import GENERATORS, LETTERS, Fraction, fraction, product, sign
from tests.plan.test_count import EMPTY, agrees
from tests.spec.lab import Lab

METHODS = "ema: {half_life: 3ba}, label_smoothing: {}, progressive_resizing: {}, colout: {}, nasty: {}"


def by_letters(k: int, text: str) -> Fraction:
    """`E=ABC F=BCD` of k methods."""
    words = (sum(1 << LETTERS.index(letter) for letter in part if letter != "=") for part in text.split())
    return Fraction(k, tuple(words))


def chains(made: Fraction) -> list[tuple[str, ...]]:
    """Pairs by letters, in groups that are one number."""
    found = [tuple("".join(LETTERS[i] for i in range(made.k) if m >> i & 1) for m in g) for g in made.chains()]
    return [group for group in found if len(group[0]) == 2]


@pytest.mark.parametrize(
    ("k", "resolution", "sets"),
    [(3, 5, 8), (3, 4, 8), (3, 3, 4), (4, 5, 16), (4, 4, 8), (4, 3, 8), (5, 5, 16), (5, 4, 16), (5, 3, 8), (6, 5, 32),
     (6, 4, 16), (6, 3, 8), (7, 5, 64), (7, 4, 16), (7, 3, 8), (8, 5, 64), (8, 4, 16), (9, 5, 128), (9, 4, 32),
     (9, 3, 16), (10, 5, 128), (10, 4, 32), (10, 3, 16), (1, 3, 2), (2, 5, 4)],
)  # fmt: skip
def test_sets_per_resolution_are_those_of_the_table(k: int, resolution: int, sets: int) -> None:
    made = fraction(k, resolution)
    assert (made.num_sets, len(set(made.sets()))) == (sets, sets + made.adds_all_on)
    assert made.resolution is None or made.resolution >= resolution


def test_more_sets_of_a_resolution_leave_more_pairs_clear() -> None:
    found = [fraction(7, 4, least) for least in (0, 17, 33, 65)]
    assert [(one.num_sets, one.resolution) for one in found] == [(16, 4), (32, 4), (64, 7), (128, None)]
    assert [sum(len(group) == 1 for group in chains(one)) for one in found] == [0, 15, 21, 21]


@pytest.mark.parametrize(
    ("k", "text", "words", "pairs"),
    [
        (4, "D=ABC", ["ABCD"], [("AB", "CD"), ("AC", "BD"), ("AD", "BC")]),
        (5, "E=ABCD", ["ABCDE"], []),
        (6, "F=ABCDE", ["ABCDEF"], []),
        (6, "E=ABC F=BCD", ["ABCE", "ADEF", "BCDF"],
         [("AB", "CE"), ("AC", "BE"), ("AD", "EF"), ("AE", "BC", "DF"), ("AF", "DE"), ("BD", "CF"), ("BF", "CD")]),
        (7, "F=ABCD G=ABDE", ["CEFG", "ABCDF", "ABDEG"], [("CE", "FG"), ("CF", "EG"), ("CG", "EF")]),
        (8, "G=ABCD H=ABEF", ["ABCDG", "ABEFH", "CDEFGH"], []),
    ],
)  # fmt: skip
def test_words_and_confounded_pairs_of_section_d(
    k: int, text: str, words: list[str], pairs: list[tuple[str, ...]]
) -> None:
    made = by_letters(k, text)
    assert text in GENERATORS[k]
    assert [product(word, LETTERS).replace(" * ", "") for word in made.words] == words
    assert sorted(group for group in chains(made) if len(group) > 1) == pairs


@pytest.mark.parametrize(
    ("k", "text", "groups"),
    [(7, "E=ABC F=BCD G=ACD", [3] * 7), (8, "E=BCD F=ACD G=ABC H=ABD", [4] * 7),
     (8, "F=ABC G=ABD H=BCDE", [1] * 13 + [2] * 6 + [3])],
)  # fmt: skip
def test_chains_of_pairs_of_section_d(k: int, text: str, groups: list[int]) -> None:
    assert sorted(map(len, chains(by_letters(k, text)))) == groups


@pytest.mark.parametrize(("k", "text"), [(k, text) for k, texts in GENERATORS.items() for text in texts])
def test_the_report_finds_in_the_cells_what_the_plan_says(k: int, text: str) -> None:
    made = by_letters(k, text)
    cells = [mask for mask in made.sets() if not (made.adds_all_on and mask == 2**k - 1)]
    assert len(set(cells)) == made.num_sets
    assert 0 in cells
    assert (2**k - 1 in cells) == (not made.adds_all_on)
    assert [(w.mask, w.share) for w in aliases.words(cells, k)] == [(word, sign(word)) for word in made.words]
    assert aliases.resolution(cells, k) == made.resolution
    methods = [f"m{i}" for i in range(k)]
    part = Partial.of([(frozenset(m for i, m in enumerate(methods) if mask >> i & 1), "") for mask in made.sets()])
    assert part is not None
    assert part.regular
    assert part.words() == tuple(product(word, methods, sign(word)) for word in made.words)


def test_the_fraction_of_the_filtration_data_is_the_one_of_the_sheet() -> None:
    said = {"", "AB", "AC", "BC", "AD", "BD", "CD", "ABCD"}
    found = {"".join(LETTERS[i] for i in range(4) if mask >> i & 1) for mask in fraction(4, 4).sets()}
    assert found == said


def test_every_two_methods_are_together_apart_and_off_equally_often() -> None:
    for k in GENERATORS:
        made = fraction(k, 3)
        cells = [m for m in made.sets() if not (made.adds_all_on and m == 2**k - 1)]
        for i, j in itertools.combinations(range(k), 2):
            found = [(m >> i & 1, m >> j & 1) for m in cells]
            assert {found.count(both) for both in itertools.product((0, 1), repeat=2)} == {len(cells) // 4}


def test_a_fraction_is_planned_with_its_aliases(lab: Lab) -> None:
    sweep = lab.sweep(EMPTY + f"ablate: {{candidates: {{{METHODS}}}, design: {{fractional: {{resolution: 5}}}}}}\n")
    counted = agrees(sweep)
    assert counted.steps[0].text == "design fractional of resolution V over 5 candidates: sets"
    assert (counted.sets, counted.trials) == (17, 34)
    (made,) = counted.fractions
    assert list(made.lines()) == [
        ("fraction", "16 of 32 sets, resolution V, and the set with everything on, which is no part of it"),
        ("generator", "nasty = - ema * label_smoothing * progressive_resizing * colout"),
        ("clear", "5 of 5 main effects, 10 of 10 pairs"),
    ]
    three = lab.sweep(EMPTY + f"ablate: {{candidates: {{{METHODS}}}, design: {{fractional: {{resolution: 3}}}}}}\n")
    (made,) = agrees(three).fractions
    assert made.resolution == 3
    assert ("ema", "- label_smoothing * colout", "- progressive_resizing * nasty") in made.aliases
    assert made.clear_methods == ()


def test_levels_and_points_multiply_a_fraction(lab: Lab) -> None:
    methods = METHODS.replace("colout: {}", "colout: {p_row: [0.1, 0.2]}")
    design = "design: {fractional: {resolution: 5}}, always: [nasty], baseline: [nasty]"
    text = EMPTY + f"ablate: {{candidates: {{{methods}}}, {design}}}\nbudgets: {{ssr: [0.5, 1]}}\n"
    counted = agrees(lab.sweep(text))
    assert (counted.sets, counted.trials) == (16, (8 + 2 * 8) * 2 * 2)
    assert counted.fractions[0].resolution is None
    assert next(counted.fractions[0].lines()) == ("fraction", "16 of 16 sets, all sets")


def test_a_fraction_that_meets_a_rule_is_refused_with_the_runs_it_would_lose(lab: Lab) -> None:
    def said(more: str, after: str = "") -> str:
        design = f"design: {{fractional: {{resolution: 5}}}}{more}"
        with pytest.raises(SpecError) as caught:
            count(lab.sweep(EMPTY + f"ablate: {{candidates: {{{METHODS}}}, {design}}}\n{after}"))
        return str(caught.value)

    conflict = ", constraints: [{conflicts: [ema, colout]}]"
    assert "ablate.design: a fraction must be whole, but conflict ema-colout would take 10 of its 34 runs" in said(
        conflict
    )
    budgets = "budgets: {ssr: [0.5, 1, 2]}\n"
    when = "exclude: [{when: \"has('ema') and trainer.ssr > 1.5\"}]\n"
    assert "but exclude has('ema') and trainer.ssr > 1.5 would take 18 of its 102 runs" in said("", budgets + when)
    whole = f"ablate: {{candidates: {{{METHODS}}}, design: {{fractional: {{resolution: 5}}}}}}\n{budgets}"
    counted = agrees(lab.sweep(EMPTY + whole + 'exclude: [{when: "trainer.ssr > 1.5"}]\n'))
    assert counted.trials == 17 * 2 * 2  # a point without any arm is no hole


def test_more_than_ten_candidates_have_no_fraction(lab: Lab) -> None:
    many = ", ".join(f'"py:mylab.m:T{i}": {{}}' for i in range(11))
    text = EMPTY + f"ablate: {{candidates: {{{many}}}, design: {{fractional: {{resolution: 4}}}}}}\n"
    with pytest.raises(SpecError, match="a fraction has at most 10 candidates, but there are 11; take pairwise or"):
        count(lab.sweep(text, trust_imports=["mylab.*"]))


def test_how_many_sets_a_fraction_has_may_be_said(lab: Lab) -> None:
    design = "{fractional: {resolution: 3, sets: 16}}"
    counted = agrees(lab.sweep(EMPTY + f"ablate: {{candidates: {{{METHODS}}}, design: {design}}}\n"))
    assert counted.steps[0].text == "design fractional of resolution III in at least 16 sets over 5 candidates: sets"
    assert (counted.fractions[0].sets, counted.fractions[0].resolution) == (16, 5)


def test_a_fraction_is_united_with_other_designs(lab: Lab) -> None:
    design = "[{fractional: {resolution: 5}}, leave_one_out]"
    counted = agrees(lab.sweep(EMPTY + f"ablate: {{candidates: {{{METHODS}}}, design: {design}}}\n"))
    assert counted.steps[0].text.startswith("design fractional of resolution V and leave_one_out over")
    assert counted.sets == 16 + 6 - 5  # the sets of four are in both


def test_ten_methods_take_no_time(lab: Lab) -> None:
    many = ", ".join(f'"py:mylab.m:T{i}": {{}}' for i in range(10))
    text = EMPTY + f"ablate: {{candidates: {{{many}}}, design: {{fractional: {{resolution: 5}}}}}}\n"
    sweep = lab.sweep(text, trust_imports=["mylab.*"])
    assert count(sweep).sets == 129
    assert sum(slot.role != "repeat" for slot in slots(sweep)) == 258
