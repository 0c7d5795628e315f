"""Statistics of time to target, by each rule, with misses as what they are."""

from __future__ import annotations

from expkit.analysis.glossary.entry import Statistic

TARGETS = (
    Statistic(
        "time to target",
        "How long a trial takes to a quality that was fixed before: the median over trials, a miss being later "
        "than any time. There is none unless more than half of the trials came, and then hits of n are shown.",
        "median T, T = inf for a miss; `> H` with H the shortest run that missed",
        where=("arms[].target_times",),
        also=(
            "hits",
            "censored",
        ),
    ),
    Statistic(
        "first",
        "The first evaluation that is at the target. The more often one looks, the sooner a lucky one is there.",
        "u_j, j = min{j : z_j >= g}",
    ),
    Statistic(
        "sustained",
        "The first of two evaluations in succession at the target, or of a last one. It is what the report "
        "goes by, for one lucky evaluation is no arrival.",
        "u_j, j = min{j : z_j >= g and z_{j+1} >= g}",
    ),
    Statistic(
        "interpolated",
        "The sustained crossing, on the straight line between the last evaluation below the target and the "
        "first one there. Where the very first evaluation is there the true time is earlier, and is said to be "
        "left-censored.",
        "u_{j-1} + (g - z_{j-1}) / (z_j - z_{j-1}) (u_j - u_{j-1})",
    ),
    Statistic(
        "to_end",
        "The first evaluation after which none misses the target, interpolated. It is the strictest rule, and "
        "more evaluations can only make it later.",
        "u_j, j = min{j : z_i >= g for all i >= j}",
    ),
    Statistic(
        "median3",
        "The first evaluation at which the median of the last three is at the target, interpolated. It looks "
        "back only, never ahead.",
        "u_j, j = min{j : median(z_{j-2}, z_{j-1}, z_j) >= g}",
    ),
    Statistic(
        "endpoint",
        "The time of a whole run that ends at the target, and a miss for one that does not. Nothing is read "
        "off the middle of a schedule, so it is what claims should rest on.",
        "u_m if z_m >= g",
    ),
    Statistic(
        "speedup to target",
        "Baseline over arm in time to target: paired where every trial came, else by a log-normal model in "
        "which misses are later than their run. With fewer hits than half on a side, or a trial that failed, "
        "there is none.",
        "exp(mu_0 - mu_c), mu the largest of sum_hits ln phi((y - mu) / s) / s + sum_misses ln(1 - Phi((ln H - "
        "mu) / s))",
        source="Tobin (1958)",
        where=(
            "arms[].target_speedup",
            "arms[].reach.speedup",
            "arms[].reach.hits",
            "arms[].reach.n",
            "arms[].reach.timed",
        ),
        also=("Tobit",),
    ),
    Statistic(
        "typical time",
        "The geometric mean of the time to target with misses as later than their run. Without misses it is "
        "the geometric mean of the times.",
        "exp(mu) of the log-normal model with censoring",
        source="Tobin (1958)",
        where=("arms[].reach.typical_s",),
    ),
    Statistic(
        "Kaplan-Meier",
        "The share of trials that are not at the target yet, over time, and the time at which it comes to a "
        "half. A trial that missed counts as long as it ran and then leaves.",
        "S(t) = prod_{t_i <= t} (1 - d_i / n_i)",
        source="Kaplan and Meier (1958)",
        where=(
            "arms[].reach.curve",
            "arms[].reach.median_s",
        ),
        also=(
            "survival",
            "median",
        ),
    ),
    Statistic(
        "restricted mean",
        "The mean time to target where nobody is waited for beyond a horizon: that of the shorter side. Misses "
        "count as the horizon, so it is a lower bound of what they would take.",
        "RMST(tau) = integral of S from 0 to tau",
        source="Royston and Parmar (2013)",
        where=(
            "arms[].reach.restricted_mean_s",
            "arms[].reach.tau_s",
        ),
        also=("RMST",),
    ),
    Statistic(
        "seconds saved",
        "The restricted mean of the baseline minus that of the arm. It says how much of the horizon is saved "
        "for an average trial, misses included.",
        "RMST_0(tau) - RMST_c(tau)",
        where=("arms[].reach.difference_s",),
        also=("saved up to the horizon",),
    ),
    Statistic(
        "log-rank",
        "How likely curves at least this different would be, were both sides equally fast to the target. It is "
        "a large-n approximation, and it compares whole curves, so where they cross it sees little.",
        "(sum (d_1i - n_1i d_i / n_i))^2 / sum v_i against chi^2 of 1 degree of freedom",
        source="Mantel (1966)",
        where=("arms[].reach.log_rank_p",),
        also=("p of log-rank",),
    ),
)
