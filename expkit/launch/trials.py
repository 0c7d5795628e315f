"""Trials on their way into the store: a recipe as a trial, a trial as a record."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from expkit.errors import UsageError
from expkit.plan.trial import Cell, Trial
from expkit.spec.dump import dump_recipe, recipe_to_json
from expkit.spec.identity import identity, trial_id
from expkit.spec.recipe import Recipe
from expkit.spec.trust import Trust
from expkit.store.atomic import write_text
from expkit.store.layout import Layout
from expkit.store.records import TrialRecord
from expkit.store.space import when_there_is_space
from expkit.store.store import Store


def trial_of(recipe: Recipe) -> Trial:
    """A recipe by itself, outside of any sweep; its arm is what it switches on."""
    labels = tuple(sorted(recipe.algorithms))
    return Trial(trial_id(recipe), recipe, "+".join(labels) or "none", labels, {}, recipe.seed)


def pilots(trials: Iterable[Trial]) -> list[Cell]:
    """Baseline trials as the cells of a pilot; they stand before the plan's first block."""
    return [Cell(trial, 0, "pilot", -1, index) for index, trial in enumerate(trials)]


def add(store: Store, trials: Iterable[Trial]) -> None:
    """Make the folders of all trials, each with its record and its resolved recipe."""
    for trial in {trial.id: trial for trial in trials}.values():
        known = store.read_trial(trial.id12)
        if known is None or known.id != trial.id or not store.layout.recipe(trial.id12).exists():
            store.add_trial(record_of(trial), dump_recipe(trial.recipe))


def write_own_recipe(store: Store, trial: Trial, attempt_dir: Path) -> None:
    """Beside an attempt, where what is asked for now is not what the trial's folder says: checkpoints, threads, ..."""
    text = dump_recipe(trial.recipe)
    if text != store.layout.recipe(trial.id12).read_text(encoding="utf-8"):
        when_there_is_space(lambda: write_text(Layout.own_recipe(attempt_dir), text), attempt_dir)


def refuse_what_cannot_run(trials: Iterable[Trial]) -> None:
    """UsageError for what a recipe may say and this version does not do, rather than a trial that ignores it."""
    for recipe in (trial.recipe for trial in trials):
        trainer, runtime = recipe.trainer, recipe.runtime
        several = f"trainer.microbatch is auto and runtime.nproc {runtime.nproc}; use one rank, or a number of samples"
        asked = {
            several: trainer.microbatch == "auto" and runtime.nproc > 1,
        }
        for sentence in (sentence for sentence, holds in asked.items() if holds):
            raise UsageError(f"this version cannot run {recipe.name}: {sentence}")


def record_of(trial: Trial) -> TrialRecord:
    """The trial as the store remembers it."""
    methods = [{"name": c.name, "label": c.label, "params": dict(c.settings)}
               for _, c in sorted(trial.recipe.algorithms.items())]  # fmt: skip
    config = recipe_to_json(trial.recipe)
    return TrialRecord(trial.id, trial.arm, methods, len(methods), trial.seed, config, identity(trial.recipe))


def python_path(trust: Trust) -> tuple[str, ...]:
    """Where `py:` components are looked for: the folder of expkit.toml, else the one we were called in."""
    return (str((trust.root or Path.cwd()).resolve()),) if trust.patterns else ()
