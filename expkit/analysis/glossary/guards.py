"""What each guard looks for, by its name in the report; the number that it shows is what stands as formula."""

from __future__ import annotations

from expkit.analysis.glossary.entry import Statistic

GUARDS = (
    Statistic(
        "target",
        "A target that was chosen after the curves were seen can make any arm win. Amber where it was set or "
        "changed after the first arm started, or there is none.",
        "the target",
    ),
    Statistic(
        "fixed in advance",
        "Adding seeds until the interval pleases, or taking another metric, finds effects that are not there. "
        "Amber where seeds, metric, mode, clock or margin were named or changed after the first arm started.",
        "seeds that were named in advance",
    ),
    Statistic(
        "schedules ended",
        "A value read off the middle of a schedule is worse than the same budget gives with its rate decayed. "
        "Red where a run ended below 95 % of its schedule.",
        "smallest share: batches done / batches planned",
    ),
    Statistic(
        "one unit",
        "A schedule that counts seconds is another schedule for a faster method. Amber where budget and "
        "schedules mix work and clock, red where budgets are in different units.",
        "units beside the budget's",
    ),
    Statistic(
        "noise floor",
        "Two runs of identical code differ too, and an effect below that is none. Red without two A/A pairs, "
        "amber where the floor is above 20 % or identical code differs by more than chance.",
        "eps, in log-time",
    ),
    Statistic(
        "contention",
        "Whoever shares the machine slows some arms and not others. Red where the clock of the headline "
        "suffers from it, amber where CPU time stands in.",
        "median of wall / CPU time",
    ),
    Statistic(
        "drift",
        "A machine that warms up or slows down favours what ran early. Amber where the reference workload "
        "moved by more than 10 % around a trial, or the baseline's time has a trend beyond chance.",
        "replicates, or the trend over the sweep in log-time",
    ),
    Statistic(
        "outliers",
        "A time far off its arm's median tells of the machine, and with few seeds it moves the mean. Amber where "
        "one is ten standard deviations away, were times normal; none is left out for it.",
        "|ln T - median| / median |ln T - median| > 14.826",
        source="hyperfine",
    ),
    Statistic(
        "timing",
        "Seconds of a trial that went on from a checkpoint, or ran beside others, are not its own. Amber where "
        "such times are left out, red where all are.",
        "replicates left out",
    ),
    Statistic(
        "clocks",
        "A clock that is set while a trial runs, or read before an accelerator is done, gives seconds that "
        "never were. Red where one ran backwards, or training took longer than the wall clock.",
        "replicates with such a clock",
    ),
    Statistic(
        "off the clock",
        "Work that is moved to where the clock is paused is work all the same. Amber where an arm spends more "
        "than 2 % of its time beyond the baseline's in evaluation and callbacks, beyond chance.",
        "largest share: excess seconds / train_s",
    ),
    Statistic(
        "setup",
        "Compilation and surgery are not in the ratio, and may cost what the method saves. Amber where "
        "including them moves a speedup by more than 2 % and the noise floor.",
        "speedup with setup and compilation, of the arm that it moves most",
    ),
    Statistic(
        "blocks",
        "An arm and its baseline are compared within a block, so a hole costs a pair. Amber where a block "
        "lacks a replicate.",
        "share of blocks that are complete",
    ),
    Statistic(
        "seeds",
        "One or three seeds see nothing but large effects. Red without two pairs, amber below five.",
        "smallest speedup found with 80 % power: d with P(|t_{n-1}(d sqrt n / sd)| > t_crit) = 0.8",
        also=(
            "minimum detectable speedup",
            "MDE",
        ),
    ),
    Statistic(
        "winner",
        "The best of many equal arms looks faster by chance alone. Amber until the fastest was run again on "
        "fresh seeds and was faster there too; of several confirmations only the latest counts, and stays amber.",
        "exp(s / sqrt n x E max of m normals), or the confirmed speedup",
        also=("best of n",),
    ),
    Statistic(
        "tuning",
        "Whoever is tuned more looks better. Amber where baseline and methods were tried at different numbers "
        "of settings; what was tried before the sweep is not recorded.",
        "settings tried for the baseline",
    ),
    Statistic(
        "convergence",
        "Between a sweep and the pilots that fixed its target the baseline should not have changed. Amber where it "
        "needs fewer samples to the target than MLPerf's reference convergence check would let pass.",
        "mean - t_{.95,n+m-2} s sqrt(1/n + 1/m), without fastest and slowest",
        source="mlcommons/training_policies, mlcommons/logging (2026)",
        also=("RCP",),
    ),
    Statistic(
        "direction",
        "A mean of ratios depends on which side is on top, a mean of log ratios does not. Red where a speedup "
        "is not the inverse of the ratio the other way round.",
        "the largest speedup",
    ),
    Statistic(
        "failures",
        "Trials that crashed or diverged are results, and leaving them out is a selection. Amber where some "
        "did, red where no trial is complete.",
        "trials that failed or diverged",
    ),
    Statistic(
        "setting",
        "Seconds on two machines are not the same seconds. Amber where trials ran in several settings, and "
        "then only times of one are compared.",
        "settings",
    ),
    Statistic(
        "code",
        "Arms that ran different code differ by more than their methods. Amber where versions are mixed, or no "
        "commit has what ran.",
        "versions of the module that has most",
    ),
    Statistic(
        "files",
        "What is left of a damaged series is not what was measured. Amber where metrics are left out, red "
        "where the plan cannot be read.",
        "files, or replicates left out",
    ),
    Statistic(
        "same seed",
        "A seed that does not fix everything makes pairs that are none. Amber where two runs of one trial in "
        "one setting do not give the same curve, bit by bit.",
        "share of repeated trials with equal curves",
    ),
    Statistic(
        "methods applied",
        "A method that found nothing to do makes a second baseline. Amber where one did nothing in an arm.",
        "arms with such a method",
    ),
    Statistic(
        "less work",
        "Fewer samples or operations are no speedup. Amber where an arm's backward passes are shorter and its "
        "whole run is not.",
        "largest factor of work saved without time",
    ),
    Statistic(
        "overlap",
        "Speedups of single methods do not multiply where methods save the same time. Amber where all together "
        "differ from the product of singles beyond chance and the noise floor.",
        "together / product of singles",
    ),
    Statistic(
        "metric",
        "A method that changes the loss cannot be judged by it. Amber where the primary is of training data, "
        "or a loss while methods train on other targets.",
        "methods that change the targets",
    ),
    Statistic(
        "test split",
        "Choosing on the test split leaves nothing unseen. Amber where arms are compared on it.",
        "times that arms were compared on it",
    ),
    Statistic(
        "evaluation points",
        "Who is looked at more often crosses a target sooner. Amber where runs of one budget were evaluated at "
        "different points, or one first crossing of ten does not last.",
        "share of first crossings that the next evaluation confirms",
    ),
    Statistic(
        "evaluation resolution",
        "A crossing lies somewhere between two evaluations. Amber where they are more than 2 % of the time to "
        "target apart.",
        "median of bracket / time to target",
    ),
    Statistic(
        "hits",
        "Trials that never reach the target are later, not absent. Amber where some did not.",
        "share of trials that reached it",
    ),
    Statistic(
        "scope",
        "One workload on one machine says nothing of others. Amber below two of each.",
        "workloads",
    ),
)
