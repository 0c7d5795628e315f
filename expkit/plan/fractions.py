"""Regular fractions of two-level designs of up to 10 methods: which sets they have, and what they cannot tell apart.

Bit i of a mask is method i; methods have the letters A to H, J, K. A word is a set of methods of which every set of the
fraction has an even number, so the fraction holds the set with nothing on. With signs of -1 for off and +1 for on, the
column of a word is constant: +1 where its length is even, else -1; effects of two sets that differ by a word are one
number. Generators: Box, Hunter and Hunter (2005), Statistics for Experimenters, table 6.22; minimum aberration.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import xor

LETTERS = "ABCDEFGHJK"
MAX_METHODS = len(LETTERS)
GENERATORS: Mapping[int, tuple[str, ...]] = {
    3: ("C=AB",),
    4: ("D=ABC",),
    5: ("E=ABCD", "D=AB E=AC"),
    6: ("F=ABCDE", "E=ABC F=BCD", "D=AB E=AC F=BC"),
    7: ("G=ABCDEF", "F=ABCD G=ABDE", "E=ABC F=BCD G=ACD", "D=AB E=AC F=BC G=ABC"),
    8: ("H=ABCDEFG", "G=ABCD H=ABEF", "F=ABC G=ABD H=BCDE", "E=BCD F=ACD G=ABC H=ABD"),
    9: ("J=ABCDEFGH", "H=ACDFG J=BCEFG", "G=ABCD H=ACEF J=CDEF", "F=BCDE G=ACDE H=ABDE J=ABCE",
        "E=ABC F=BCD G=ACD H=ABD J=ABCD"),
    10: ("K=ABCDEFGHJ", "J=ABCDEF K=ABCDGH", "H=ABCG J=BCDE K=ACDF", "G=BCDF H=ACDF J=ABDE K=ABCE",
         "F=ABCD G=ABCE H=ABDE J=ACDE K=BCDE", "E=ABC F=BCD G=ACD H=ABD J=ABCD K=AB"),
}  # fmt: skip
"""Methods -> the half, the quarter, and so on."""


@dataclass(frozen=True)
class Fraction:
    """A 2^(k-p) design; `generators` are the words that make it, none for the full grid."""

    k: int
    generators: tuple[int, ...] = ()

    @property
    def num_sets(self) -> int:
        """Sets that it has, without one that is added."""
        return 1 << self.k - len(self.generators)

    @cached_property
    def words(self) -> tuple[int, ...]:
        """The defining relation, shortest first: all products of generators."""
        found = [reduce(xor, some) for n in range(1, len(self.generators) + 1) for some in
                 itertools.combinations(self.generators, n)]  # fmt: skip
        return tuple(sorted(found, key=lambda word: (word.bit_count(), members(word))))

    @property
    def resolution(self) -> int | None:
        """Methods of the shortest word, None for the full grid."""
        return self.words[0].bit_count() if self.words else None

    @property
    def adds_all_on(self) -> bool:
        """Whether the set with everything on is no part of it: some word has an odd number of methods."""
        return any(word.bit_count() % 2 for word in self.words)

    def sets(self) -> Iterator[int]:
        """All of its sets, and the one with everything on."""
        made = [(word, word.bit_length() - 1) for word in self.generators]  # a generator's last letter is made
        free = [i for i in range(self.k) if i not in {last for _, last in made}]
        for chosen in range(1 << len(free)):
            mask = sum(1 << i for n, i in enumerate(free) if chosen >> n & 1)
            yield mask | sum(1 << last for word, last in made if (mask & word).bit_count() % 2)
        if self.adds_all_on:
            yield (1 << self.k) - 1

    def chains(self, order: int = 2) -> list[tuple[int, ...]]:
        """Sets of one to `order` methods in groups that are one number each, a group of one where nothing is shared."""
        found: dict[int, list[int]] = {}
        for size in range(1, order + 1):
            for chosen in itertools.combinations(range(self.k), size):
                mask = sum(1 << i for i in chosen)
                found.setdefault(min([mask, *(mask ^ word for word in self.words)]), []).append(mask)
        return [tuple(group) for group in found.values()]


def sign(one: int, other: int = 0) -> int:
    """How the effect of one set stands to that of another that differs by a word: +1 or -1."""
    return -1 if (one ^ other).bit_count() % 2 else 1


def fraction(k: int, resolution: int, least: int = 0) -> Fraction:
    """The smallest fraction of k methods, at most 10, of this resolution and in so many sets; full where there is none.

    More sets of one resolution leave more pairs clear.
    """
    assert k <= MAX_METHODS, f"{k} methods are beyond the table"
    halves = [Fraction(k, tuple(map(_word, text.split()))) for text in GENERATORS.get(k, ())]
    good = [one for one in halves if (one.resolution or 0) >= resolution and one.num_sets >= least]
    return min(good, key=lambda one: one.num_sets, default=Fraction(k))


def members(mask: int) -> tuple[int, ...]:
    """The methods of a set, by number."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def product(mask: int, labels: Sequence[str], sign: int = 1) -> str:
    """`a * b`, `- a * b`."""
    return ("- " if sign < 0 else "") + " * ".join(labels[i] for i in members(mask))


def _word(text: str) -> int:
    """`D=ABC` as the set ABCD."""
    return sum(1 << LETTERS.index(letter) for letter in text if letter != "=")
