"""The ways in which a comparison goes wrong, each looked at by one function: tables in, a traffic light out.

A red guard withholds the headline and every verdict; amber is printed beside them. None of them fails on an empty
table. speedup-science section B.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from expkit.analysis import phrases
from expkit.analysis.model import Guard, Light, TargetInfo
from expkit.analysis.noise import TOO_NOISY, Floor
from expkit.analysis.replicate import NOT_OWN_WORK, Replicate, counts
from expkit.analysis.time_to_target import Crossing
from expkit.store.records import CONTENTION_RATIO

RESOLUTION = 0.02
"""A share of the time to target; evaluations that lie closer resolve it well (A3)."""


def target_before_data(target: TargetInfo) -> Guard:
    """B1: whether the target was there before the first trial that is no baseline started."""
    if target.value is None:
        return Guard("target", "amber", None, "No target: time to target is not measured.")
    if target.exploratory:
        return Guard("target", "amber", target.value, "TARGET SET AFTER DATA: exploratory.")
    return Guard("target", "green", target.value, target.sentence or "Target fixed before the first arm ran.")


def aa_floor(floor: Floor, clock: str) -> Guard:
    """A17: whether two runs of identical code differ by no more than chance, and by little."""
    where = f"{phrases.on_clock(clock)}"
    if floor.eps is None or floor.contains_one is None:
        had = phrases.count(floor.pairs, "A/A pair")
        return Guard("noise floor", "red", None, f"No noise floor {where}: {had} where at least 2 are needed.")
    size = f"A/A ratio {phrases.factor(floor.ratio)} {where}, noise floor {phrases.percent(floor.eps)}"
    if floor.eps > TOO_NOISY:
        seen = f"no effect on time below {phrases.percent(floor.eps)} can be seen"
        return Guard("noise floor", "amber", floor.eps, f"Too noisy to tell: {size}, so {seen}.")
    if floor.contains_one:
        return Guard("noise floor", "green", floor.eps, f"{size}: identical code does not differ.")
    return Guard("noise floor", "amber", floor.eps, f"{size}, widened: identical code differs by more than chance.")


def contention(replicates: Sequence[Replicate], clock: str) -> Guard:
    """B5: whether somebody else had the machine; red only where the headline's clock suffers from it."""
    done = [r for r in replicates if r.complete]
    if not done:
        return _nothing_done("contention")
    ratios = [ratio for r in done if (ratio := r.wall_over_cpu) is not None]
    median = statistics.median(ratios) if ratios else None
    hit = [r for r in done if r.contended]
    if not hit:
        found = f" (wall/CPU {median:.2f} median)" if median is not None else ""
        return Guard("contention", "green", median, f"No contention: nothing else had the machine{found}.")
    found = f"wall/CPU {median:.2f} median, " if median is not None else ""
    shared = f"Machine was shared ({found}above {CONTENTION_RATIO} or flagged in {len(hit)} of {len(done)} replicates)"
    if clock == "cpu_s":
        return Guard("contention", "amber", median, f"{shared}. Wall-clock ratios withheld; CPU time shown.")
    return Guard("contention", "red", median, f"{shared}: ratios of {phrases.clock_name(clock)} withheld.")


def drift(replicates: Sequence[Replicate]) -> Guard:
    """B6: replicates around which the reference workload moved by more than 10 %; counted and named, still compared."""
    done = [r for r in replicates if r.complete]
    if not done:
        return _nothing_done("drift")
    moved = _names(r for r in done if "drift" in r.timing_reasons)
    if not moved:
        return Guard("drift", "green", 0, "No drift: the reference workload stayed within 10 % around every trial.")
    what = f"The reference workload moved by more than 10 % around {len(moved)} of {len(done)} replicates"
    return Guard("drift", "amber", len(moved), f"{what}: {phrases.listing(moved)}.")


def own_timing(replicates: Sequence[Replicate]) -> Guard:
    """Replicates that were resumed or shared the machine by agreement: their pairs are left out on every clock."""
    done = [r for r in replicates if r.complete]
    if not done:
        return _nothing_done("timing")
    out = _names(r for r in done if set(NOT_OWN_WORK) & set(r.timing_reasons))
    if not out:
        return Guard("timing", "green", 0, "Every complete trial ran in one go and by itself.")
    what = f"{len(out)} of {len(done)} replicates resumed or shared, their times left out: {phrases.listing(out)}."
    return Guard("timing", "red" if len(out) == len(done) else "amber", len(out), what)


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
    out = _names(r for r in replicates if r.unreadable)
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


def methods_effective(idle: Mapping[str, frozenset[str]]) -> Guard:
    """B20: methods that found nothing to do, by arm that has a complete trial; they get no credit."""
    if not idle:
        return _nothing_done("methods applied")
    arms = sorted(arm for arm, methods in idle.items() if methods)
    methods = sorted(set().union(*idle.values()))
    if not arms:
        return Guard("methods applied", "green", 0, "Every method did something in every trial.")
    did = f"{phrases.listing(methods)} did nothing in {phrases.count(len(arms), 'arm')}: {phrases.listing(arms)}."
    return Guard("methods applied", "amber", len(arms), f"{did} No credit for that.")


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


def resolution(crossings: Iterable[Crossing]) -> Guard:
    """B10: how finely evaluations resolve the time to target, the median bracket as a share of the time."""
    shares = [(c.bracket[1] - c.bracket[0]) / c.t for c in crossings if c.hit and c.t and c.bracket]
    if not shares:
        return Guard("evaluation resolution", "amber", None, "No trial reached the target: no resolution to speak of.")
    share = statistics.median(shares)
    sentence = f"Time resolution: {phrases.share(share)} of the time to target, interpolated."
    return Guard("evaluation resolution", "green" if share <= RESOLUTION else "amber", share, sentence)


def hits(num_hits: int, n: int) -> Guard:
    """B15: trials that never reached the target; they are counted as later than their last evaluation."""
    if n == 0:
        return Guard("hits", "amber", None, "No complete trial to look for the target in.")
    if num_hits == n:
        return Guard("hits", "green", 1, f"All {phrases.count(n, 'trial')} reached the target and kept it.")
    missed = f"{n - num_hits} of {phrases.count(n, 'trial')} never reached the target and kept it"
    return Guard("hits", "amber", num_hits / n, f"{missed}: counted as later than their last evaluation.")


def red(guards: Iterable[Guard]) -> list[Guard]:
    """Those that withhold the headline."""
    return [g for g in guards if g.light == "red"]


def lights(guards: Iterable[Guard]) -> Counter[Light]:
    """How many of each colour."""
    return Counter(g.light for g in guards)


def headline_clock(replicates: Sequence[Replicate], requested: str) -> tuple[str, str]:
    """(clock, sentence): the requested one, or CPU time where the machine was shared and CPU time can stand in.

    It can where every complete trial was one thread on a CPU: then its CPU time is what the wall clock would have
    shown on a machine of its own. B5, A17.
    """
    done = [r for r in replicates if r.complete]
    name = phrases.clock_name(requested)
    hit = sum(r.contended for r in done)
    if requested == "cpu_s" or not hit:
        return requested, f"Times are read {phrases.on_clock(requested)} ({requested})."
    shared = f"the machine was shared during {hit} of {len(done)} replicates"
    if all(r.single_threaded for r in done):
        return "cpu_s", f"Times are CPU time (cpu_s) instead of {name}, because {shared}; every trial was one thread."
    return requested, f"Times of {name} ({requested}) are withheld: {shared}, and CPU time cannot stand in."


def _nothing_done(name: str) -> Guard:
    """Neither good nor bad: no light is green over nothing."""
    return Guard(name, "amber", None, "No trial is complete, so there is nothing to look at.")


def _names(replicates: Iterable[Replicate]) -> list[str]:
    return [f"{r.id} r{r.replicate}" for r in replicates]


GuardOf = Callable[[Sequence[Replicate]], Guard]
OF_REPLICATES: tuple[GuardOf, ...] = (drift, own_timing, blocks_complete, failures, one_setting)
