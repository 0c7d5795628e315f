"""Statistics of what was chosen: the same on fresh seeds, several at once, and looks before all seeds are in."""

from __future__ import annotations

from expkit.analysis.glossary.entry import Statistic

CONFIRMED = (
    Statistic(
        "confirmed speedup",
        "The speedup of a chosen arm on seeds that nothing was chosen by, judged on test data where there is some. The "
        "fastest of many arms is partly the luckiest, so what it was in the sweep is too great on average.",
        "as speedup, over seeds from sha256(confirm, i) above 2^31; the best of m gains s / sqrt(n) E max of m normals",
        where=("confirmation",),
        also=("confirmation", "fresh seeds"),
    ),
    Statistic(
        "joint level",
        "The level of each confirmed interval, raised so that all of them hold together with the sweep's own. It makes "
        "each wider, and is the plain level where one arm is confirmed.",
        "1 - (1 - ci) / m",
        source="Bonferroni (1936)",
        where=("confirmation.level",),
        also=("Bonferroni",),
    ),
    Statistic(
        "Holm",
        "The p value of a confirmed speedup, adjusted for how many arms are confirmed. Claiming every arm below 0.05 "
        "makes one false claim or more in at most one of twenty confirmations.",
        "max over j <= i of min(1, (m - j + 1) p_(j))",
        source="Holm (1979)",
        where=("confirmation.arms[].p_holm",),
        also=("adjusted p",),
    ),
    Statistic(
        "alpha spending",
        "How much of the error is used up at each look at a sweep that still grows, so that all looks together err no "
        "more often than one would. Looks are named in advance, and the interval of each has a level of its own.",
        "per tail a = alpha / 2: 2 - 2 Phi(z_{a/2} / sqrt t) (O'Brien-Fleming type), a ln(1 + (e - 1) t) (Pocock type)",
        source="Lan and DeMets (1983)",
        also=("looks", "group sequential"),
    ),
)  # fmt: skip
