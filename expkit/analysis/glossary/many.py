"""Statistics of many arms at once, of what a sweep could have shown, and of what it cost."""

from __future__ import annotations

from expkit.analysis.glossary.entry import Statistic

MANY = (
    Statistic(
        "p among all arms",
        "The p value of an arm's speedup, adjusted for how many arms are looked at: Dunnett's where one error "
        "serves all of them, else Holm's. Claiming every arm below 0.05 makes one false claim or more in at "
        "most one of twenty sweeps.",
        "P(max_c |T_c| >= |t|), T multivariate t with correlation 1/2; else max over j <= i of (m - j + 1) p_(j)",
        source="Dunnett (1955), Holm (1979)",
        where=(
            "many.arms[].p",
            "many.arms[].p_confirmatory",
        ),
        also=("Dunnett",),
    ),
    Statistic(
        "simultaneous interval",
        "The interval of an arm's speedup, widened so that the intervals of all arms hold together. The "
        "verdict goes by the arm's own interval; this one is for whoever picks an arm after looking.",
        "exp(mean d +- c s sqrt(2 / n)), P(max_c |T_c| <= c) = level; Bonferroni's without a common error",
        source="Dunnett (1955)",
        where=("many.arms[].simultaneous",),
    ),
    Statistic(
        "probability of improvement",
        "The share of blocks in which an arm is faster than its baseline, ties half. Better means an interval "
        "above one half and a share of three quarters or more, which takes 29 blocks to show.",
        "P(T_c < T_0) + P(T_c = T_0) / 2",
        source="Bouthillier et al. (2021), Noether (1987)",
        where=(
            "many.arms[].improvement",
            "many.sensitivity.blocks_of_improvement",
        ),
        also=(
            "POI",
            "Noether",
        ),
    ),
    Statistic(
        "sooner",
        "The probability that a trial of the arm is at the target before one of the baseline, whether or not "
        "they share a seed. Whoever never gets there is last, so misses count as what they are.",
        "U / (n_0 n_c)",
        source="Mann and Whitney (1947)",
        where=(
            "many.arms[].sooner",
            "many.arms[].sooner_p",
        ),
        also=("Mann-Whitney",),
    ),
    Statistic(
        "p of not worse",
        "How likely a quality at least this good would be, were the arm worse by the margin or more, "
        "one-sided. The p value of equality is the larger of this test and its mirror image.",
        "P(t_{n-1} >= (mean + delta) sqrt n / sd)",
        source="Schuirmann (1987)",
        where=(
            "many.arms[].p_not_worse",
            "many.arms[].p_equal",
        ),
        also=("p of equality",),
    ),
    Statistic(
        "set of the best",
        "The arms that cannot be told from the best one, with how much of its lead the best of so many equal "
        "arms would have by luck. The shrunk value is drawn towards the mean of all arms as far as their "
        "spread is noise.",
        "c is in while mean_c >= max mean_b - d s sqrt(2 / n); luck: s / sqrt n E max of m normals",
        source="Hsu (1981)",
        where=("many.best",),
        also=(
            "Hsu",
            "tied",
            "shrunk",
        ),
    ),
    Statistic(
        "detectable speedup",
        "The smallest speedup of an arm, and the smallest main effect, that this sweep would find in four of "
        "five repetitions. What is smaller and was not found has not been shown to be absent.",
        "exp(d), P(|t_df(d / error)| > t_crit) = 0.8, error = s sqrt(2 / n) or 2 s / sqrt(2^k n)",
        where=("many.sensitivity",),
        also=(
            "minimum detectable speedup",
            "MDE",
            "power",
        ),
    ),
    Statistic(
        "seeds needed",
        "How many seeds an arm would take to show a given speedup in four of five repetitions, at the noise of "
        "this sweep. Halving what is to be seen takes four times the seeds.",
        "smallest n with P(|t_df(ln S / (s sqrt(2 / n)))| > t_crit) >= 0.8",
        where=("many.sensitivity.seeds",),
    ),
    Statistic(
        "warm-up",
        "Seconds of the train clock before steps take equally long, median over the baseline's trials that "
        "come to a steady state. Nothing is discarded for it; how many trials never become steady is said.",
        "change points of log step time, least squares with a penalty a segment",
        source="Barrett et al. (2017), Killick et al. (2012)",
        where=("many.steadiness",),
        also=("steady state",),
    ),
    Statistic(
        "expected best",
        "The expected best quality of n configurations tried, for one set of methods. Compare curves at equal "
        "n, for whoever is tried more looks better.",
        "sum_i q_(i) C(i - 1, n - 1) / C(N, n)",
        source="Dodge et al. (2019), unbiased",
        where=("many.tuning",),
        also=("expected best of n",),
    ),
    Statistic(
        "cost",
        "The bill of the whole claim: seconds, energy and money of all replicates, pilots and failures too. "
        "Energy is measured where every trial logged its power, else modelled from the watts of the sweep "
        "file.",
        "kWh = sum P dt / 3.6e6; price = hours x rate + kWh x tariff",
        where=("many.cost",),
        also=(
            "energy",
            "price",
        ),
    ),
)
