"""summarise over whole stores: complete, running, partly failed, empty; recomputed on other terms; never nan."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expkit.analysis.model import Arm, Guard, Summary
from expkit.analysis.summary import summarise, summary_to_json
from expkit.analysis.time_to_target import time_to_target
from expkit.errors import UsageError
from expkit.report.markdown import to_markdown
from expkit.report.section import make_page
from expkit.store.query import Connection, connect
from expkit.store.store import Store
from tests.store.synthetic import Cell, Method, make_store

Change = Callable[[Cell], Cell]
METHODS = {"ema": Method(1.02), "progressive_resizing": Method(0.8, -0.01)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete sweep of two methods and five seeds, for tests that only read."""
    root = tmp_path_factory.mktemp("whole")
    make_store(root, METHODS)
    return root


def read(root: Path, **asked: Any) -> Summary:
    with connect(root) as con:
        found = summarise(con, "ablate", **asked)
    looked_at(found)
    return found


def summary_of(root: Path, change: Change = lambda cell: cell, **options: Any) -> Summary:
    """The summary of a small synthetic sweep; every text of it is looked at."""
    make_store(root, **{"methods": METHODS, "change": change, "num_batches": 16, **options})
    return read(root)


def looked_at(found: Summary) -> None:
    text = json.dumps(summary_to_json(found), allow_nan=False)
    assert json.loads(text)["sweep"] == "ablate"
    for sentence in (*found.headline, *(a.sentence for a in found.arms), *(g.sentence for g in found.guards),
                     *(e.sentence for e in found.effects), *(n.sentence for n in found.noise)):  # fmt: skip
        assert sentence.rstrip().endswith(".")
        assert not {"nan", "inf", "None"} & set(sentence.replace("[", " ").replace("x", " ").split())
    assert 1 <= len(found.headline) <= 3


def arm(found: Summary, label: str) -> Arm:
    return next(a for a in found.arms if a.label == label)


def guard(found: Summary, name: str) -> Guard:
    return next(g for g in found.guards if g.name == name)


def when(change: dict[str, Any], arm: str, *seeds: int) -> Change:
    """Changes cells of one arm, of all seeds where none is named."""

    def of(cell: Cell) -> Cell:
        return dataclasses.replace(cell, **change) if cell.arm == arm and (not seeds or cell.seed in seeds) else cell

    return of


def test_a_complete_sweep(whole: Path) -> None:
    found = read(whole)
    assert [a.label for a in found.arms] == ["none", "ema", "progressive_resizing", "ema+progressive_resizing"]
    fast = arm(found, "progressive_resizing")
    assert fast.verdict == "TRADE: faster, worse"
    assert (fast.pairs, fast.planned, fast.complete, fast.size) == (5, 5, 5, 1)
    assert fast.speedup.value == pytest.approx(1.25, abs=0.02)
    assert fast.quality_difference.level == 0.90
    assert found.arms[0].verdict == "BASELINE"
    assert found.clock == "train_s"
    assert not found.running
    assert found.states == {"complete": 25}
    assert found.withheld == ()
    assert found.headline[-1].endswith("; one workload, one machine: no claim beyond.")
    effect = {e.method: e for e in found.effects}
    assert effect["progressive_resizing"].resolved_time
    assert effect["progressive_resizing"].contexts == 2
    total = arm(found, "ema+progressive_resizing").speedup.value or 0
    assert math.prod(e.shapley_time.value or 0 for e in found.effects) == pytest.approx(total)
    assert len(found.curves) == 4
    assert len(found.curves[0].step) == 16
    assert len(found.trials) == 25
    assert found.trials[0].command == f"expkit rerun {found.trials[0].id} --verify"
    assert set(found.rho) == {"train_s", "cpu_s", "eval/accuracy"}


def test_the_macro_and_the_function_agree_on_time_to_target(tmp_path: Path) -> None:
    make_store(tmp_path, METHODS, seeds=[1, 2], quality_noise=0.02)
    with connect(tmp_path) as con:
        series: dict[Any, list[tuple[float, float]]] = {}
        for r in con.rows("SELECT * FROM curve('eval/accuracy')"):
            series.setdefault((r["id"], r["replicate"]), []).append((r["train_s"], r["value"]))
        for target in (0.05, 0.6, 0.8, 0.846, 2.0):
            for rule in ("first", "sustained", "to_end"):
                asked = f"SELECT * FROM time_to_target('eval/accuracy', {target}, rule := '{rule}')"
                for r in con.rows(asked):
                    clock, value = zip(*series[r["id"], r["replicate"]], strict=True)
                    found = time_to_target(clock, value, target, rule=rule)  # type: ignore[arg-type]
                    assert (r["hit"], r["left_censored"] or False) == (found.hit, found.left_censored)
                    assert (r["t"], r["known_at"]) == pytest.approx((found.t, found.known_at))
                    assert r["horizon"] == pytest.approx(found.horizon)


def test_a_sweep_of_which_nothing_has_run(tmp_path: Path) -> None:
    found = summary_of(tmp_path, lambda cell: dataclasses.replace(cell, state="pending"))
    assert found.headline == ("No trial of this sweep is complete yet.",)
    assert {a.verdict for a in found.arms} == {"BASELINE", "NO PAIRS"}
    assert found.states == {"pending": 25}
    assert (found.curves, found.failures) == ((), ())


def test_a_sweep_without_a_plan(tmp_path: Path) -> None:
    Store(tmp_path).write_plan("ablate", "name: ablate\n", [])
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
    looked_at(found)
    assert (found.arms, found.effects, found.trials) == ((), (), ())


def test_a_running_sweep(tmp_path: Path) -> None:
    def half(cell: Cell) -> Cell:
        state = "complete" if cell.seed < 19 else "running" if cell.seed == 19 else "pending"
        return dataclasses.replace(cell, state=state)

    found = summary_of(tmp_path, half)
    assert found.running
    assert arm(found, "ema").pairs == 2
    assert guard(found, "blocks").sentence == "2 of 5 blocks complete."
    assert found.states == {"complete": 10, "pending": 10, "running": 5}


@pytest.mark.parametrize("state", ["failed", "diverged"])
def test_a_lost_trial_withholds_its_arm_and_no_other(tmp_path: Path, state: str) -> None:
    change = when({"state": state, "cause": "exception", "message": "boom"}, "ema", 18)
    found = summary_of(tmp_path, change, target=0.7)
    assert arm(found, "ema").verdict == "WITHHELD"
    assert f"1 of 5 {state}" in arm(found, "ema").sentence
    assert arm(found, "progressive_resizing").verdict == "TRADE: faster, worse"
    assert [(f.arm, f.state, f.message) for f in found.failures] == [("ema", state, "boom")]
    assert found.failures[0].log.endswith("r0/attempts/1/rank0.log")
    interpolated = next(t for t in arm(found, "ema").target_times if t.rule == "interpolated" and t.share is None)
    assert (interpolated.hits, interpolated.n) == (4, 5)
    assert arm(found, "ema").target_speedup.value is None
    assert {e.method: e.contexts for e in found.effects}["ema"] == 1


def test_an_arm_that_failed_whole_and_a_sweep_that_did(tmp_path: Path) -> None:
    found = summary_of(tmp_path / "a", when({"state": "failed"}, "ema"))
    assert arm(found, "ema").verdict == "FAILED"
    found = summary_of(tmp_path / "b", lambda cell: dataclasses.replace(cell, state="failed"))
    assert {a.verdict for a in found.arms} == {"BASELINE", "FAILED"}
    assert found.withheld == ("failures",)


def test_one_seed_has_no_interval_and_no_pairs(tmp_path: Path) -> None:
    found = summary_of(tmp_path, seeds=[17])
    ema = arm(found, "ema")
    assert (ema.verdict, ema.speedup.n, ema.speedup.lo) == ("NO PAIRS", 1, None)
    assert found.withheld == ("noise floor", "seeds")


def test_a_target_that_nobody_reaches(tmp_path: Path) -> None:
    found = summary_of(tmp_path, target=0.99)
    times = [t for t in arm(found, "ema").target_times if t.share is None]
    assert {t.hits for t in times} == {0}
    assert times[0].text.startswith("> ")
    assert guard(found, "hits").light == "amber"
    assert guard(found, "evaluation resolution").number is None


def test_no_target(tmp_path: Path) -> None:
    found = summary_of(tmp_path, target=None)
    assert found.target.value is None
    assert guard(found, "target").light == "amber"
    assert "time_to_target" not in found.sql
    assert {t.share for t in arm(found, "ema").target_times} == {0.9, 0.95, 0.99}


def test_contention_switches_to_cpu_time_where_one_thread_did_the_work(tmp_path: Path) -> None:
    shared = {"timing_valid": False, "timing_reasons": ("contention",), "wall_per_cpu": 1.6}
    found = summary_of(tmp_path / "one", when(shared, "ema", 18))
    assert (found.clock, found.clock_requested) == ("cpu_s", "train_s")
    assert found.clock_sentence == found.box.clock
    assert arm(found, "ema").pairs == 5
    assert (arm(found, "ema").other_clock, arm(found, "ema").speedup_other_clock.n) == ("train_s", 4)
    assert guard(found, "contention").light == "amber"
    two = {"host": "bench1", "device": "cpu", "nproc": 1, "threads": 2, "parallel": "ddp"}

    def threads(cell: Cell) -> Cell:
        return dataclasses.replace(when(shared, "ema", 18)(cell), setting=two)

    found = summary_of(tmp_path / "two", threads)
    assert found.clock == "train_s"
    assert found.withheld == ("contention",)
    assert {a.verdict for a in found.arms} == {"BASELINE", "WITHHELD"}
    assert found.headline[0].startswith("Headline withheld: Machine was shared")


def test_resumed_trials_lose_their_pair_on_every_clock(tmp_path: Path) -> None:
    found = summary_of(tmp_path, when({"timing_valid": False, "timing_reasons": ("resumed",)}, "ema", 18))
    ema = arm(found, "ema")
    assert (ema.pairs, ema.quality_difference.n) == (4, 5)
    assert ema.time_missing == "1 block resumed"
    assert guard(found, "timing").light == "amber"
    assert ema.speedup.method == "paired t"


def test_times_of_another_setting_are_not_compared(tmp_path: Path) -> None:
    other = {"host": "bench2", "device": "cpu", "nproc": 1, "threads": 1, "parallel": "ddp"}
    found = summary_of(tmp_path, when({"setting": other}, "ema"))
    assert arm(found, "ema").verdict == "NO PAIRS"
    assert "5 blocks without a baseline of the same setting" in arm(found, "ema").sentence
    assert guard(found, "setting").light == "amber"


def test_methods_that_did_nothing(tmp_path: Path) -> None:
    found = summary_of(tmp_path, methods={"blurpool": Method(effective=False), "ema": Method(0.8)})
    assert arm(found, "blurpool").verdict == "NO EFFECT BY CONSTRUCTION"
    both = arm(found, "blurpool+ema")
    assert both.equals == "ema"
    assert "equals ema" in both.sentence
    assert [e.method for e in found.effects] == ["ema"]


def test_another_target_or_metric_is_exploratory_and_the_file_s_own_is_not(whole: Path) -> None:
    found = read(whole)
    assert not found.target.exploratory
    same = read(whole, target=0.8, metric="eval/accuracy", baseline="none")
    other = read(whole, target=0.75)
    loss = read(whole, metric="eval/cross_entropy")
    assert not same.target.exploratory
    assert dataclasses.replace(same, generated_utc="", target=found.target) == dataclasses.replace(
        found, generated_utc=""
    )
    assert other.target.exploratory
    assert "exploratory" in " ".join(other.headline)
    assert (loss.mode, loss.target.value, loss.delta) == ("min", None, 0.0)
    assert (arm(loss, "progressive_resizing").quality_difference.value or 0) < 0


def test_a_target_set_after_the_first_arm_started_is_exploratory(tmp_path: Path) -> None:
    made = make_store(tmp_path, METHODS)
    record = made.store.targets("ablate")
    made.store.write_target("ablate", record | {"utc": "2026-01-03T00:00:00Z"})
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
    assert found.target.exploratory
    assert guard(found, "target").sentence == "TARGET SET AFTER DATA: exploratory."


def test_a_target_that_the_pilot_fixed_in_the_second_in_which_the_first_arm_started_is_not_exploratory(
    tmp_path: Path,
) -> None:
    change = when({"started_utc": "2026-01-02T03:04:05.775Z"}, "ema")
    made = make_store(tmp_path, {"ema": METHODS["ema"]}, change=change, num_batches=16)
    record = made.store.targets("ablate")
    for utc, late in (("2026-01-02T03:04:05.536Z", False), ("2026-01-02T03:04:05.776Z", True)):
        made.store.write_target("ablate", record | {"utc": utc})
        assert read(tmp_path).target.exploratory is late


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("fatal: not a git repository (or any of the parent directories): .git", "not under git"),
        ("git took longer than 2 s", "of which git said nothing (git took longer than 2 s)"),
    ],
)
def test_a_lab_in_no_git_repository_is_not_called_committed(tmp_path: Path, reason: str, said: str) -> None:
    made = make_store(tmp_path, {}, seeds=[17], change=when({"dirty": None}, "none"), num_batches=16)
    for id12 in made.ids.values():
        made.store.write_provenance(id12, 0, {"git": {"reason": reason}})
    found = read(tmp_path)
    assert found.provenance["code"]["dirty"] == said
    assert guard(found, "code") == Guard("code", "amber", 1, f"One code version, {said}: no commit says what it was.")


def test_pilots_are_named_apart_and_every_part_of_a_report_counts_the_same(tmp_path: Path) -> None:
    def pilots(cell: Cell) -> Cell:
        return dataclasses.replace(cell, role="pilot") if cell.seed == 18 and cell.replicate == 0 else cell

    found = summary_of(tmp_path, pilots, methods={}, seeds=[17, 18])
    assert found.states == {"complete": 3}
    with connect(tmp_path) as con:
        assert con.rows(found.sql["states"]) == [{"state": "complete", "n": 3}]
    text = to_markdown(make_page(found))
    assert "3 of 3 replicates complete, 1 pilot beside them · made" in text
    assert "3 of 3 replicates complete, 1 pilot beside them, in the order of the plan" in text
    assert "The timing of 3 of 3 complete replicates is valid." in text


def test_another_baseline_turns_the_ratios_round(whole: Path) -> None:
    found = read(whole)
    turned = read(whole, baseline="progressive_resizing")
    assert turned.arms[0].label == "progressive_resizing"
    there, back = arm(found, "progressive_resizing").speedup, arm(turned, "none").speedup
    assert (there.value or 0) * (back.value or 0) == pytest.approx(1)
    assert [e.time.value for e in turned.effects] == pytest.approx([e.time.value for e in found.effects])


def test_arms_are_compared_with_the_baseline_at_their_own_parameters(tmp_path: Path) -> None:
    def point(cell: Cell) -> Cell:
        slow = cell.seed >= 20
        label = f"{cell.arm} optimizer.sgd.lr={2.0 if slow else 1.0}"
        return dataclasses.replace(cell, arm=label, seconds=cell.seconds * (3 if slow else 1))

    found = summary_of(tmp_path, point, seeds=range(17, 23))
    assert [a.label for a in found.arms if a.baseline] == ["none optimizer.sgd.lr=1.0", "none optimizer.sgd.lr=2.0"]
    for lr in ("1.0", "2.0"):
        fast = arm(found, f"progressive_resizing optimizer.sgd.lr={lr}")
        assert (fast.pairs, fast.parameters) == (3, {"optimizer.sgd.lr": lr})
        assert fast.speedup.value == pytest.approx(1.25, abs=0.03)
    effect = {e.method: e for e in found.effects}["progressive_resizing"]
    assert (effect.time.n, effect.time.value) == (6, pytest.approx(1.25, abs=0.03))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"sweep": "ablat"}, "did you mean 'ablate'"),
        ({"metric": "eval/acuracy"}, "did you mean 'eval/accuracy'"),
        ({"baseline": "emo"}, "did you mean 'ema'"),
        ({"target": math.nan}, "finite"),
    ],
)
def test_terms_that_are_not_there(whole: Path, asked: dict[str, Any], message: str) -> None:
    with connect(whole) as con, pytest.raises(UsageError, match=message):
        summarise(con, asked.pop("sweep", "ablate"), **asked)


def test_the_noise_floor_needs_repeats(tmp_path: Path) -> None:
    found = summary_of(tmp_path, repeats=False)
    assert found.withheld == ("noise floor",)
    assert {n.eps for n in found.noise} == {None}


def test_whatever_becomes_of_trials_there_is_a_sentence(tmp_path: Path) -> None:
    """Random states, reasons, settings and drivers: a value or a sentence, never a traceback, never nan."""
    states = ("complete", "complete", "complete", "failed", "diverged", "running", "pending", "lost")
    reasons = ((), (), ("resumed",), ("contention",), ("drift",), ("shared", "drift"))
    for seed in range(8):
        rng = random.Random(seed)

        def change(cell: Cell, rng: random.Random = rng) -> Cell:
            return dataclasses.replace(
                cell, state=rng.choice(states), timing_reasons=rng.choice(reasons), driver=rng.choice("ab"),
                accuracy=rng.choice((0.8, 0.8, cell.accuracy, math.nan, math.inf, -1.0)),
                seconds=rng.choice((1.0, cell.seconds, 1e9)),
            )  # fmt: skip

        summary_of(tmp_path / str(seed), change, seeds=range(rng.randint(1, 3)), evaluations=2)


def test_a_metric_of_value_zero_everywhere(tmp_path: Path) -> None:
    found = summary_of(tmp_path, accuracy=0.0, quality_noise=0.0, target=0.0)
    assert arm(found, "ema").quality_difference.value is not None


def looks_like_a_connection(con: Connection) -> None:
    """The store's connection is what load.Views asks for; mypy reads this."""
    summarise(con, "ablate")


def test_a_sweep_judged_by_a_loss_does_not_say_that_more_of_it_is_better(tmp_path: Path) -> None:
    """`--metric eval/cross_entropy` ended its strongest effect with `in eval/cross_entropy (more is better)`."""
    make_store(tmp_path, {"ema": Method(0.8, -0.1)}, num_batches=16)
    found = read(tmp_path, metric="eval/accuracy:min")
    said = next(line for line in found.headline if line.startswith("Strongest main effects"))
    assert "in eval/accuracy, sign turned so that more is better" in said


def test_a_complete_replicate_with_a_metrics_file_that_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    """What was left of its series counted as a whole curve: a miss that was none, and a quality from halfway."""
    made = make_store(tmp_path, METHODS, num_batches=16)
    id12 = made.ids["ema", 18]
    (tmp_path / f"trials/{id12}/r0/attempts/1/metrics-000000.parquet").write_bytes(b"PAR1")
    found = read(tmp_path)
    ema = arm(found, "ema")
    assert (ema.complete, ema.pairs, ema.quality.n, ema.quality_difference.n) == (5, 4, 4, 4)
    assert ema.time_missing == "1 block with a metrics file that cannot be read"
    assert {(t.hits, t.n) for t in ema.target_times if t.share is None} == {(4, 4)}
    assert ema.target_speedup.n == 4
    assert max(next(c for c in found.curves if c.arm == "ema").n) == 4
    assert guard(found, "hits").light == "green"
    files = guard(found, "files")
    assert (files.light, files.number) == ("amber", 1)
    assert f"Of 1 of 25 complete replicates a metrics file cannot be read: {id12} r0" in files.sentence
    assert "left out of times, quality and hits" in files.sentence


def test_a_baseline_repeat_stands_in_for_the_quality_of_one_that_cannot_be_read(tmp_path: Path) -> None:
    made = make_store(tmp_path, METHODS, num_batches=16)
    (tmp_path / f"trials/{made.ids['none', 18]}/r0/attempts/1/metrics-000000.parquet").write_bytes(b"")
    found = read(tmp_path)
    assert (arm(found, "none").quality.n, arm(found, "ema").quality_difference.n) == (5, 5)
    assert found.noise[0].pairs == 4


def test_files_of_other_sweeps_and_a_file_that_costs_no_replicate(tmp_path: Path) -> None:
    make_store(tmp_path, {"ema": Method(0.9)}, num_batches=16)
    other = make_store(tmp_path, {"mixup": Method()}, seeds=[1], sweep="other", num_batches=16)
    (tmp_path / f"trials/{other.ids['mixup', 1]}/r0/attempts/1/metrics-000000.parquet").write_bytes(b"")
    assert guard(read(tmp_path), "files").light == "green"
    (tmp_path / "sweeps/ablate/target.json").write_text("{")
    found = guard(read(tmp_path), "files")
    assert (found.light, found.number) == ("amber", 1)
    assert found.sentence.startswith("1 file of this sweep cannot be read, named in the provenance")


def test_all_metrics_unreadable_is_no_unknown_metric(tmp_path: Path) -> None:
    make_store(tmp_path, {"ema": Method()}, num_batches=16)
    for path in tmp_path.rglob("metrics-*.parquet"):
        path.write_bytes(b"")
    found = read(tmp_path)
    assert guard(found, "files").number == 15
    assert guard(found, "hits").sentence == "No complete trial to look for the target in."


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"PAR1")])
def test_a_sweep_whose_plan_is_gone_or_damaged_withholds_its_headline(
    tmp_path: Path, damage: Callable[[Path], Any]
) -> None:
    """It read as a sweep of which nothing had run."""
    make_store(tmp_path, METHODS, num_batches=16)
    damage(tmp_path / "sweeps/ablate/plan.parquet")
    found = read(tmp_path)
    assert guard(found, "files").light == "red"
    assert found.headline[0].startswith("Headline withheld: The plan of this sweep cannot be read: ")
    assert any("plan.parquet" in text for text in found.provenance["set_aside"])


@pytest.mark.parametrize("state", ["failed", "pending"])
def test_no_guard_is_green_over_trials_of_which_none_is_complete(tmp_path: Path, state: str) -> None:
    found = summary_of(tmp_path, lambda cell: dataclasses.replace(cell, state=state))
    nothing = "No trial is complete, so there is nothing to look at."
    for name in ("contention", "drift", "timing", "methods applied"):
        assert (guard(found, name).light, guard(found, name).sentence) == ("amber", nothing)
    assert (guard(found, "hits").number, guard(found, "hits").light) == (None, "amber")
    assert guard(found, "hits").sentence == "No complete trial to look for the target in."
