"""Targets: the file beside a sweep that says which quality is to be reached, fixed before the sweep is run."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from expkit.errors import UsageError
from expkit.spec.recipe import Pilot, Primary
from expkit.store.atomic import write_text
from expkit.store.records import now_utc
from expkit.store.strict import strict

Target = Mapping[str, Any]
"""{metric, mode, value, rule, seeds, finals, ladder, slope, sd, trials, utc, expkit, hash}; `flat: true` where the
target is too flat and was allowed all the same."""


def target_file(sweep_file: Path) -> Path:
    """`ablate.yaml` -> `ablate.target.json`, to be committed with it."""
    return sweep_file.with_name(f"{sweep_file.stem}.target.json")


def given(primary: Primary, value: float) -> Target:
    """A target that the recipe gives as a number; nothing was derived, so it has no date of its own."""
    return hashed({"metric": primary.name, "mode": primary.mode, "value": value, "rule": "given", "seeds": [],
                   "finals": [], "ladder": [], "trials": [], "utc": None})  # fmt: skip


def derived(
    primary: Primary,
    pilot: Pilot,
    seeds: Sequence[int],
    firsts: Sequence[float],
    finals: Sequence[float],
    trials: Sequence[str],
    slopes: Sequence[float | None] = (),
) -> Target:
    """A target from the first and last evaluations of pilot runs, and what they gain per doubling near their end."""
    from expkit import __version__
    from expkit.analysis.target import ladder

    return hashed({
        "metric": primary.name,
        "mode": primary.mode,
        "value": value_of(pilot.rule, firsts, finals, primary.mode),
        "rule": pilot.rule,
        "seeds": list(seeds),
        "finals": list(finals),
        "ladder": [list(rung) for rung in ladder(firsts, finals)],
        "slope": statistics.fmean(known) if (known := [slope for slope in slopes if slope is not None]) else None,
        "sd": statistics.stdev(finite) if len(finite := [q for q in finals if math.isfinite(q)]) > 1 else None,
        "trials": list(trials),
        "utc": now_utc(),
        "expkit": __version__,
    })  # fmt: skip


def value_of(rule: str, firsts: Sequence[float], finals: Sequence[float], mode: str) -> float:
    """The quality that a rule makes of the first and last evaluations of pilot runs."""
    from expkit.analysis.target import GAINS, ladder, lowest_final

    worst = lowest_final(finals, mode)  # refuses pilots without any result
    return dict(ladder(firsts, finals)).get(GAINS[rule], worst) if rule in GAINS else worst


def judged(target: Target, *, allow_flat: bool) -> Target:
    """The target, marked where it is too flat to time anything and allowed all the same; else UsageError then. A2."""
    from expkit.analysis.target import too_flat

    flat = too_flat(target.get("slope"), target.get("sd"))
    if not flat or target.get("flat"):
        return target
    if allow_flat:
        return hashed({**target, "flat": True})
    value = f"{target['metric']} {target['value']:.4g} is no target to time: {flat}"
    raise UsageError(f"{value}, and it should gain {2 * target['sd']:.2g} or more; {_easier(target)}, train longer "
                     "(trainer.max_duration), or pass --allow-flat, which makes times to it exploratory")  # fmt: skip


def _easier(target: Target) -> str:
    """The next rung that is easier, as one would ask for it."""
    from expkit.analysis.target import GAINS

    rungs, sign = dict(target["ladder"]), 1.0 if target["mode"] == "max" else -1.0
    known = [(rule, rungs[of]) for rule, of in GAINS.items() if of in rungs]
    below = [(rule, value) for rule, value in known if sign * (target["value"] - value) > 0]
    if not below:
        return "give an easier one as a number in metrics.target"
    rule, value = below[-1]
    return f"take an easier one (metrics.target: {{pilot: {{rule: {rule}}}}} is {value:.4g})"


def hashed(target: Target) -> Target:
    """The target with 12 hex over everything else in it."""
    plain = strict({key: value for key, value in target.items() if key != "hash"})
    return {**plain, "hash": hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]}


def write(path: Path, target: Target) -> None:
    """Write the file as a whole, a key a line."""
    write_text(path, json.dumps(target, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> Target:
    """The target of a file; UsageError where somebody has changed it by hand or it is none."""
    try:
        target = json.loads(path.read_text(encoding="utf-8"))
        float(target["value"]), str(target["metric"]), str(target["hash"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise UsageError(
            f"{path} is no target file ({type(e).__name__}: {e}); write it anew with expkit pilot"
        ) from None
    if hashed(target)["hash"] != target["hash"]:
        raise UsageError(f"{path} was changed by hand: its hash does not fit; give a number in the recipe's "
                         "metrics.target instead, or write it anew with expkit pilot --force")  # fmt: skip
    return target  # type: ignore[no-any-return]


def pilot_seeds(count: int) -> list[int]:
    """Seeds of the pilot, above 2**31, so that no seed of a grid is among them."""
    return [seed_of("pilot", i) for i in range(count)]


def seed_of(purpose: str, index: int) -> int:
    """The index-th seed of a purpose: 2**31 + the first four bytes of sha256(purpose, index), mod 2**31."""
    digest = hashlib.sha256(f"{purpose}\0{index}".encode()).digest()
    return 2**31 + int.from_bytes(digest[:4], "big") % 2**31
