"""Guards of budget and schedule: whether what is compared is the end of a whole schedule, on equal terms. B2, B3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from expkit.analysis import phrases
from expkit.analysis.guards.light import not_checked
from expkit.analysis.load import Evaluations, Key
from expkit.analysis.model import Guard
from expkit.analysis.recipe import Recipe, unit_of
from expkit.analysis.replicate import Replicate
from expkit.duration import Time

ENDED = 0.95
"""Progress from which a schedule counts as ended."""
WORDS = {"ep": "epochs", "ba": "batches", "sp": "samples", "tok": "tokens", "iter": "iterations", "sec": "seconds"}


def progress(
    replicates: Iterable[Replicate], series: Mapping[Key, Evaluations], recipes: Mapping[str, Recipe]
) -> dict[str, float]:
    """`ema seed 17 r0` -> share of its schedule at the last evaluation, of each complete replicate with evaluations.

    Batches, samples or seconds done over those planned. For a budget in epochs it is batches over what the longest run
    of equal budget and data did, for how many an epoch has no record says; in tokens, the longest of the same arm.
    """
    known = [(one, series.get((one.id, one.replicate))) for one in replicates if one.complete]
    last = [(one, recipes.get(one.arm, Recipe()), found) for one, found in known if found is not None]
    longest: dict[tuple[str, float, str, str], float] = {}
    for one, recipe, found in last:
        kin = _kin(one, recipe)
        longest[kin] = max(longest.get(kin, 1e-9), _planned(recipe) or _done(recipe, found))
    return {
        f"{one.arm} seed {one.seed} r{one.replicate}": _done(recipe, found) / longest[_kin(one, recipe)]
        for one, recipe, found in last
    }


def schedules_ended(shares: Mapping[str, float], stoppers: Iterable[str] = (), budgets: Sequence[float] = ()) -> Guard:
    """B2: a value read off the middle of a schedule is compared with nothing. `budgets`: ratios that all arms ran at.

    Red where one stands below ENDED; the number is the smallest share.
    """
    if not shares:
        return not_checked("schedules ended", "no complete trial has evaluations of the primary metric")
    short = {name: share for name, share in shares.items() if share < ENDED}
    least = min(shares.values())
    if short:
        named = [f"{name} at {phrases.share(share)}" for name, share in sorted(short.items(), key=lambda kv: kv[1])]
        by = f" (the recipe has {phrases.listing(sorted(set(stoppers)))})" if stoppers else ""
        said = f"{len(short)} of {phrases.count(len(shares), 'run')} ended before their schedule did{by}"
        return Guard("schedules ended", "red", least, f"{said}: {phrases.listing(named, most=3)}.")
    at = (f"; every arm and the baseline ran at {len(budgets)} budgets" if len(budgets) > 1
          else "; at one budget, so time at equal quality is not measured")  # fmt: skip
    return Guard("schedules ended", "green", least, f"All {len(shares)} compared runs ended their schedules{at}.")


def one_unit(recipes: Mapping[str, Recipe]) -> Guard:
    """B3: whether budget, learning rate and methods all go by work done, or all by the clock; and by one budget.

    Shares of the whole (`dur`) fit any budget. The number counts the units used beside the budget's.
    """
    known = [r for r in recipes.values() if unit_of(r.max_duration)]
    if not known:
        return not_checked("one unit", "no stored recipe says how long it trains")
    budgets = {unit_of(r.max_duration) for r in known}
    if len(budgets) > 1:
        return Guard("one unit", "red", len(budgets), f"Budgets are in different units: {_words(budgets)}.")
    budget = budgets.pop()
    spans = [(path, unit) for r in known for path, text in r.spans.items() if (unit := unit_of(text)) != "dur"]
    clash = sorted({path for path, unit in spans if (unit == "sec") != (budget == "sec")})
    units = {unit for _, unit in spans} - {budget}
    if clash:
        said = f"The budget is in {WORDS[budget]}, but {phrases.listing(clash)} count in {_words(units)}"
        return Guard("one unit", "amber", len(units), f"{said}: a faster method meets another schedule.")
    also = f", {_words(units)} among the methods' own settings" if units else ""
    compared = f"compared at equal {WORDS[budget]}" if budget != "sec" else "compared at equal time"
    return Guard("one unit", "green", len(units), f"Budget and schedules are in {WORDS[budget]}{also}; {compared}.")


def _kin(one: Replicate, recipe: Recipe) -> tuple[str, float, str, str]:
    """What runs of one length have in common; a method may change how many tokens a batch has."""
    who = one.arm if unit_of(recipe.max_duration) == "tok" else one.point
    return recipe.max_duration, recipe.ssr, recipe.workload, who


def _planned(recipe: Recipe) -> float:
    """In the unit of `_done`; 0 where no record says it."""
    if unit_of(recipe.max_duration) not in ("ba", "sp", "sec"):
        return 0.0
    return Time.parse(recipe.max_duration).scaled(recipe.ssr).value


def _done(recipe: Recipe, found: Evaluations) -> float:
    """At the last evaluation: samples or seconds where the budget counts them, else batches."""
    counted = {"sp": found.sample, "sec": found.clocks.get("train_s", found.batch)}
    return float(counted.get(unit_of(recipe.max_duration), found.batch)[-1])


def _words(units: Iterable[str]) -> str:
    return phrases.listing(sorted(WORDS.get(unit, unit) for unit in units))
