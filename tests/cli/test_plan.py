"""`expkit plan`: the arithmetic, the repeats, and what is there already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from expkit.launch.disk import in_words
from tests.cli.test_check import expkit
from tests.spec.lab import RECIPE, SWEEP, Lab, changed

RULES = """\
exclude:
  - {when: "has('ema') and optimizer.sgd.lr > 1.5", because: it diverges there}
parameters: {optimizer.sgd.lr: [1.0, 2.0]}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.write("recipes/fashion_resnet.yaml", RECIPE)
    lab.write("sweeps/ablate.yaml", SWEEP)
    return lab


def test_the_shipped_plan(lab: Lab) -> None:
    done = expkit(lab, "plan", "ablate.yaml")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "sweep ablate: recipe fashion-resnet",
        "           8  design full over 3 candidates: sets",
        "          40  5 seeds",
        "          40  trials over 8 sets in 5 blocks",
        "           5  A/A repeats of the baseline none, one a block",
        "          45  replicates in all",
        "       state  0 done, 0 running, 0 failed, 45 to run",
        "       hours  known once a trial has finished; --probe measures 20 steps of two arms",
        "     detects  x1.037 as the main effect of a method, x1.076 as the speedup of one arm (80 % power, "
        "two-sided 5 %)",
        "              where ln time varies by 0.04 between equal runs (assumed; --noise for another)",
    ]
    assert done.stderr == "next: expkit sweep ablate.yaml\n"
    assert not (lab.folder / "runs").exists()


def test_rules_say_what_they_remove_and_why(lab: Lab) -> None:
    lab.write("sweeps/ablate.yaml", changed(SWEEP, ("set: {}\n", RULES)))
    lines = expkit(lab, "plan", "ablate").stdout.splitlines()
    assert lines[2:5] == [
        "          16  2 values of optimizer.sgd.lr (1.0, 2.0): points",
        "          12  exclude has('ema') and optimizer.sgd.lr > 1.5 removes 4",
        "              because it diverges there",
    ]


def test_the_disk_that_checkpoints_take_is_estimated_and_says_from_what(lab: Lab) -> None:
    lab.write("sweeps/ablate.yaml", changed(SWEEP, ("set: {}\n", "set: {trainer.checkpoint.keep: best}\n")))
    disk = json.loads(expkit(lab, "plan", "ablate", "--json").stdout)["checkpoints"]
    assert (disk["keep"], disk["replicates"], disk["per_replicate"]) == ("best", 45, 2)
    assert disk["bytes"] == 90 * disk["each_bytes"]
    assert disk["source"] == "estimated from 19,810 parameters and sgd; methods that keep copies take more"
    assert 2 * 4 * 19_810 < disk["each_bytes"] < 2 * 4 * 19_810 + 50_000


def test_bytes_in_words() -> None:
    assert [in_words(n) for n in (7, 999, 1000, 27_400, 999_600, 1_260_000, 3.2e9, 5e15)] == [
        "7 B", "999 B", "1.0 kB", "27 kB", "1.0 MB", "1.3 MB", "3.2 GB", "5000 TB",
    ]  # fmt: skip


def test_json_with_cells(lab: Lab) -> None:
    document = json.loads(expkit(lab, "plan", "ablate", "--json", "--cells", "--set", "seeds=[3]").stdout)
    assert (document["sets"], document["trials"], document["repeats"]) == (8, 8, 1)
    assert document["states"] == {"done": 0, "running": 0, "failed": 0, "to run": 9}
    assert [cell["position"] for cell in document["cells"]] == list(range(9))
    assert {cell["role"] for cell in document["cells"]} == {"baseline", "arm", "repeat"}


def test_what_the_store_has_is_not_run_again(lab: Lab) -> None:
    from expkit.launch.trials import add
    from expkit.plan.expand import expand
    from expkit.spec.sweep_file import load_sweep
    from expkit.store.records import PlanRow, Status
    from expkit.store.store import Store

    sweep = load_sweep(lab.folder / "sweeps/ablate.yaml")
    cells = list(expand(sweep))
    store = Store(lab.folder / "runs")
    add(store, [cell.trial for cell in cells[:3]])
    rows = [PlanRow(c.trial.id12, c.replicate, c.trial.arm, c.role, c.block, c.position, None) for c in cells]
    store.write_plan("ablate", sweep.text, rows)
    for cell, state in zip(cells, ("complete", "failed", "diverged"), strict=False):
        assert store.claim(cell.trial.id12, cell.replicate, "driver") is not None
        store.new_attempt(cell.trial.id12, cell.replicate, "driver")
        store.write_status(cell.trial.id12, cell.replicate, Status(state, 1))
    done = expkit(lab, "plan", "ablate")
    assert "1 done, 0 running, 1 failed, 1 diverged, 4" in done.stdout
    document = json.loads(expkit(lab, "plan", "ablate", "--json", "--cells").stdout)
    assert [cell["state"] for cell in document["cells"] if cell["state"] != "pending"][:1] == ["complete"]
    assert document["states"]["to run"] >= 42


def test_a_refused_plan_is_exit_2(lab: Lab) -> None:
    done = expkit(lab, "plan", "ablate", "--set", "budget.max_trials=10")
    assert done.returncode == 2
    assert "the plan has 40 trials, more than the 10 allowed" in done.stderr
    assert done.stdout == ""


UNION = """\
version: 1
name: union
recipe: ../recipes/fashion_resnet.yaml
ablate:
  candidates: {mixup: {}, cutmix: {}}
  allow: [{pair: [mixup, cutmix], because: they take turns}]
  design: [add_one_in, leave_one_out]
grids:
  - {parameters: {optimizer: [{sgd: {}}, {adamw: {lr: 1e-3}}], optimizer.sgd.lr: [0.1, 0.2]}}
  - {zip: [{optimizer.sgd.lr: [0.2, 0.4], trainer.ssr: [1, 0.5]}]}
include: [{algorithms: {ema: {half_life: 12ba}}, seeds: [17, 99]}]
seeds: 2
"""


def test_each_part_of_a_union_is_printed_with_its_count(lab: Lab) -> None:
    lab.write("sweeps/union.yaml", UNION)
    done = expkit(lab, "plan", "union")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "sweep union: recipe fashion-resnet",
        "           4  grid 1: design add_one_in and leave_one_out over 2 candidates: sets",
        "           4  grid 1: allow mixup-cutmix keeps 1",
        "              because they take turns",
        "           8  grid 1: 2 values of optimizer (sgd, adamw[lr=0.001]): points",
        "          12  grid 1: 2 values of optimizer.sgd.lr (0.1, 0.2) where optimizer is sgd: points",
        "           4  grid 2: design add_one_in and leave_one_out over 2 candidates: sets",
        "           4  grid 2: allow mixup-cutmix keeps 1",
        "              because they take turns",
        "           8  grid 2: 2 zipped values of optimizer.sgd.lr and trainer.ssr (0.2/1.0, 0.4/0.5): points",
        "          16  2 grids united, where 4 that several have count once: points",
        "          32  2 seeds",
        "          34  2 trials included by hand",
        "          35  the baseline none is added in 1 block",
        "          35  trials over 5 sets in 9 blocks",
        "           9  A/A repeats of the baseline none, one a block",
        "          44  replicates in all",
        "       state  0 done, 0 running, 0 failed, 44 to run",
        "       hours  known once a trial has finished; --probe measures 20 steps of two arms",
        "     detects  x1.137 as the speedup of one arm (80 % power, two-sided 5 %)",
        "              where ln time varies by 0.04 between equal runs (assumed; --noise for another)",
    ]
