"""Aliases of the fractions in section D of the definition sheet, words and chains by letters."""

from __future__ import annotations

import itertools

import pytest

from expkit.analysis.aliases import aliases, chains, characteristics, is_regular, resolution, words


def mask(letters: str) -> int:
    return sum(1 << "ABCDEFGHJKL".index(letter) for letter in letters)


def letters(found: int) -> str:
    return "".join(letter for i, letter in enumerate("ABCDEFGHJKL") if found >> i & 1)


def fraction(k: int, *generators: str) -> list[int]:
    """Cells of 2^(k - p): `D=ABC` says that D is the product of A, B and C, in -1 and +1."""
    base = k - len(generators)
    cells = []
    for cell in range(2**base):
        for generator in generators:
            new, _, product = generator.partition("=")
            off = sum(1 for letter in product if not cell & mask(letter))
            cell |= mask(new) * (off % 2 == 0)
        cells.append(cell)
    return cells


def confounded(cells: list[int], k: int) -> set[str]:
    chained = [chain for chain in chains(cells, k) if len(chain) > 1]
    return {"=".join(sorted(map(letters, chain))) for chain in chained}


def test_half_fractions() -> None:
    four = fraction(4, "D=ABC")
    assert sorted(four) == sorted(map(mask, ["", "AB", "AC", "BC", "AD", "BD", "CD", "ABCD"]))
    assert [letters(w.mask) for w in words(four, 4)] == ["ABCD"]
    assert resolution(four, 4) == 4
    assert confounded(four, 4) == {"AB=CD", "AC=BD", "AD=BC"}
    five, six = fraction(5, "E=ABCD"), fraction(6, "F=ABCDE")
    assert (resolution(five, 5), confounded(five, 5)) == (5, set())
    assert [letters(a.mask) for a in aliases(five, 5, mask("A"))] == []
    assert [letters(a.mask) for a in aliases(five, 5, mask("A"), most=4)] == ["BCDE"]
    assert [letters(a.mask) for a in aliases(five, 5, mask("AB"))] == ["CDE"]
    assert (resolution(six, 6), confounded(six, 6)) == (6, set())


def test_quarter_of_six() -> None:
    cells = fraction(6, "E=ABC", "F=BCD")
    assert [letters(w.mask) for w in words(cells, 6)] == ["ABCE", "ADEF", "BCDF"]
    assert confounded(cells, 6) == {"AB=CE", "AC=BE", "AD=EF", "AE=BC=DF", "AF=DE", "BD=CF", "BF=CD"}


@pytest.mark.parametrize(
    ("k", "generators", "clear", "groups"),
    [
        (7, ("E=ABC", "F=BCD", "G=ACD"), 0, [3] * 7),
        (7, ("F=ABCD", "G=ABDE"), 15, [2] * 3),
        (8, ("G=ABCD", "H=ABEF"), 28, []),
        (8, ("F=ABC", "G=ABD", "H=BCDE"), 13, None),
        (8, ("E=BCD", "F=ACD", "G=ABC", "H=ABD"), 0, [4] * 7),
    ],
)
def test_how_many_pairs_are_clear(k: int, generators: tuple[str, ...], clear: int, groups: list[int] | None) -> None:
    cells = fraction(k, *generators)
    found = chains(cells, k)
    assert sum(len(chain) == 1 for chain in found) == clear
    assert groups is None or [len(chain) for chain in found if len(chain) > 1] == groups
    assert is_regular(cells, k)


def test_the_three_confounded_pairs_of_two_to_the_seven_minus_two() -> None:
    cells = fraction(7, "F=ABCD", "G=ABDE")
    assert confounded(cells, 7) == {"CE=FG", "CF=EG", "CG=EF"}


def test_plackett_and_burman_alias_every_main_effect_with_every_pair_without_it_in_part() -> None:
    row = "++-+++---+-"
    cells = [sum(1 << j for j in range(11) if row[(j - i) % 11] == "+") for i in range(11)] + [0]
    assert len(set(cells)) == 12
    assert not is_regular(cells, 11)
    assert [w.mask.bit_count() for w in words(cells, 11)] == [11]  # constant by chance, and no generator
    assert resolution(cells, 11) == 3
    found = {a.mask: a.share for a in aliases(cells, 11, mask("A"), most=2)}
    pairs = [1 << i | 1 << j for i, j in itertools.combinations(range(1, 11), 2)]
    assert sorted(found) == sorted(pairs)
    assert {round(abs(share), 12) for share in found.values()} == {round(1 / 3, 12)}


def test_a_full_grid_has_no_words_and_a_hole_aliases_a_little_of_everything() -> None:
    assert words(range(8), 3) == ()
    assert resolution(range(8), 3) is None
    assert aliases(range(8), 3, mask("A")) == ()
    holed = aliases(range(7), 3, mask("A"))
    assert {round(abs(a.share), 6) for a in holed} == {round(1 / 7, 6)}
    assert characteristics(range(8), 3).tolist() == [8, 0, 0, 0, 0, 0, 0, 0]
