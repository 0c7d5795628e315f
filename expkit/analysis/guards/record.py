"""Guards of the record: what ran, failed, can be read, can be repeated, and on how much it all rests. B21, B22, B24."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from expkit.analysis import phrases
from expkit.analysis.guards.light import names_of, not_checked
from expkit.analysis.intervals import Array
from expkit.analysis.model import Guard, Light
from expkit.analysis.replicate import Replicate, counts


def blocks_complete(replicates: Sequence[Replicate]) -> Guard:
    """Whether every block has all its replicates; the others give the pairs that they have."""
    by_block: dict[int, list[bool]] = {}
    for one in replicates:
        by_block.setdefault(one.block, []).append(one.complete)
    full = sum(all(done) for done in by_block.values())
    sentence = f"{full} of {phrases.count(len(by_block), 'block')} complete."
    if not by_block:
        return Guard("blocks", "amber", 0, "No block is planned.")
    return Guard("blocks", "green" if full == len(by_block) else "amber", full / len(by_block), sentence)


def failures(replicates: Sequence[Replicate]) -> Guard:
    """B22: trials that failed or diverged; they stay in the counts and withhold the verdict of their arm."""
    found = counts(replicates)
    if not found.failed + found.diverged:
        return Guard("failures", "green", 0, "No trial failed or diverged.")
    arms = sorted({r.arm for r in replicates if r.state in ("failed", "diverged")})
    sentence = (
        f"{found.failed} of {phrases.count(found.planned, 'trial')} failed and {found.diverged} diverged, "
        f"in {phrases.listing(arms)}; no verdict on these arms."
    )
    return Guard("failures", "amber" if found.complete else "red", found.failed + found.diverged, sentence)


def files(replicates: Sequence[Replicate], set_aside: Sequence[str], plan: str = "") -> Guard:
    """Files of the sweep that could not be read: red for its plan, amber for the metrics of complete replicates.

    `set_aside` are all of them and `plan` is the plan where it is one, each with its reason.
    """
    if plan:
        return Guard("files", "red", len(set_aside), f"The plan of this sweep cannot be read: {plan}.")
    out = names_of(r for r in replicates if r.unreadable)
    done = sum(r.complete for r in replicates)
    if out:
        what = f"Of {len(out)} of {phrases.count(done, 'complete replicate')} a metrics file cannot be read"
        return Guard(
            "files", "amber", len(out), f"{what}: {phrases.listing(out)}; left out of times, quality and hits."
        )
    if set_aside:
        what = f"{phrases.count(len(set_aside), 'file')} of this sweep cannot be read, named in the provenance"
        return Guard("files", "amber", len(set_aside), f"{what}; the metrics of complete replicates are whole.")
    return Guard("files", "green", 0, "Every file of this sweep could be read.")


def one_setting(replicates: Sequence[Replicate]) -> Guard:
    """Whether all ran in one setting on one host; times are compared within a setting only."""
    settings = {r.setting for r in replicates if r.setting}
    hosts = sorted({r.host for r in replicates if r.host})
    if not settings:
        return Guard("setting", "amber", None, "No trial has recorded its setting yet.")
    if len(settings) < 2 and len(hosts) < 2:
        return Guard("setting", "green", len(settings), "One setting, one host.")
    sentence = f"{phrases.count(len(settings), 'setting')} on {phrases.count(len(hosts), 'host')}"
    named = f" ({phrases.listing(hosts)})" if len(hosts) > 1 else ""
    return Guard("setting", "amber", len(settings), f"{sentence}{named}: times are compared within a setting only.")


def one_code(replicates: Sequence[Replicate], silent: str = "") -> Guard:
    """Whether all ran the same version of each module, and a commit has it; `silent` is why git knew of none."""
    versions: dict[str, set[str]] = {}
    for one in (r for r in replicates if r.code_sha):
        for module, version in (one.sources or {"code": one.code_sha}).items():
            versions.setdefault(module, set()).add(version)
    if not versions:
        return Guard("code", "amber", None, "No trial has recorded its code version yet.")
    most = max(map(len, versions.values()))
    if most > 1:
        mixed = [f"{len(shas)} versions of {module}: {phrases.listing(sorted(sha[:12] for sha in shas))}"
                 for module, shas in sorted(versions.items()) if len(shas) > 1]  # fmt: skip
        return Guard("code", "amber", most, f"Code versions are mixed: {'; '.join(mixed)}.")
    if any(r.dirty for r in replicates):
        return Guard("code", "amber", most, "One code version, with changes that were not committed.")
    if silent:
        return Guard("code", "amber", most, f"One code version, {silent}: no commit says what it was.")
    return Guard("code", "green", most, "One code version, committed.")


def same_seed(doubles: Iterable[tuple[Array, Array]]) -> Guard:
    """B21: whether two runs of one trial in one setting give the same series of the metric, bit by bit."""
    equal = [bool(np.array_equal(r0, r1, equal_nan=True)) for r0, r1 in doubles]
    if not equal:
        return not_checked("same seed", "no trial was run twice in one setting")
    share = f"({sum(equal)}/{len(equal)})"
    if all(equal):
        return Guard("same seed", "green", 1, f"The same seed reproduces bit-equal curves {share}.")
    said = f"The same seed does not reproduce the same curve {share}: what a seed fixes is not all that differs."
    return Guard("same seed", "amber", sum(equal) / len(equal), said)


def scope(workloads: Iterable[str], hosts: Iterable[str]) -> Guard:
    """B24: on how many workloads and machines all this rests; from two of each on it is no longer one toy."""
    num_workloads, num_hosts = len(set(workloads)), len(set(hosts))
    if not num_workloads:
        return not_checked("scope", "no recipe of this sweep is stored yet")
    light: Light = "green" if num_workloads > 1 and num_hosts > 1 else "amber"
    return Guard("scope", light, num_workloads, scope_sentence(num_workloads, num_hosts))


def scope_sentence(num_workloads: int, num_hosts: int) -> str:
    """`One workload, one machine: no claim beyond.`"""
    words = [("One" if n < 2 else str(n)) + f" {noun}{'s' if n > 1 else ''}" for n, noun in
             ((num_workloads, "workload"), (num_hosts, "machine"))]  # fmt: skip
    return f"{words[0]}, {words[1].replace('One', 'one')}: no claim beyond."


def direction(both_ways: Mapping[str, tuple[float, float]]) -> Guard:
    """B17: (S of baseline over arm, S of arm over baseline) by arm: each must be the other's inverse.

    A mean of ratios fails this, a mean of log ratios never; the number is the largest S, also said as time saved.
    """
    off = sorted(arm for arm, (there, back) in both_ways.items() if not abs(there * back - 1) < 1e-6)
    if off:
        what = f"The speedup of {phrases.listing(off)} is not the inverse of the ratio the other way round"
        return Guard("direction", "red", len(off), f"{what}: it depends on the order of words.")
    if not both_ways:
        return not_checked("direction", "no arm has a pair with its baseline")
    best, (value, _) = max(both_ways.items(), key=lambda each: each[1][0])
    less = f"{phrases.share(abs(1 - 1 / value))} {'less' if value >= 1 else 'more'} time"
    return Guard(
        "direction", "green", value, f"Speedup is baseline time / arm time: {phrases.times(value)} of {best} is {less}."
    )
