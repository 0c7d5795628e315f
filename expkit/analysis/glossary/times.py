"""Statistics of time: speedups with their checks, seconds, the noise floor."""

from __future__ import annotations

from expkit.analysis.glossary.entry import Statistic

TIMES = (
    Statistic(
        "speedup",
        "Baseline time over arm time for the same budget, the geometric mean over seeds: more than one is "
        "faster. Pairs are of one seed, one setting and one driver run, and with one pair there is a ratio and "
        "no interval.",
        "S = exp(mean d), d_s = ln T_0s - ln T_cs; ends exp(mean d +- t_{1-a/2,n-1} sd(d) / sqrt n)",
        source="Student (1908), on log-time",
        where=(
            "arms[].speedup",
            "arms[].speedup_other_clock",
            "arms[].pairs",
        ),
        also=("ratio",),
    ),
    Statistic(
        "time saved",
        "The share of the baseline's time that an arm does without. It is never the speedup minus one: x1.39 "
        "is 28 % less time, not 39 %.",
        "1 - 1 / S",
    ),
    Statistic(
        "pooled error",
        "One standard deviation of log-time for all arms, about the means of arm and block, so that intervals "
        "have many degrees of freedom. It is used only where no seed is missing and Bartlett's test does not "
        "find that arms vary differently.",
        "s^2 = sum (ln T_cs - mean_c - mean_s + mean)^2 / ((C - 1)(S - 1)); half-width t_df s sqrt(2 / n)",
        source="Bartlett (1937)",
        where=("pooling",),
        also=(
            "pooled t",
            "homogeneity",
        ),
    ),
    Statistic(
        "time",
        "What an arm's whole run takes on the clock of the report, the geometric mean over its usable trials. "
        "Evaluation and checkpoints are not in it, whatever a method does on any event is.",
        "exp(mean ln T)",
        where=("arms[].time_s",),
    ),
    Statistic(
        "relative time",
        "An arm's time over that of the fastest arm at its parameter point, for reading down the column. It has no "
        "interval and compares nothing; the speedup does.",
        "T_c / min T",
        where=("arms[].relative_time",),
    ),
    Statistic(
        "setup time",
        "Seconds from the start of the process to the first batch, surgery on the model included, mean over "
        "trials. They are not in the speedup; the guard of the same name says what they would change.",
        "mean of setup_s",
        where=("arms[].setup_s",),
    ),
    Statistic(
        "clocks",
        "Seconds of one trial: train_s is billed training, cpu_s its processor time, wall_s all that passed, "
        "and parts say where train_s went. Times are compared within one setting only, and CPU time stands in "
        "where others had the machine.",
        "perf_counter, paused in evaluation; process CPU time over the same stretches",
        where=(
            "trials[].train_s",
            "trials[].cpu_s",
            "trials[].wall_s",
            "trials[].setup_s",
            "trials[].eval_s",
            "trials[].parts",
        ),
        also=(
            "train_s",
            "cpu_s",
            "wall_s",
        ),
    ),
    Statistic(
        "noise floor",
        "By how much two runs of identical code differ here, from the baseline's two runs in each block: no "
        "effect on time below it is claimed. Where identical code differs by more than chance, the floor is "
        "the farther end of the interval, so that the bias fits below it.",
        "eps = half-width of the 95 % t interval of mean ln(r0 / r1)",
        source="A/A test",
        where=("noise",),
        also=(
            "eps",
            "AA ratio",
        ),
    ),
    Statistic(
        "p of t",
        "How likely a mean log ratio at least this far from none would be, were there no effect, two-sided. It "
        "is below 1 - level exactly where the interval leaves out 1.",
        "P(|t_{n-1}| >= |mean d| sqrt n / sd(d))",
        source="Student (1908)",
        where=("arms[].checks.p",),
        also=("p value",),
    ),
    Statistic(
        "p of sign flips",
        "The share of all ways to flip the signs of the log ratios that give a mean at least as far from none; "
        "it assumes no shape. No n pairs can give less than 2 / 2^n, so five pairs never come below 0.05.",
        "#{e in {-1, 1}^n : |mean e d| >= |mean d|} / 2^n",
        source="Fisher (1935)",
        where=(
            "arms[].checks.p_sign_flip",
            "arms[].checks.p_sign_flip_least",
            "arms[].p_sign_flip",
        ),
        also=(
            "sign flip",
            "permutation test",
        ),
    ),
    Statistic(
        "Hodges-Lehmann",
        "The median of all averages of two log ratios, with the interval that Wilcoxon's signed ranks allow; "
        "one odd pair hardly moves it. There is an interval from six pairs on.",
        "median over i <= j of (d_i + d_j) / 2",
        source="Hodges and Lehmann (1963)",
        where=("arms[].checks.hodges_lehmann",),
    ),
    Statistic(
        "ratio of means",
        "Total bill against total bill: the mean time of the baseline over that of the arm, with Fieller's "
        "interval. Long runs weigh more in it than in the speedup, and it may have no bounded interval.",
        "R with (b^2 - t^2 V_bb) R^2 - 2 (a b - t^2 V_ab) R + a^2 - t^2 V_aa <= 0, a = mean T_0, b = mean T_c",
        source="Fieller (1954)",
        where=("arms[].checks.ratio_of_means",),
        also=("Fieller",),
    ),
    Statistic(
        "ratio of medians",
        "The median time of the baseline over that of the arm. It has an interval, by bootstrap, from twenty "
        "pairs on only, for below that a bootstrap covers too little.",
        "median T_0 / median T_c",
        where=("arms[].checks.ratio_of_medians",),
    ),
    Statistic(
        "unpaired speedup",
        "The same ratio from all usable times of both sides, whether or not they share a seed. What pairing is "
        "worth shows in how much wider it is.",
        "exp(mean ln T_0 - mean ln T_c), Welch's t interval with Satterthwaite's degrees of freedom",
        source="Welch (1947)",
        where=("arms[].checks.unpaired",),
        also=("Welch",),
    ),
    Statistic(
        "rho",
        "The correlation over seeds between baseline and arm, of log-time or of final quality. Pairing is "
        "worth 1 / (1 - rho) times the seeds, nothing at 0 and ever more towards 1.",
        "corr(ln T_0, ln T_c)",
        where=(
            "rho",
            "arms[].checks.rho",
        ),
        also=("correlation",),
    ),
    Statistic(
        "reference system time",
        "What an arm's trials would have taken on the machine that expkit calibrate ran on: steps by what they do, "
        "times the median seconds of such steps there. It knows nothing of the machines that trained, nor of what they "
        "stall on, so it stands beside the measured speedup and judges nothing.",
        "sum over phases of steps * median seconds; S = T_0 / T_c, errors of medians and seeds added",
        source="Kaddour et al. (2023)",
        where=("reference",),
        also=(
            "RST",
            "calibrate",
        ),
    ),
)
