"""Confirmation: a few arms and their baseline once more, on seeds that nothing was chosen by and on the test split.

Test data is a further evaluator, called test, that runs once, when training has ended: nothing that watches the
validation split, such as a stopper, sees other numbers than it did in the sweep.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence

from expkit import plugins
from expkit.duration import Time, TimeUnit
from expkit.errors import PluginError, UsageError, unknown
from expkit.plan.expand import Slot, TrialMaker, slots
from expkit.plan.trial import Cell, Role, Trial
from expkit.spec.identity import trial_id
from expkit.spec.recipe import Component, Data, Recipe
from expkit.spec.sweep import Sweep

TEST = "test"
"""The evaluator's label, and the split that it opens."""
ONCE = Time(1, TimeUnit.DURATION)


def held_out(recipe: Recipe) -> tuple[Component | None, str]:
    """The test split of the data that the primary metric is evaluated on; None where there is none to open, and why."""
    seen = [label for label, one in recipe.data.eval.items() if label == TEST or one.settings.get("split") == TEST]
    label = recipe.metrics.primary.name.partition("/")[0]
    own = recipe.data.eval.get(label)
    if seen:
        return None, f"every trial of the sweep was evaluated on test data ({seen[0]}), so none is left to open"
    if own is None:
        return None, f"{recipe.metrics.primary.name} belongs to no evaluator"
    if "split" not in own.settings:
        return None, f"{own.label} has no splits"
    opened = dataclasses.replace(own, settings={**own.settings, "split": TEST})
    if not plugins.is_import_path(own.name):
        try:
            plugins.build("datasets", own.name, opened.settings)
        except PluginError as e:
            return None, f"{own.label} has no such test split: {e}"
    return opened, ""


def held_out_metric(recipe: Recipe) -> str:
    """`eval/accuracy` -> `test/accuracy`."""
    return f"{TEST}/{recipe.metrics.primary.name.partition('/')[2]}"


def cells(sweep: Sweep, arms: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
    """The arms of these labels on these seeds, with the baseline of each one's point twice in each block, shuffled.

    UsageError for an arm that the sweep does not have. Roles are those of a grid, as it is run like one.
    """
    maker = TrialMaker(sweep)
    found = _places(sweep, maker, arms)
    made: list[Cell] = []
    for number, (seed, point) in enumerate((s, p) for s in seeds for p in dict.fromkeys(i.point for i in found)):
        baseline = _opened(maker.trial(sweep.baseline, point, seed))
        trials = [_opened(maker.trial(i.arm.levels, point, seed)) for i in found if i.point == point]
        trials += [baseline, baseline]
        random.Random(f"{sweep.order.seed}/confirm/{seed}/{number}").shuffle(trials)  # noqa: S311 (an order, no secret)
        made += _block(trials, baseline, number, len(made))
    return made


def _block(trials: Sequence[Trial], baseline: Trial, number: int, position: int) -> Iterator[Cell]:
    """The second run of the baseline is its repeat."""
    runs = 0
    for i, trial in enumerate(trials):
        role: Role = "arm" if trial is not baseline else "repeat" if runs else "baseline"
        yield Cell(trial, int(role == "repeat"), role, number, position + i)
        runs += trial is baseline


def _places(sweep: Sweep, maker: TrialMaker, arms: Sequence[str]) -> list[Slot]:
    """Where the arms stand in the sweep, in the order in which they are named."""
    labels: dict[str, Slot] = {}
    for slot in _once_each(sweep):
        labels[maker.trial(slot.arm.levels, slot.point, slot.seed).arm] = slot
        if set(arms) <= labels.keys():
            return [labels[arm] for arm in arms]
    missing = next(arm for arm in arms if arm not in labels)
    raise UsageError(unknown("arm", missing, labels))


def _once_each(sweep: Sweep) -> Iterator[Slot]:
    seen = set()
    for slot in slots(sweep):
        key = (slot.arm.label, slot.point)
        if slot.role == "arm" and key not in seen:
            seen.add(key)
            yield slot


def _opened(trial: Trial) -> Trial:
    """The same trial, evaluated on test data once in the end."""
    opened, _ = held_out(trial.recipe)
    if opened is None:
        return trial
    recipe = _with_evaluator(trial.recipe, opened)
    return dataclasses.replace(trial, id=trial_id(recipe), recipe=recipe)


def _with_evaluator(recipe: Recipe, opened: Component) -> Recipe:
    labels, trainer = [*recipe.data.eval], recipe.trainer
    every, subset = trainer.eval_interval, trainer.eval_subset_num_batches
    if isinstance(every, Time):
        every = dict.fromkeys(labels, every)
    if isinstance(subset, int):
        subset = dict.fromkeys(labels, subset)  # of validation; the test split is evaluated whole
    return dataclasses.replace(
        recipe,
        data=Data(recipe.data.train, dict(sorted({**recipe.data.eval, TEST: opened}.items()))),
        trainer=dataclasses.replace(trainer, eval_interval={**every, TEST: ONCE}, eval_subset_num_batches=subset),
    )
