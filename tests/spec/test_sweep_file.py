"""The grammar of sweeps: what it means, what is wrong with it, and what this version does not know yet."""

from __future__ import annotations

import pytest

from expkit.spec.sweep import Sweep
from tests.spec.lab import GOLDEN, RECIPE, SWEEP, Lab, changed

EMPTY = "version: 1\nname: s\nrecipe: fashion_resnet\n"


def labels(sweep: Sweep) -> list[list[str]]:
    return [[level.label for level in c.levels] for c in sweep.candidates]


def test_the_shipped_form(lab: Lab) -> None:
    sweep = lab.sweep()
    assert sweep.name == "ablate"
    assert labels(sweep) == [["label_smoothing"], ["progressive_resizing"], ["ema"]]
    assert sweep.seeds == (17, 18, 19, 20, 21)
    assert (sweep.order.seed, sweep.run.jobs, sweep.report.ci) == (0, 1, 0.95)
    assert sweep.text == SWEEP


def test_a_list_in_a_scalar_field_is_levels(lab: Lab) -> None:
    assert labels(lab.sweep(GOLDEN))[1] == ["colout[p_row=0.1]", "colout[p_row=0.15]"]
    text = EMPTY + "ablate: {candidates: {nasty: {number: [1, 1.0, 2e0], words: [a, b], span: {values: [90m, 1h]}}}}\n"
    assert labels(lab.sweep(text)) == [
        [
            "nasty[number=1.0,span=5400sec]",
            "nasty[number=1.0,span=3600sec]",
            "nasty[number=2.0,span=5400sec]",
            "nasty[number=2.0,span=3600sec]",
        ]
    ]
    listed = EMPTY + "ablate: {candidates: {nasty: {words: {values: [[a], [b, c]]}}}}\n"
    assert (
        labels(lab.sweep(listed)) == [['nasty[words=["a"]]', 'nasty[words=["b", "c"]]']]
        or len(labels(lab.sweep(listed))[0]) == 2
    )


def test_candidates_may_be_names_and_own_code(lab: Lab) -> None:
    text = EMPTY + 'ablate: {candidates: {"py:mylab.m:Trick": {as: trick, rate: [1, 2]}, ema: {half_life: 3ba}}}\n'
    assert labels(lab.sweep(text, trust_imports=["mylab.*"]))[0] == ["trick[rate=1]", "trick[rate=2]"]
    named = lab.sweep(EMPTY + "ablate: {candidates: [label_smoothing, colout]}\n")
    assert labels(named) == [["label_smoothing"], ["colout"]]


def test_two_candidates_of_one_name_are_refused(lab: Lab) -> None:
    text = EMPTY + 'ablate: {candidates: {ema: {half_life: 3ba}, "py:mylab.m:Ema": {}}}\n'
    said = lab.sweep_problems(text, trust_imports=["mylab.*"])
    assert "another candidate is called 'ema'; name one with `as:`" in said[0]


def test_seeds(lab: Lab) -> None:
    assert lab.sweep(EMPTY + "seeds: 3\n").seeds == (17, 18, 19)
    assert lab.sweep(EMPTY + "seeds: [3, 1]\n").seeds == (3, 1)
    assert lab.sweep(EMPTY + "seeds: {count: 2, base: 5}\n").seeds == (5, 6)
    assert lab.sweep(EMPTY).seeds == (17, 18, 19, 20, 21)
    for seeds, message in {
        "[1, 1]": "seed 1 is given twice",
        "[]": "must have at least one seed",
        "0": "must be a whole number of at least 1, but got 0",
        "[2147483648]": "must be a whole number less than 2147483648",
        "{count: 2, bas: 1}": "unknown key 'bas'; did you mean 'base'?",
        "{until: {half_width: 0.03}}": "not supported yet",
        "x": "must be a whole number, but got x",
    }.items():
        assert message in lab.sweep_problems(EMPTY + f"seeds: {seeds}\n")[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: ablate", "name: ablate\ntune: {}", "tune is not supported yet"),
        ("name: ablate", "name: ablate\nseads: 3", "unknown key 'seads'; did you mean 'seeds'? there are: ablate"),
        (
            "design: full",
            "design: {search: {points: 3}}",
            "9:11: ablate.design: design search is not supported",
        ),
        ("design: full", "design: {max_size: 0}", "9:22: ablate.design.max_size: must be a whole number of at least 1"),
        (
            "design: full",
            "design: {fractional: 5}",
            "9:24: ablate.design.fractional: must be written as {fractional: {res",
        ),
        (
            "design: full",
            "design: {shapley: {permutation: 5}}",
            "must be written as {shapley: {permutations: 16}}, but",
        ),
        (
            "design: full",
            "design: {fractional: {resolution: 4, sets: 0}}",
            "design.fractional.sets: must be a whole numb",
        ),
        (
            "design: full",
            "design: {fractional: {sets: 8}}",
            "must be written as {fractional: {resolution: 5}}, but got",
        ),
        ("design: full", "design: {fractional: {resolution: 6}}", "must be a whole number of at most 5, but got 6"),
        (
            "design: full",
            "design: {shapley: {permutations: 0}}",
            "design.shapley.permutations: must be a whole number of",
        ),
        ("design: full", "design: shapley", "shapley needs a number: {shapley: {permutations: 16}}"),
        (
            "design: full",
            "design: {max_size: 1, shapley: {permutations: 5}}",
            "has 2 designs; a list unites them: [{max",
        ),
        ("design: full", "design: max_size", "max_size needs a number: {max_size: 2}"),
        ("design: full", "design: [full, {pairwise: 3}]", "9:18: ablate.design: pairwise takes no settings"),
        ("design: full", "design: []", "must have at least one design; there are: full, leave_one_out"),
        ("design: full", "design: [[full]]", "unknown design ''"),
        ("design: full", "design: ful", "unknown design 'ful'; did you mean 'full'? there are: add_one_in, frac"),
        ("jobs: 1, timing", "jobs: 2, timing", "13:30: run.jobs: more than one trial at a time cannot be timed"),
        ("timing: exclusive", "timing: exclusive, retries: {}", "run.retries: retries is not supported yet"),
        ("timing: exclusive", "timing: exclusiv", "must be 'exclusive' or 'shared', but got exclusiv"),
        ("baseline: []", "baseline: [emma]", "unknown algorithm 'emma'; did you mean 'ema'?"),
        ("always: []", "always: ema", "must be a list of names, but got ema"),
        ("ema: {half_life: 12ba}", "ema: 12ba", "must be a map of settings, but got 12ba"),
        (
            "ema: {half_life: 12ba}",
            "ema: {half_lif: 12ba}",
            "unknown setting of ema 'half_lif'; did you mean",
        ),
        ("ema: {half_life: 12ba}", "emma: {}", "unknown algorithm 'emma'; did you mean 'ema'?"),
        ("constraints: []", "constraints: [{conflicts: [ema, mixup]}]", "unknown method of this sweep 'mixup'"),
        ("constraints: []", "constraints: [{requires: {ema: convolution}}]", "did you mean 'convolutions'?"),
        ("constraints: []", "constraints: [{allow: [[ema, x]]}]", "unknown method of this sweep 'x'"),
        ("constraints: []", "constraints: [{allow: [ema, x]}]", "must be a list of pairs of methods such as [[mixup"),
        ("constraints: []", "allow: [[ema, label_smoothing]]", "neither ema nor label_smoothing declares that they"),
        ("constraints: []", "allow: [{pair: [ema, x], becaus: y}]", "unknown key 'becaus'; did you mean 'because'?"),
        ("constraints: []", "allow: ema", "10:10: ablate.allow: must be a list of pairs of methods"),
        ("constraints: []", "constraints: [{conflict: []}]", "must be {conflicts: [..]}, {requires: {..}} or {allow"),
        ("set: {}", "set: {optimizer.sgd.lrr: 1}", "4:7: optimizer.sgd.lrr: unknown setting of sgd 'lrr'"),
        ("set: {}", "set: 3", "set: must be a map of dotted overrides, but got 3"),
        ("set: {}", "budget: {max_hours: 3}", "max_hours is not supported yet"),
        ("recipe: ../recipes/fashion_resnet.yaml", "recipe: nope.yaml", "3:9: recipe: there is no file nope.yaml"),
        ("version: 1", "version: 2", "1:10: version: must be 1, but got 2"),
        ("set: {}", "exclude: [{when: \"has('emma')\"}]", "unknown method of this sweep 'emma'; did you mean 'ema'?"),
        ("set: {}", 'exclude: [{when: "optimizer.sgd.lrr > 1"}]', "4:19: when: no trial of this sweep has"),
        ("set: {}", 'exclude: [{when: "seed == 3"}]', "a condition cannot ask for the seed"),
        ("set: {}", "exclude: [{whe: x}]", "unknown key 'whe'; did you mean 'when'?"),
    ],
)
def test_what_is_refused(lab: Lab, old: str, new: str, message: str) -> None:
    said = lab.sweep_problems(changed(SWEEP, (old, new)))
    assert any(message in line for line in said), said


def test_problems_of_sweep_and_recipe_come_together(lab: Lab) -> None:
    said = lab.sweep_problems(
        changed(SWEEP, ("design: full", "design: ful"), ("count: 5", "count: 05")),
        changed(RECIPE, ("momentum: 0.9", "momentum: 9")),
    )
    assert [line.split(":")[0] for line in said] == [
        "recipes/fashion_resnet.yaml",
        "sweeps/ablate.yaml",
        "sweeps/ablate.yaml",
    ]


def test_parameters(lab: Lab) -> None:
    sweep = lab.sweep(
        EMPTY + "parameters: {vars.lr: [1e-3, 1E-3, 1.0e-3, 0.001], trainer.max_duration: [90m, 1h30m, 2ep]}\n"
    )
    assert [p.values for p in sweep.parameters] == [(0.001,), ("5400sec", "2ep")]  # user report 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("optimizer.sgd.lr: 1", "must be a list of values, but got 1"),
        ("optimizer.sgd.lr: []", "must have at least one value"),
        ("optimizer.sgd.lr: [x]", "optimizer.sgd.lr.0: must be a number, but got x"),
        ("optimizer.sgd.lr: [1, -1]", "optimizer.sgd.lr: must be a number"),
        ("optimizer.sgd.lr: {min: 0, max: 1}", "ranges and distributions are not supported yet"),
        ("optimizer.sgd.lrr: [1]", "unknown setting of sgd 'lrr'"),
        ("optimizer.adamw.lr: [1]", "optimizer is 'sgd' here, not 'adamw'"),
        (
            "optimizer: [sgd]",
            "optimizer.0: must be a component with its settings, such as {sgd: {lr: 0.5}}, but got sgd",
        ),
        ("optimizer: [{sgd: {}}, {sgd: {lr: 0.2}}]", "values 1 and 2 of the list mean the same trial"),
        ("optimizer: [{sgd: {lrr: 1}}]", "4:33: optimizer.sgd.lrr: unknown setting of sgd 'lrr'"),
        (
            "optimizer: [{sgd: {}}, {adamw: {}}], optimizer.lion.lr: [1]",
            "optimizer is never 'lion' here; its values are",
        ),
        ("trainer: [{ssr: 1}]", "a map can be a value only as a whole component of model, optimizer, scheduler"),
        ("runtime.threads: [1, 2]", "runtime.threads does not change what is trained"),
        ("metrics.target: [1, 2]", "does not change what is trained"),
        ("trainer.checkpoint.keep: [last]", "does not change what is trained"),
        ("seed: [1, 2]", "seeds have a key of their own"),
        ("vars.unused: [1, 2]", "nothing that is trained depends on it"),
        ("callbacks.speed_monitor.window_size: [1, 2]", "values 1 and 2 of the list mean the same trial"),
        ("algorithms.ema.half_life: [1ba]", "ema is a candidate; list its values there"),
    ],
)
def test_parameters_that_cannot_be(lab: Lab, parameters: str, message: str) -> None:
    said = lab.sweep_problems(changed(SWEEP, ("set: {}", f"parameters: {{{parameters}}}")))
    assert any(message in line for line in said), said


def test_levels_follow_references_to_their_siblings(lab: Lab) -> None:
    from expkit.plan.expand import expand

    found = {
        cell.trial.algorithms: cell.trial.recipe.algorithms["colout"].settings
        for cell in expand(lab.sweep(GOLDEN))
        if cell.trial.arm.startswith("colout") and "+" not in cell.trial.arm
    }
    assert found == {
        ("colout[p_row=0.1]",): {"p_row": 0.1, "p_col": 0.1},
        ("colout[p_row=0.15]",): {"p_row": 0.15, "p_col": 0.15},
    }


def test_overrides_go_to_the_sweep_or_to_its_recipe(lab: Lab) -> None:
    sweep = lab.sweep(
        overrides=["seeds.count=2", "optimizer.sgd.lr=0.5", "run={jobs: 2, timing: shared}"], presets=["smoke"]
    )
    assert sweep.seeds == (17, 18)
    assert sweep.recipe.optimizer.settings["lr"] == 0.5
    assert (sweep.run.jobs, sweep.run.executor, sweep.run.timing) == (2, "local", "shared")
    assert str(sweep.recipe.trainer.max_duration) == "4ba"


def test_a_sweep_may_extend_another(lab: Lab) -> None:
    lab.sweep()
    lab.write("more/child.yaml", "version: 1\nname: child\nextends: ../sweeps/ablate.yaml\nseeds: [1, 2]\n")
    from expkit.spec.sweep_file import load_sweep

    sweep = load_sweep(lab.folder / "more/child.yaml")
    assert (sweep.name, sweep.seeds, len(sweep.candidates)) == ("child", (1, 2), 3)


def test_a_reference_to_the_seed_is_refused_in_a_sweep(lab: Lab) -> None:
    said = lab.sweep_problems(SWEEP, changed(RECIPE, ("depth: 8,", 'depth: "${seed}",')))
    assert any("${seed} in a sweep would stay the recipe's seed" in line for line in said)
