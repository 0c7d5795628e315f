"""Hours, from finished trials and from a probe, and the noise of A/A pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from expkit.analysis.fraction import Partial
from expkit.analysis.power import detectable
from expkit.errors import UsageError
from expkit.launch.drive import Job
from expkit.launch.forecast import Cost, detects, from_finished, from_probe, measured_sd
from expkit.launch.probe import probe
from expkit.launch.trials import add
from expkit.plan.count import count
from expkit.plan.expand import expand, slots
from expkit.plan.trial import Cell
from expkit.spec.files import load_recipe
from expkit.spec.sweep import Sweep
from expkit.store.records import Status
from expkit.store.store import Store
from tests.spec.lab import RECIPE, SWEEP, Lab, changed

BUDGETS = changed(SWEEP, ("set: {}", "budgets: {ssr: [0.5, 1.0]}"))


def jobs_of(sweep: Sweep, store: Store, wall_s: Callable[[Cell], float], num: int) -> tuple[list[Job], list[Job]]:
    """(done, to do): the first of a sweep are complete and took so long."""
    jobs = [Job(cell, cell.replicate) for cell in expand(sweep)]
    add(store, [job.cell.trial for job in jobs[:num]])
    for job in jobs[:num]:
        assert store.claim(job.id12, job.replicate, "driver") is not None
        store.new_attempt(job.id12, job.replicate, "driver")
        clocks: dict[str, float | None] = {"wall_s": wall_s(job.cell), "train_s": wall_s(job.cell)}
        store.write_status(job.id12, job.replicate, Status("complete", 1, clocks=clocks, timing_valid=True))
    return jobs[:num], jobs[num:]


def test_hours_are_those_of_finished_trials_per_length_of_their_budget(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    sweep, store = lab.sweep(BUDGETS), Store(tmp_path / "runs")
    done, todo = jobs_of(sweep, store, lambda cell: 72.0 * cell.trial.recipe.trainer.ssr, 18)
    found = from_finished(sweep, store, done, todo)
    assert found is not None
    lengths = sum(job.cell.trial.recipe.trainer.ssr for job in todo)
    assert (found.low, found.high) == pytest.approx((lengths * 72 / 3600,) * 2)
    assert str(found) == f"{lengths * 72 / 3600:.2g} h, as 18 finished replicates took 36 to 72 s"
    assert from_finished(sweep, store, [], todo) is None


def test_noise_is_that_of_the_repeats(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    sweep, store = lab.sweep(), Store(tmp_path / "runs")
    done, _ = jobs_of(sweep, store, lambda cell: 60.0 * math.exp(0.05 * (cell.role == "repeat")), 45)
    assert measured_sd(sweep, store, done) == (pytest.approx(0.05 / math.sqrt(2)), 5)
    two_blocks = [job for job in done if job.cell.block < 2]
    assert measured_sd(sweep, store, two_blocks) is None


def test_a_probe_counts_steps_and_evaluations_of_the_whole_trial(tmp_path: Path) -> None:
    """In this process, of a recipe with a net of its own kind: 2 epochs of 63 batches, evaluated at each eighth."""
    net = "{resnet: {depth: 8, width: 8, stem_stride: 2, num_classes: 10, in_channels: 1}}"
    path = Lab(tmp_path).write("recipes/small.yaml", changed(RECIPE, (net, "{mlp: {hidden: [8]}}")))
    cost = probe(load_recipe(path, overrides=["trainer.ssr=0.5"]), [])
    assert (cost.steps, cost.evaluations) == (63.0, pytest.approx(63 / (0.125 * 63 * 0.5)))
    assert 0 < cost.step_s < 1
    assert cost.eval_s > 0
    assert cost.setup_s > 0


@pytest.mark.parametrize(
    ("design", "seeds", "method"),
    [("full", 3, 1.050), ("full", 5, 1.037), ("{fractional: {resolution: 3}}", 5, 1.056), ("pairwise", 5, None),
     ("full", 1, None), ("{fractional: {resolution: 4}}", 3, 1.050)],
)  # fmt: skip
def test_what_a_design_detects(tmp_path: Path, design: str, seeds: int, method: float | None) -> None:
    """Full grids as in section D of the definition sheet; a half fraction has sqrt 2 of their standard error."""
    sweep = Lab(tmp_path).sweep(SWEEP, overrides=[f"ablate.design={design}", f"seeds.count={seeds}"])
    found = detects(sweep, count(sweep), 0.04)
    assert found.method == (None if method is None else pytest.approx(method, abs=2e-3))
    assert (found.arm is None) == (seeds == 1)
    assert found.arm is None or found.method is None or found.arm > found.method


def test_a_level_is_judged_by_fewer_arms(tmp_path: Path) -> None:
    """As the weights of the report have it: a level's pairs in a full grid, its contrast in a fraction."""
    levels = "ablate.candidates.colout={p_row: [0.1, 0.2, 0.3]}"
    lab = Lab(tmp_path)
    sweep = lab.sweep(overrides=[levels])
    full = detects(sweep, count(sweep), 0.04)
    assert full.method == pytest.approx(detectable(0.04 * math.sqrt(2 / 8 / 5), 31 * 4))  # 8 pairs a seed
    third = lab.sweep(overrides=[levels, "ablate.design={fractional: {resolution: 3}}"])
    part = Partial.of([(frozenset(slot.arm.label.split("+")) - {"none"}, "") for slot in slots(third)
                       if slot.block == 0 and slot.role != "repeat"])  # fmt: skip
    assert part is not None
    error = max(math.sqrt(float((w * w).sum())) for name, w in part.effects().items() if len(name) == 1)
    counted = count(third)
    df = (counted.trials // counted.blocks - 1) * 4
    assert detects(third, counted, 0.04).method == pytest.approx(detectable(0.04 * error / math.sqrt(5), df))


def test_a_replicate_costs_its_parts() -> None:
    cost = Cost(steps=100, step_s=0.1, evaluations=4, eval_s=0.5, setup_s=2.0)
    assert cost.replicate_s() == pytest.approx(2 + 10 + 2 + 0.6)
    assert cost.replicate_s(0.5) == pytest.approx(2 + 6 + 0.6)


def test_a_probe_of_several_ranks_is_refused(tmp_path: Path) -> None:
    sweep = Lab(tmp_path).sweep(overrides=["runtime.nproc=2"])
    with pytest.raises(UsageError, match=r"a probe takes one rank, but runtime\.nproc is 2; hours are known when"):
        from_probe(sweep, 10)


@pytest.mark.soak
def test_two_arms_are_probed_in_processes_of_their_own(tmp_path: Path) -> None:
    sweep = Lab(tmp_path).sweep(BUDGETS, overrides=["ablate.candidates={ema: {half_life: 12ba}}"])
    found = from_probe(sweep, 100)
    assert 0 < found.low <= found.high
    assert found.source.startswith("as 20 steps of the baseline and of all on took ")
