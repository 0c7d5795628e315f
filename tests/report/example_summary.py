"""Summaries made by hand: 8 arms x 5 seeds with misses, a failure and a withheld arm; an empty one; one of failures."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from expkit.analysis.comparisons import Many
from expkit.analysis.contributions import Credit
from expkit.analysis.estimates import Checks, Pooling
from expkit.analysis.model import (
    SCHEMA_VERSION,
    Arm,
    Curve,
    Effect,
    Failure,
    Guard,
    Interval,
    Noise,
    Summary,
    TargetInfo,
    TargetTime,
    TrialRow,
)
from tests.report import example_credit

METHODS = ("ema", "label_smoothing", "progressive_resizing")
SEEDS = (17, 18, 19, 20, 21)
LOG_SPEED = {"ema": -0.045, "label_smoothing": -0.004, "progressive_resizing": 0.205}
QUALITY = {"ema": 0.0061, "label_smoothing": 0.0021, "progressive_resizing": -0.0208}
TARGET = 0.8412

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "a|b`c`*d*_e_[f](javascript:alert(1))~g~\\|",
    "two\nlines\r\nand\ttabs",
    "\u202egnp.exe\u2066bidi\u2069\u200b",
    "\x1b[31mred\x1b[0m\x07\x1b]8;;http://x\x07link\x1b]8;;\x07",
    "👩‍🔬🚀 ünïcödé 模型",
    "</script></svg></style><script>alert(1)</script>",
    "x" * 200,
)


def example() -> Summary:
    """A full grid of three methods, complete but for one failed trial."""
    arms = tuple(_arm(methods) for k in range(4) for methods in itertools.combinations(METHODS, k))
    return Summary(
        schema_version=SCHEMA_VERSION,
        sweep="ablate",
        generated_utc="2026-07-01T12:00:00Z",
        created_utc="2026-07-01T11:50:00Z",
        running=False,
        states={"complete": 44, "failed": 1},
        metric="eval/accuracy",
        mode="max",
        unit="",
        clock="train_s",
        clock_requested="train_s",
        clock_sentence="Times are train_s: wall-clock seconds of training, evaluation and checkpoints not billed.",
        ci=0.95,
        delta=0.005,
        target=TargetInfo(
            "eval/accuracy",
            "max",
            TARGET,
            "lowest_final",
            "pilot",
            (2147483650, 2147483651),
            "2026-06-30T09:00:00Z",
            "9f2c" * 16,
            False,
            "Target 0.8412 fixed from 5 baseline pilot seeds on 2026-06-30, before any other arm ran.",
            ((0.9, 0.8054), (0.95, 0.8302), (0.99, 0.8431)),
        ),
        noise=(
            Noise(
                "train_s",
                0.021,
                Interval(1.004, 0.989, 1.019, 5, 0.95, "paired t"),
                5,
                True,
                "No time effect below 2.1 % is claimed on train_s (5 A/A pairs).",
            ),
            Noise(
                "cpu_s",
                0.012,
                Interval(0.999, 0.991, 1.007, 5, 0.95, "paired t"),
                5,
                True,
                "No time effect below 1.2 % is claimed on cpu_s (5 A/A pairs).",
            ),
        ),
        rho={"train_s": 0.62, "cpu_s": 0.71, "eval/accuracy": 0.48},
        arms=arms,
        effects=tuple(_effect(m) for m in METHODS),
        curves=tuple(_curve(a) for a in arms),
        guards=_guards(),
        failures=(_failure(arms[-1]),),
        trials=tuple(_trials(arms)),
        provenance=_provenance(),
        sql={
            "speedups": "SELECT * FROM speedups('ablate', 'eval/accuracy', 0.8412)",
            "fastest": "SELECT arm, exp(avg(log_ratio)) AS x\nFROM speedups('ablate', 'eval/accuracy', 0.8412)",
        },
        headline=(
            "No combination is faster at equal quality (1 workload, 1 machine, 8 arms x 5 seeds).",
            "progressive_resizing: TRADE: faster, worse; x1.228 [1.201, 1.254], -0.0208 [-0.0231, -0.0185].",
            "ema: BETTER, time unresolved; +0.0061 [0.0040, 0.0082] in accuracy.",
        ),
        credit=example_credit.credit(),
        many=example_credit.many(tuple(a.label for a in arms if not a.baseline)),
        pooling=Pooling(True, 0.021, 28, 0.41, "One error is pooled over all arms: SD 2.1 % of a time."),
    )


def empty() -> Summary:
    """A sweep of which nothing has run."""
    base = example()
    return replace(
        base,
        states={},
        arms=(),
        effects=(),
        credit=Credit(),
        many=Many(),
        curves=(),
        guards=(),
        failures=(),
        trials=(),
        noise=(),
        rho={},
        sql={},
        provenance={},
        headline=(),
        created_utc=None,
        clock_sentence="",
        target=TargetInfo("eval/accuracy", "max", None, "lowest_final", "none"),
    )


def all_failed() -> Summary:
    """A sweep in which every trial failed: one arm and the baseline, one seed."""
    base = example()
    arms = tuple(
        replace(
            a,
            planned=1,
            complete=0,
            failed=1,
            pairs=0,
            verdict="FAILED",
            time_class="",
            quality_class="",
            speedup=Interval(),
            speedup_other_clock=Interval(),
            quality=Interval(),
            quality_difference=Interval(level=0.9),
            time_s=None,
            setup_s=None,
            target_times=(),
            target_speedup=Interval(),
            sentence="FAILED: no complete trial.",
        )
        for a in base.arms[:2]
    )
    trials = tuple(
        replace(
            t,
            state="failed",
            train_s=None,
            cpu_s=None,
            wall_s=None,
            setup_s=None,
            eval_s=None,
            quality=math.nan,
            timing_valid=None,
        )
        for t in base.trials[:2]
    )
    return replace(
        base,
        states={"failed": 2},
        arms=arms,
        effects=(),
        curves=(),
        trials=trials,
        failures=tuple(replace(_failure(a), id=f"{i:012x}") for i, a in enumerate(arms)),
        noise=(Noise("train_s", None, Interval(), 0, None, "There is no A/A pair."),),
        rho={},
        headline=("No trial of this sweep is complete.",),
        withheld=("aa_pairs",),
    )


def hostile() -> Summary:
    """Every free text is an attack; arms, methods, metrics, messages, guards, provenance."""
    base = example()
    name = dict(zip((a.label for a in base.arms), HOSTILE, strict=True))
    bad = " ".join(HOSTILE[:7])
    return replace(
        base,
        sweep=HOSTILE[0],
        metric=HOSTILE[1],
        unit=HOSTILE[0],
        arms=tuple(replace(a, label=name[a.label], algorithms=(HOSTILE[6],), sentence=bad) for a in base.arms),
        effects=tuple(replace(e, method=HOSTILE[i], sentence=bad) for i, e in enumerate(base.effects)),
        curves=tuple(replace(c, arm=name[c.arm], metric=HOSTILE[1]) for c in base.curves),
        guards=tuple(replace(g, name=HOSTILE[i % 8], sentence=bad) for i, g in enumerate(base.guards)),
        failures=tuple(replace(f, arm=HOSTILE[0], message="\n".join(HOSTILE), log=HOSTILE[0]) for f in base.failures),
        trials=tuple(replace(t, arm=name[t.arm], command=HOSTILE[0]) for t in base.trials),
        provenance={HOSTILE[0]: {HOSTILE[1]: list(HOSTILE)}},
        sql={HOSTILE[0]: "\n".join(HOSTILE)},
        headline=HOSTILE,
        target=replace(base.target, metric=HOSTILE[1], sentence=bad),
        clock_sentence=bad,
    )


def many(num_methods: int) -> Summary:
    """A full grid over more methods, to look at long tables: 2^num_methods arms."""
    base = example()
    methods = [f"method_number_{i}" for i in range(num_methods)]
    sets = [s for k in range(num_methods + 1) for s in itertools.combinations(methods, k)]
    arms = tuple(
        replace(
            base.arms[i % 7 + 1 if s else 0], label="+".join(s) or "none", algorithms=s, baseline=not s, size=len(s)
        )
        for i, s in enumerate(sets)
    )
    return replace(base, arms=arms, curves=tuple(replace(base.curves[0], arm=a.label) for a in arms))


def _arm(methods: tuple[str, ...]) -> Arm:
    ratio = math.exp(sum(LOG_SPEED[m] for m in methods))
    dq = sum(QUALITY[m] for m in methods)
    quality = 0.8462 + dq
    baseline, last = not methods, len(methods) == 3
    n = 4 if last else 5
    verdict, time_class, quality_class = _verdict(methods)
    label = "+".join(methods) or "none"
    return Arm(
        label=label,
        algorithms=methods,
        parameters={},
        baseline=baseline,
        planned=5,
        complete=n,
        failed=5 - n,
        diverged=0,
        pairs=0 if baseline else n,
        equals=None,
        speedup=Interval() if baseline else Interval(ratio, ratio * 0.978, ratio * 1.022, n, 0.95, "pooled t"),
        speedup_other_clock=Interval()
        if baseline
        else Interval(ratio * 1.003, ratio * 0.989, ratio * 1.017, n, 0.95, "pooled t"),
        other_clock="cpu_s",
        quality=Interval(quality, quality - 0.003, quality + 0.003, n),
        quality_difference=Interval(level=0.9)
        if baseline
        else Interval(dq, dq - 0.0022, dq + 0.0022, n, 0.9, "paired t"),
        time_s=4.12 / ratio,
        setup_s=0.08 + 0.02 * len(methods),
        target_times=tuple(_target_times(quality, ratio, n)),
        target_speedup=Interval()
        if baseline or quality < TARGET
        else Interval(ratio * 1.02, ratio * 0.9, ratio * 1.15, n),
        verdict=verdict,
        time_class=time_class,
        quality_class=quality_class,
        sentence="" if baseline else f"{label}: {verdict}.",
        size=len(methods),
        seeds=SEEDS,
        p_sign_flip=None if baseline else 0.0625,
        checks=Checks() if baseline else _checks(ratio, n),
    )


def _checks(ratio: float, n: int) -> Checks:
    return Checks(
        p=0.0312,
        p_sign_flip=2.0 ** (1 - n),
        p_sign_flip_least=2.0 ** (1 - n),
        rho=0.62,
        hodges_lehmann=Interval(ratio * 1.001, None, None, n, 0.95, "Hodges-Lehmann"),
        ratio_of_means=Interval(ratio * 1.002, ratio * 0.97, ratio * 1.03, n, 0.95, "Fieller"),
        ratio_of_medians=Interval(ratio * 0.999, None, None, n, 0.95, "no bootstrap below n = 20"),
        unpaired=Interval(ratio, ratio * 0.96, ratio * 1.04, n, 0.95, "Welch"),
    )


def _verdict(methods: tuple[str, ...]) -> tuple[str, str, str]:
    if not methods:
        return "", "", ""
    if len(methods) == 3:
        return "WITHHELD", "", ""
    if "progressive_resizing" in methods:
        return "TRADE: faster, worse", "FASTER", "worse"
    if methods == ("ema",):
        return "BETTER, time unresolved", "UNRESOLVED", "better"
    if methods == ("label_smoothing",):
        return "NO EFFECT (bounded by 2.1 %)", "SAME", "not worse"
    return "BETTER, time unresolved", "UNRESOLVED", "better"


def _target_times(quality: float, ratio: float, n: int) -> list[TargetTime]:
    rungs = [(None, TARGET), (0.9, 0.8054), (0.95, 0.8302), (0.99, 0.8431)]
    times = []
    for share, target in rungs:
        for rule in ("first", "sustained", "interpolated"):
            hits = n if quality >= target else 1 if quality > target - 0.008 else 0
            median = 3.6 / ratio * (target / 0.8412) ** 4 if hits == n else None
            text = f"{median:.2f} s ({hits}/{n})" if median else f"> {4.1 / ratio:.2f} s ({hits}/{n})"
            times.append(TargetTime(rule, target, share, hits, n, median, None if median else 4.1 / ratio, text))
    return times


def _effect(method: str) -> Effect:
    ratio, dq = math.exp(LOG_SPEED[method]), QUALITY[method]
    time = Interval(ratio, ratio * 0.985, ratio * 1.015, 5, 0.95, "t over seeds")
    quality = Interval(dq, dq - 0.0015, dq + 0.0015, 5, 0.95, "t over seeds")
    resolved = not time.lo < 1 < time.hi
    return Effect(
        method,
        time,
        quality,
        resolved,
        True,
        f"{method}: x{ratio:.3f} in time, {dq:+.4f} in accuracy, averaged over 4 contexts.",
        Interval(ratio * 1.002, ratio * 0.986, ratio * 1.018, 5),
        Interval(dq * 1.01, dq - 0.0016, dq + 0.0016, 5),
        4,
        example_credit.part_time(LOG_SPEED[method]),
        example_credit.part_quality(dq),
    )


def _curve(arm: Arm) -> Curve:
    batches = tuple(range(8, 129, 8))
    assert arm.quality.value is not None and arm.time_s is not None
    mean = tuple(arm.quality.value * (1 - 0.75 * math.exp(-b / 22)) for b in batches)
    half = [0.03 * math.exp(-b / 40) + 0.002 for b in batches]
    return Curve(
        arm.label,
        "eval/accuracy",
        batches,
        tuple(128 * b for b in batches),
        tuple(arm.time_s * b / 128 for b in batches),
        mean,
        tuple(m - h for m, h in zip(mean, half, strict=True)),
        tuple(m + h for m, h in zip(mean, half, strict=True)),
        (arm.complete,) * len(batches),
    )


def _guards() -> tuple[Guard, ...]:
    return (
        Guard("target", "green", None, "Target fixed by the pilot before any other arm ran."),
        Guard("schedules", "green", 1.0, "All compared runs ended their schedules."),
        Guard("blocks", "amber", 4, "4 of 5 blocks are complete."),
        Guard("aa", "green", 0.021, "A/A ratio 1.004 [0.989, 1.019], n=5: contains one."),
        Guard("contention", "amber", 1.04, "wall/CPU 1.04 median; 2 runs above 1.1 are marked."),
        Guard("resolution", "green", 0.0625, "Time resolution: 6.3 % of the run (16 evaluations)."),
        Guard("misses", "amber", 16, "16 of 39 trials never reached the target; counted as misses."),
        Guard("failures", "red", 1, "1 trial failed; its arm is withheld."),
    )


def _failure(arm: Arm) -> Failure:
    message = "RuntimeError: worker left with signal 9\nlast lines of the log:\n  step 96 loss 0.412\n  Killed"
    return Failure(
        "0badc0ffee42", 0, arm.label, 21, "failed", "signal", message, "trials/0badc0ffee42/r0/attempts/1/rank0.log"
    )


def _trials(arms: tuple[Arm, ...]) -> list[TrialRow]:
    rows: list[TrialRow] = []
    for block, seed in enumerate(SEEDS):
        for arm, replicate in [*((a, 0) for a in arms), (arms[0], 1)]:
            rows.append(_trial(arm, replicate, block, seed, len(rows)))
    return rows


def _trial(arm: Arm, replicate: int, block: int, seed: int, position: int) -> TrialRow:
    failed = arm.size == 3 and seed == 21
    id12 = "0badc0ffee42" if failed else f"{int.from_bytes(arm.label.encode()[:3]) * 64 + block:012x}"
    role = "repeat" if replicate else "baseline" if arm.baseline else "arm"
    assert arm.time_s is not None and arm.quality.value is not None
    train_s = arm.time_s * (1 + 0.01 * math.sin(position))
    contended = position in (11, 30)
    return TrialRow(
        id12,
        replicate,
        arm.label,
        role,
        block,
        position,
        seed,
        "failed" if failed else "complete",
        1,
        *((None,) * 6 if failed else (train_s, train_s * 0.98, train_s * 1.2, 0.09, train_s * 0.15, arm.quality.value)),
        None if failed else not contended,
        ("contention",) if contended else (),
        dict.fromkeys(arm.algorithms, True),
        f"expkit rerun {id12} --verify",
    )


def _provenance() -> dict[str, object]:
    return {
        "code": {"git_sha": "dc53d91" * 5, "dirty": False, "code_sha": "a1b2c3d4e5f6"},
        "host": {"name": "box", "cpu": "AMD EPYC 9R14", "cores": 2, "device": "cpu"},
        "packages": {"torch": "2.13.0", "numpy": "2.4.0", "duckdb": "2.0.1"},
        "sweep_file": {"path": "sweeps/ablate.yaml", "sha256": "beef" * 16},
    }
