"""Zipped parameters, whole components as values, grids that are united, arms included by hand, conflicts lifted."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expkit.errors import SpecError
from expkit.plan.count import count
from expkit.plan.expand import expand, slots
from expkit.plan.trial import Arithmetic
from expkit.spec.dump import dump_recipe
from expkit.spec.files import load_recipe
from expkit.spec.identity import trial_id
from expkit.spec.sweep import Sweep
from tests.plan.test_count import EMPTY, agrees
from tests.spec.lab import RECIPE, Lab, changed

EMA = "ablate: {candidates: {ema: {half_life: 12ba}}}\n"
OPTIMIZERS = "parameters: {optimizer: [{sgd: {momentum: 0.8}}, {adamw: {lr: 1e-3}}], optimizer.sgd.lr: [0.1, 0.5]}\n"


def whole(sweep: Sweep) -> Arithmetic:
    """Counting and enumerating agree, and no id is there twice."""
    counted = agrees(sweep)
    cells = list(expand(sweep))
    assert len({c.trial.id for c in cells}) == counted.trials
    labels = {(c.trial.arm, c.trial.seed): c.trial.id for c in cells}
    assert len(labels) == counted.trials
    for block in {c.block for c in cells}:
        roles = [c.role for c in cells if c.block == block]
        assert roles.count("baseline") == roles.count("repeat") == 1
    return counted


def steps(sweep: Sweep) -> list[tuple[str, int]]:
    return [(step.text, step.count) for step in count(sweep).steps]


def test_zipped_values_change_together(lab: Lab) -> None:
    sweep = lab.sweep(EMPTY + "zip: [{optimizer.sgd.lr: [0.1, 0.2, 0.4], trainer.ssr: [1, 0.5, 0.25]}]\n" + EMA)
    assert whole(sweep).trials == 2 * 3 * 2
    found = {(c.trial.recipe.optimizer.settings["lr"], c.trial.recipe.trainer.ssr) for c in expand(sweep)}
    assert found == {(0.1, 1.0), (0.2, 0.5), (0.4, 0.25)}
    assert steps(sweep)[1] == (
        "3 zipped values of optimizer.sgd.lr and trainer.ssr (0.1/1.0, 0.2/0.5, 0.4/0.25): points",
        6,
    )
    assert {c.trial.arm for c in expand(sweep) if c.trial.algorithms} == {
        "ema optimizer.sgd.lr=0.1 trainer.ssr=1.0",
        "ema optimizer.sgd.lr=0.2 trainer.ssr=0.5",
        "ema optimizer.sgd.lr=0.4 trainer.ssr=0.25",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zip: [{optimizer.sgd.lr: [1, 2], trainer.ssr: [1, 0.5, 2]}]",
         "5:7: zip.0: the lists of a zip have one length, but optimizer.sgd.lr has 2 and trainer.ssr has 3"),
        ("zip: [{optimizer.sgd.lr: [1]}]", "must be a map of two or more paths and their lists, but got a map of 1"),
        ("zip: {optimizer.sgd.lr: [1]}", "must be a list of maps such as [{path.a: [..], path.b: [..]}]"),
        ("zip: [{optimizer.sgd.lr: 1, trainer.ssr: [1]}]", "5:26: zip.0.optimizer.sgd.lr: must be a list of values"),
        ("zip: [{optimizer.sgd.lr: [1, x], trainer.ssr: [1, 2]}]", "5:30: zip.0.optimizer.sgd.lr.1: must be a number"),
        ("parameters: {trainer.ssr: [1]}\nzip: [{optimizer.sgd.lr: [1], trainer.ssr: [1]}]",
         "6:31: zip.0.trainer.ssr: has its values in another place of this grid already"),
        ("grids: [{parameter: {}}]", "5:10: grids.0.parameter: unknown key 'parameter'; did you mean 'parameters'?"),
        ("grids: {}", "grids: must be a list of maps, but got a map"),
        ("grids: [{candidates: {ema: {half_life: 1ba}}}, {candidates: {ema: {half_life: 2ba}}}]",
         "ema has other settings in another grid; give both a name by writing one as a list"),
        ("include: [{algorithm: {}}]", "unknown key 'algorithm'; did you mean 'algorithms'?"),
        ("include: [{algorithms: [ema]}]", "must be a map of methods and their settings, but got a list"),
        ("include: [{algorithms: {ema: {half_lif: 1ba}}}]", "unknown setting of ema 'half_lif'"),
        ("include: [{algorithms: {emma: {}}}]", "unknown algorithm 'emma'; did you mean 'ema'?"),
        ("include: [{parameters: {optimizer.sgd.lr: x}}]", "include.0.parameters.optimizer.sgd.lr: must be a number"),
        ("include: [{parameters: {optimizer.adamw.lr: 1}}]", "optimizer is 'sgd' here, not 'adamw'"),
        ("include: [{parameters: 3}]", "must be a map of paths and one value each, but got 3"),
        ("include: [{seeds: [x]}]", "seeds.0: must be a whole number"),
        ("include: [{algorithms: {ema: 3}}]", "must be a map of settings, but got 3; write {} for the sweep's"),
    ],
)  # fmt: skip
def test_what_is_refused_with_its_place(lab: Lab, text: str, message: str) -> None:
    said = lab.sweep_problems(EMPTY + f"{text}\n")
    assert any(message in line for line in said), said


def test_each_optimizer_has_its_own_settings(lab: Lab) -> None:
    sweep = lab.sweep(EMPTY + OPTIMIZERS + EMA)
    assert whole(sweep).trials == 2 * 2 * (2 + 1)
    assert steps(sweep)[1:3] == [
        ("2 values of optimizer (sgd[momentum=0.8], adamw[lr=0.001]): points", 4),
        ("2 values of optimizer.sgd.lr (0.1, 0.5) where optimizer is sgd: points", 6),
    ]
    arms = {c.trial.arm: c.trial for c in expand(sweep)}
    assert sorted(arms) == [
        "ema optimizer=adamw[lr=0.001]",
        "ema optimizer=sgd[momentum=0.8] optimizer.sgd.lr=0.1",
        "ema optimizer=sgd[momentum=0.8] optimizer.sgd.lr=0.5",
        "none optimizer=adamw[lr=0.001]",
        "none optimizer=sgd[momentum=0.8] optimizer.sgd.lr=0.1",
        "none optimizer=sgd[momentum=0.8] optimizer.sgd.lr=0.5",
    ]
    adamw = arms["ema optimizer=adamw[lr=0.001]"].recipe.optimizer
    assert (adamw.name, adamw.settings["lr"]) == ("adamw", 0.001)
    sgd = arms["none optimizer=sgd[momentum=0.8] optimizer.sgd.lr=0.5"].recipe.optimizer.settings
    assert (sgd["momentum"], sgd["lr"], sgd["nesterov"]) == (0.8, 0.5, True)  # nesterov is the recipe's


def test_a_trial_with_a_component_as_value_is_what_its_recipe_would_be_alone(lab: Lab) -> None:
    cell = next(c for c in expand(lab.sweep(EMPTY + OPTIMIZERS)) if "adamw" in c.trial.arm)
    alone = load_recipe(lab.folder / "recipes/fashion_resnet.yaml", overrides=["optimizer={adamw: {lr: 0.001}}"])
    assert trial_id(alone) == cell.trial.id


def test_inner_lists_of_a_component_are_values_and_both_forms_are_one(lab: Lab) -> None:
    text = "parameters: {optimizer: [{adamw: {betas: [0.9, 0.95]}}, {name: adamw, betas: [0.9, 0.99]}]}\n"
    sweep = lab.sweep(EMPTY + text)
    betas = {c.trial.arm: c.trial.recipe.optimizer.settings["betas"] for c in expand(sweep)}
    assert [list(b) for b in betas.values()] == [[0.9, 0.95], [0.9, 0.99]]
    assert next(iter(betas)) == "none optimizer=adamw[betas=[0.9,0.95]]"


def test_a_scheduler_may_be_absent_at_one_value(lab: Lab) -> None:
    text = "parameters: {scheduler: [null, {cosine: {}}], scheduler.cosine.warmup: [0.1dur, 0.2dur]}\n"
    sweep = lab.sweep(EMPTY + text)
    assert whole(sweep).trials == 2 * 3
    assert {c.trial.arm for c in expand(sweep)} == {
        "none scheduler=null",
        "none scheduler=cosine scheduler.cosine.warmup=0.1dur",
        "none scheduler=cosine scheduler.cosine.warmup=0.2dur",
    }


def test_conditions_know_components_by_name_and_absent_paths_are_null(lab: Lab) -> None:
    def arms(when: str) -> set[str]:
        sweep = lab.sweep(EMPTY + OPTIMIZERS + f'exclude: [{{when: "{when}"}}]\n')
        whole(sweep)
        return {c.trial.arm.removeprefix("none optimizer=") for c in expand(sweep)}

    low, high, adamw = (
        "sgd[momentum=0.8] optimizer.sgd.lr=0.1",
        "sgd[momentum=0.8] optimizer.sgd.lr=0.5",
        "adamw[lr=0.001]",
    )
    assert arms("optimizer == 'adamw'") == {low, high}
    assert arms("optimizer.sgd.lr > 0.2") == {low, adamw}
    assert arms("not optimizer.sgd.lr > 0.2") == {high}
    assert arms("optimizer.sgd.lr == null") == {low, high}
    assert arms("optimizer.adamw.lr < 1") == {low, high}
    with pytest.raises(SpecError, match=r"no trial of this sweep has 'optimizer.adamw.lrr'; did you mean"):
        arms("optimizer.adamw.lrr < 1")


def test_grids_are_united_and_what_the_sweep_says_holds_in_each(lab: Lab) -> None:
    text = EMPTY + (
        "parameters: {trainer.ssr: [0.5, 1]}\n"
        "ablate: {candidates: {ema: {half_life: 12ba}}}\n"
        "grids:\n"
        "  - {parameters: {optimizer.sgd.lr: [0.1, 0.2]}}\n"
        "  - {parameters: {optimizer.sgd.momentum: [0.8, 0.9]}, candidates: {label_smoothing: {}}}\n"
    )
    sweep = lab.sweep(text)
    counted = whole(sweep)
    # grid 1: 2 sets x 2 x 2 = 8; grid 2: 4 sets x 2 x 2 = 16; ssr x (lr 0.2, momentum 0.9) x {none, ema} are in both
    assert counted.trials == (8 + 16 - 4) * 2
    assert steps(sweep)[-2:] == [("2 grids united, where 4 that several have count once: points", 20), ("2 seeds", 40)]
    assert counted.blocks == (4 + 4 - 2) * 2
    assert ("grid 2: design full over 2 candidates: sets", 4) in steps(sweep)
    shared = {c.trial.arm for c in expand(sweep) if c.trial.arm.startswith("ema ")}
    assert "ema trainer.ssr=0.5 optimizer.sgd.lr=0.2 optimizer.sgd.momentum=0.9" in shared
    assert "ema trainer.ssr=0.5 optimizer.sgd.lr=0.1 optimizer.sgd.momentum=0.9" in shared  # the recipe's own 0.9


def test_a_grid_of_one_is_the_sweep_without_grids(lab: Lab) -> None:
    plain = lab.sweep(EMPTY + OPTIMIZERS + EMA)
    as_grid = lab.sweep(EMPTY + f"grids:\n  - {OPTIMIZERS}" + EMA)
    one, other = ([(s.arm.label, s.point, s.seed, s.position) for s in slots(sweep)] for sweep in (plain, as_grid))
    assert one == other
    assert count(plain) == count(as_grid)


def test_levels_of_one_method_in_two_grids_are_its_levels(lab: Lab) -> None:
    text = EMPTY + "grids: [{candidates: {ema: {half_life: [1ba]}}}, {candidates: {ema: {half_life: [1ba, 2ba]}}}]\n"
    sweep = lab.sweep(text)
    assert whole(sweep).trials == 2 * 3
    assert [level.label for level in sweep.candidates[0].levels] == ["ema[half_life=1ba]", "ema[half_life=2ba]"]


def test_an_arm_is_included_by_hand_with_its_baseline(lab: Lab) -> None:
    text = EMPTY + EMA + (
        "include:\n"
        "  - {algorithms: {label_smoothing: {smoothing: 0.2}}, parameters: {optimizer.sgd.lr: 0.7}, seeds: [1]}\n"
        "  - {algorithms: {ema: {}}}\n"
    )  # fmt: skip
    sweep = lab.sweep(text)
    counted = whole(sweep)
    assert (counted.sets, counted.trials, counted.blocks) == (3, 4 + 2, 2 + 1)
    assert steps(sweep)[1:] == [
        ("2 seeds", 4),
        ("3 trials included by hand, 2 of them there already", 5),
        ("the baseline none is added in 1 block", 6),
    ]
    by_hand = [c for c in expand(sweep) if c.trial.seed == 1]
    assert {(c.trial.arm, c.role) for c in by_hand} == {
        ("label_smoothing[smoothing=0.2] optimizer.sgd.lr=0.7", "arm"),
        ("none optimizer.sgd.lr=0.7", "baseline"),
        ("none optimizer.sgd.lr=0.7", "repeat"),
    }


def test_what_is_included_is_run_though_it_is_excluded(lab: Lab) -> None:
    rule = "exclude: [{when: \"has('ema')\", because: slow}]\n"
    text = EMPTY + EMA + rule
    assert whole(lab.sweep(text)).trials == 2
    assert whole(lab.sweep(text + "include: [{algorithms: {ema: {}}, seeds: [17]}]\n")).trials == 3


def test_what_is_included_may_not_break_a_rule(lab: Lab) -> None:
    constraints = "ablate: {candidates: [colout, nasty], constraints: [{conflicts: [colout, nasty]}]}\n"
    sweep = lab.sweep(EMPTY + constraints + "include: [{algorithms: {colout: {}, nasty: {}}}]\n")
    with pytest.raises(SpecError, match=r":6:11: include.0: colout\+nasty breaks a rule: conflict colout-nasty"):
        count(sweep)


def test_a_declared_conflict_is_lifted_and_the_trials_recipe_says_so(lab: Lab) -> None:
    rivals = "candidates: {rival: {}, ema: {half_life: 3ba}}"
    recipe = changed(RECIPE, ("model: {resnet: {depth: 8, width: 8, stem_stride: 2, num_classes: 10, in_channels: 1}}",
                              'model: {"py:mylab.nets:Net": {}}'))  # fmt: skip
    trust = {"trust_imports": ["mylab.*"]}
    refused = lab.sweep(EMPTY + f"ablate: {{{rivals}}}\n", recipe, **trust)
    assert whole(refused).trials == 6
    allow = "constraints: [{allow: [[rival, ema]], because: they meet in other layers}]"
    sweep = lab.sweep(EMPTY + f"ablate: {{{rivals}, {allow}}}\n", recipe, **trust)
    assert whole(sweep).trials == 8
    assert ("allow rival-ema keeps 1", 4) in steps(sweep)
    assert "they meet in other layers" in [step.because for step in count(sweep).steps]
    short = lab.sweep(EMPTY + f"ablate: {{{rivals}, allow: [[ema, rival]]}}\n", recipe, **trust)
    both = next(c.trial for c in expand(short) if len(c.trial.algorithms) == 2)
    assert both.recipe.allow == (("ema", "rival"),)
    assert all(c.trial.recipe.allow == () for c in expand(short) if len(c.trial.algorithms) < 2)
    path = lab.write("trial/recipe.yaml", dump_recipe(both.recipe))
    assert load_recipe(path, **trust) == both.recipe
    assert trial_id(load_recipe(path, **trust)) == both.id


AXES = st.sampled_from([
    "optimizer.sgd.lr: [0.1, 0.2]", "optimizer.sgd.momentum: [0.8, 0.9, 0.95]", "trainer.ssr: [0.5, 1]",
    "optimizer: [{sgd: {}}, {adamw: {}}]", "scheduler: [{cosine: {warmup: 0.1dur}}, {linear: {}}]",
    "vars.lr: [0.1, 0.2]",
    "scheduler.cosine.warmup: [0.1dur, 0.2dur]",
])  # fmt: skip
CANDIDATES = st.sampled_from(
    ["ema: {half_life: 3ba}", "colout: {p_row: [0.1, 0.2]}", "nasty: {}", "selective_backprop: {}"]
)
GRIDS = st.lists(st.tuples(st.sets(AXES, max_size=3), st.sets(CANDIDATES, max_size=3)), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    grids=GRIDS,
    design=st.sampled_from(["full", "leave_one_out", "[add_one_in, {max_size: 1}]", "pairwise"]),
    include=st.sampled_from(
        ["[]", "[{algorithms: {nasty: {}}}]", "[{parameters: {trainer.ssr: 0.5}, seeds: [3, 17]}]"]
    ),
    exclude=st.sampled_from(["[]", "[{when: \"has('nasty') and optimizer.sgd.lr > 0.15\"}]"]),
)
def test_any_union_counts_what_it_lists(
    lab: Lab, grids: list[tuple[set[str], set[str]]], design: str, include: str, exclude: str
) -> None:
    lines = [
        f"  - {{parameters: {{{', '.join(sorted(axes))}}}, candidates: {{{', '.join(sorted(methods))}}}}}\n"
        for axes, methods in grids
    ]
    if any("nasty" in line for line in lines) is False:
        exclude = "[]"
    text = f"{EMPTY}grids:\n{''.join(lines)}ablate: {{design: {design}}}\ninclude: {include}\nexclude: {exclude}\n"
    try:
        sweep = lab.sweep(text)
    except SpecError as e:
        assert "mean the same trial" in str(e) or "optimizer.sgd.lr" in str(e) or "nothing that is trained" in str(e), (
            text
        )
        return
    whole(sweep)
