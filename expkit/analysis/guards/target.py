"""Guards of what was fixed in advance: the target, the number of seeds, the primary metric and its margin. B1, B16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from expkit.analysis import phrases
from expkit.analysis.guards.light import not_checked
from expkit.analysis.model import Guard, TargetInfo

TERMS = {"metric": "primary metric", "mode": "mode", "clock": "clock", "non_inferiority": "margin"}
"""What a sweep file says of its report, by the key that the record of its terms has."""


def target_before_data(target: TargetInfo) -> Guard:
    """B1, A2: whether the target, of this very baseline and not too flat, was there before the first arm started."""
    if target.value is None:
        return Guard("target", "amber", None, "No target: time to target is not measured.")
    if target.exploratory:
        return Guard("target", "amber", target.value, target.warning)
    if target.of_another:
        return Guard("target", "amber", target.value, target.sentence)
    return Guard("target", "green", target.value, target.sentence or "Target fixed before the first arm ran.")


def fixed_in_advance(named: Sequence[Mapping[str, Any]], first_started_utc: str | None, asked: bool = False) -> Guard:
    """B16: whether the number of seeds and the terms of the report were named before the first arm started.

    `named` are the terms as the sweep file had them, one record each time they changed, oldest first; `asked` says
    that this report is on other terms than the file's. The number is that of seeds named in advance.
    """
    if not named:
        return not_checked("fixed in advance", "the store has no record of when seeds and metric were named")
    if asked:
        return Guard("fixed in advance", "amber", None, "Metric, target or baseline asked for afterwards: exploratory.")
    before = [n for n in named if first_started_utc is None or n["utc"] <= first_started_utc]
    last = named[-1]
    if not before:
        what = f"The sweep file was first run on {named[0]['utc'][:10]}, after some of its trials had started"
        return Guard("fixed in advance", "amber", 0, f"{what}: n chosen after looking.")
    changed = [f"the {word} (from {before[-1].get(key)} to {last.get(key)})"
               for key, word in TERMS.items() if before[-1].get(key) != last.get(key)]  # fmt: skip
    early = len(before[-1]["seeds"])
    seeds = set(last["seeds"]) ^ set(before[-1]["seeds"])
    if seeds:
        changed.insert(0, f"the seeds (n chosen after looking: {early} were named before the first arm started, "
                          f"{len(last['seeds'])} now)")  # fmt: skip
    if changed:
        said = f"Changed after the first arm had started: {phrases.listing(changed)}."
        return Guard("fixed in advance", "amber", early, said)
    on = f"on {before[-1]['utc'][:10]}, before the first arm started"
    said = f"n fixed in advance: {phrases.count(early, 'seed')}, {last.get('metric')} and its margin were named {on}."
    return Guard("fixed in advance", "green", early, said)
