"""What methods declare about each other and about models, as plans and the engine read it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from expkit import plugins
from expkit.models.mlp import MLP
from expkit.plan.count import count
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.order import ordered
from tests.spec.lab import GOLDEN, RECIPE, Lab, changed

RESNET = "model: {resnet: {depth: 8, width: 8, stem_stride: 2, num_classes: 10, in_channels: 1}}"


def methods() -> dict[str, Algorithm]:
    built = {name: plugins.build("algorithms", name, {}) for name in plugins.names("algorithms")}
    return {name: method for name, method in built.items() if isinstance(method, Algorithm)}


def test_the_golden_sweep_of_real_methods_has_168_trials_because_they_declare_no_rule_among_them(
    tmp_path: Path,
) -> None:
    arithmetic = count(Lab(tmp_path).sweep(GOLDEN))
    assert (arithmetic.sets, arithmetic.trials) == (24, 168)


def test_the_order_is_one_whatever_the_order_of_a_list() -> None:
    names = [type(method).__name__ for method in ordered(methods()).values()]
    backwards = dict(reversed(methods().items()))
    assert [type(method).__name__ for method in ordered(backwards).values()] == names
    for earlier, later in [
        ("SelectiveBackprop", "ColOut"),
        ("SelectiveBackprop", "ProgressiveResizing"),
        ("SelectiveBackprop", "SeqLengthWarmup"),
        ("ColOut", "ChannelsLast"),
        ("ProgressiveResizing", "ChannelsLast"),
        ("MixUp", "LabelSmoothing"),
        ("CutMix", "LabelSmoothing"),
    ]:
        assert names.index(earlier) < names.index(later)


def test_declared_names_are_those_of_methods_here_or_of_composers_catalogue() -> None:
    known = {*plugins.names("algorithms"), "swa"}
    for method in methods().values():
        assert method.conflicts | method.before | method.after <= known


def test_conflicts_are_declared_on_both_sides_where_both_are_here() -> None:
    for (one, a), (other, b) in itertools.permutations(methods().items(), 2):
        assert (other in a.conflicts) == (one in b.conflicts)


def test_mixup_needs_soft_targets_unless_it_mixes_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MLP, "capabilities", lambda self: frozenset())
    mlp = (RESNET, "model: {mlp: {}}")
    (problem,) = Lab(tmp_path).recipe_problems(changed(RECIPE, mlp, ("algorithms: {}", "algorithms: {mixup: {}}")))
    assert "mixup requires soft_targets" in problem
    Lab(tmp_path).recipe(changed(RECIPE, mlp, ("algorithms: {}", "algorithms: {mixup: {interpolate_loss: true}}")))


@pytest.mark.parametrize("pair", ["mixup: {}, cutmix: {}", "cutmix: {}, mixup: {}"])
def test_mixup_and_cutmix_are_refused_together_where_the_file_says_so(tmp_path: Path, pair: str) -> None:
    (problem,) = Lab(tmp_path).recipe_problems(changed(RECIPE, ("algorithms: {}", f"algorithms: {{{pair}}}")))
    assert "cannot be used together with" in problem
    assert ":10:" in problem


@pytest.mark.parametrize("method", ["colout", "channels_last", "seq_length_warmup"])
def test_what_a_model_cannot_carry_is_refused_before_anything_runs(tmp_path: Path, method: str) -> None:
    mlp = (RESNET, "model: {mlp: {}}")
    (problem,) = Lab(tmp_path).recipe_problems(
        changed(RECIPE, mlp, ("algorithms: {}", f"algorithms: {{{method}: {{}}}}"))
    )
    assert f"{method} requires" in problem
