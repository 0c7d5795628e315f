"""Statistics of quality, of quality against time, and the terms of a report."""

from __future__ import annotations

from expkit.analysis.glossary.entry import Statistic

QUALITIES = (
    Statistic(
        "quality",
        "The primary metric at an arm's last evaluation, the mean over seeds in its own unit and sign. A trial "
        "counts once, however often it was repeated for timing.",
        "mean q +- t_{n-1} sd(q) / sqrt n",
        where=(
            "arms[].quality",
            "trials[].quality",
        ),
    ),
    Statistic(
        "quality difference",
        "Arm minus baseline in the primary metric at the last evaluation, pairs by seed, signed so that more "
        "is better. Its interval is of 90 %, which makes the test of equality one of 5 %.",
        "mean (q_c - q_0) +- t_{.95,n-1} sd / sqrt n",
        source="Schuirmann (1987)",
        where=("arms[].quality_difference",),
        also=(
            "difference",
            "dq",
        ),
    ),
    Statistic(
        "non-inferiority margin",
        "How much worse in the unit of the metric still passes as not worse, as the sweep file says. Equal is "
        "an interval inside it on both sides, not worse one above its lower end, and it must be fixed before "
        "the data.",
        "equal: -delta < lo and hi < delta; not worse: lo > -delta",
        source="TOST, Schuirmann (1987)",
        where=("delta",),
        also=(
            "delta",
            "TOST",
            "equivalence",
        ),
    ),
    Statistic(
        "verdict",
        "One label an arm, from where its speedup stands to the noise floor and its quality difference to the "
        "margin. Trials that failed, a missing noise floor and red guards withhold it, for what is left would "
        "be a selection.",
        "FASTER: lo > e^eps; SLOWER: hi < e^-eps; SAME: inside; by better (lo > 0), equal or not worse, worse (hi < 0)",
        where=(
            "arms[].verdict",
            "box",
        ),
    ),
    Statistic(
        "interval",
        "Where the true value lies in so many of a hundred such sweeps, as the level says. It counts seeds, "
        "not the machine, the data set or the person.",
        "value +- quantile x standard error",
        where=("ci",),
        also=(
            "ci",
            "confidence interval",
        ),
    ),
    Statistic(
        "target",
        "The quality whose time is measured: by default the worst final quality of the baseline's pilot seeds, "
        "fixed before any other arm ran. One more baseline trial of k reaches it with probability k / (k + 1), "
        "and one set after data is called exploratory.",
        "min over pilots of the last evaluation",
        where=(
            "target.value",
            "target.seeds",
        ),
    ),
    Statistic(
        "ladder",
        "Easier targets between the baseline's first and last quality, for each budget its own where no pilot fixed "
        "them. Only the primary target carries a claim; whether the answer changes along the ladder says how much it "
        "hangs on the target.",
        "f + share (l - f), shares 90, 95 and 99 %, f and l the baseline's median first and last evaluation",
        where=("target.ladder", "target.ladders"),
        also=("rung",),
    ),
    Statistic(
        "curve",
        "A metric over training, the mean over seeds of an arm at each evaluation with its t interval. Where "
        "fewer than two seeds are there it has no band.",
        "mean q_j +- t_{n-1} sd(q_j) / sqrt n",
        where=("curves",),
    ),
    Statistic(
        "speedup at equal quality",
        "Baseline time over arm time to one quality, both read off curves through whole runs at several "
        "budgets. Only qualities that both curves reach are compared, and nothing is continued beyond them.",
        "S_c(q) = Q_0^-1(q) / Q_c^-1(q), Q monotone and linear in ln u",
        source="isotonic regression, Barlow (1972)",
        where=("equal_quality",),
        also=("equal quality",),
    ),
    Statistic(
        "outrun",
        "A baseline, shorter or not, that is faster than an arm and not worse: whole runs of both, nothing is "
        "interpolated. At the arm's own quality the arm's speedup is no more than the ratio of the two times.",
        "S_c(q_c) <= T_0(j) / T_c(k) where q_0(j) is not worse than q_c(k)",
        source="the test of non-inferiority, Schuirmann (1987)",
        where=("equal_quality[].outrun",),
        also=("dominated",),
    ),
    Statistic(
        "smooth speedup",
        "The speedup at equal quality with a monotone cubic between the budgets instead of straight lines. "
        "Where the two differ, more budgets are needed, not a better curve.",
        "the same, Q by PCHIP",
        source="Fritsch and Carlson (1980)",
        where=("equal_quality[].at[].smooth",),
        also=(
            "PCHIP",
            "by a monotone cubic",
        ),
    ),
    Statistic(
        "gain at equal time",
        "How much better an arm is than the baseline when both have the same time, read off the same curves. "
        "It is in the unit of the metric, and more is better.",
        "D_c(u) = Q_c(ln u) - Q_0(ln u)",
        where=("equal_quality[].gains",),
    ),
    Statistic(
        "probability on the front",
        "The share of resamples of the blocks in which no arm is at least as fast and as good and better in "
        "one. It is approximate, for there is no closed form.",
        "#{resamples in which c is not dominated} / #{resamples}",
        source="block bootstrap",
        where=("fronts[].probability",),
        also=(
            "beaten by no arm",
            "Pareto",
        ),
    ),
    Statistic(
        "front volume",
        "The area of log speedup by quality that the front adds beyond the baseline's time and its quality "
        "less the margin. It is one number for a whole sweep, and its unit means something only beside another "
        "sweep's.",
        "area under the front above (ln S, q) = (0, q_0 - delta)",
        source="hypervolume, Zitzler and Thiele (1999)",
        where=("fronts[].volume",),
        also=("hypervolume",),
    ),
)
