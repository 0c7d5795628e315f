"""expkit show: a trial, or a file as it will be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.spec.files import load_recipe
from tests.cli.conftest import RECIPES, Expkit, as_json
from tests.store.synthetic import Synthetic


def test_a_trial_with_all_its_replicates(expkit: Expkit, made: Synthetic) -> None:
    id12 = made.ids["none", 17]
    code, out, err = expkit("show", id12[:6])
    assert code == 0
    assert f"trial {id12}: none, seed 17" in out
    assert "baseline of sweep ablate, r0" in out and "repeat of sweep ablate, r1" in out
    for words in ("r0: complete", "r1: complete", "host bench1", "train_s", "eval/accuracy 0.8", "files: "):
        assert words in out
    assert f"next: expkit rerun {id12} --verify" in err


def test_one_replicate_only(expkit: Expkit, made: Synthetic) -> None:
    id12 = made.ids["none", 17]
    for written in ((id12, "r1"), (f"{id12}/r1",)):
        shown = as_json(expkit("show", *written, "--json"))
        assert [each["replicate"] for each in shown["replicates"]] == [1]


def test_json_is_strict_where_metrics_are_nan(expkit: Expkit, made: Synthetic) -> None:
    shown = as_json(expkit("show", made.ids["none", 20], "--json"))
    assert (shown["arm"], shown["seed"]) == ("none", 20)
    assert shown["replicates"][0]["state"] == "diverged"
    assert shown["replicates"][0]["final"]["eval/accuracy"] is None


@pytest.mark.parametrize(
    ("arm", "seed", "next_command"),
    [
        ("ema", 18, "expkit sweep sweeps/ablate.yaml --retry failed"),
        ("ema", 19, "expkit sweep sweeps/ablate.yaml"),
        ("none", 20, "expkit sweep sweeps/ablate.yaml --retry diverged"),
    ],
)
def test_the_last_line_is_what_one_would_like_to_do(
    expkit: Expkit, made: Synthetic, arm: str, seed: int, next_command: str
) -> None:
    assert expkit("show", made.ids[arm, seed])[2].splitlines()[-1] == f"next: {next_command}"


def test_last_is_a_trial(expkit: Expkit) -> None:
    assert expkit("show", "last")[0] == 0


def test_user_report_62_a_trial_whose_record_is_garbled_is_shown_with_the_rest(
    expkit: Expkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.store.synthetic import make_store

    own = make_store(tmp_path, {}, seeds=(17,))
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path))
    own.store.layout.trial_record(own.ids["none", 17]).write_text("{")
    own.store.layout.status(own.ids["none", 17], 1).write_bytes(b"\xff\x00")
    code, out, err = expkit("show", own.ids["none", 17])
    assert code == 0
    assert "its record cannot be read" in out and "r0: complete" in out and "r1: lost" in out
    assert err.count("set aside: ") == 2


def test_an_ambiguous_prefix_lists_the_candidates_and_nothing_is_guessed(expkit: Expkit, made: Synthetic) -> None:
    from collections import Counter

    ((digit, fits),) = Counter(id12[0] for id12 in made.ids.values()).most_common(1)
    assert fits > 1, "the synthetic ids have changed"
    code, out, err = expkit("show", digit)
    assert (code, out) == (2, "")
    assert f"fits {fits} trials" in err or f"fits {fits - 1} trials" in err  # one was never started
    assert "seed" in err


def test_neither_a_trial_nor_a_file(expkit: Expkit) -> None:
    code, _, err = expkit("show", "zzz")
    assert code == 2
    assert "no trial 'zzz'" in err and "recipe or sweep file" in err


@pytest.mark.parametrize("more", [(), ("--resolved",)])
def test_a_recipe_as_it_will_be_used_loads_to_the_same_recipe(
    expkit: Expkit, tmp_path: Path, more: tuple[str, ...]
) -> None:
    file = RECIPES / "fashion_resnet.yaml"
    changes = ("--set", "optimizer.sgd.lr=0.5", "--preset", "smoke")
    code, out, _ = expkit("show", str(file), *changes, *more)
    assert code == 0
    copy = tmp_path / "copy.yaml"
    copy.write_text(out)
    assert load_recipe(copy) == load_recipe(file, presets=["smoke"], overrides=["optimizer.sgd.lr=0.5"])
    assert ("ssr" in out) == bool(more), "only --resolved fills in defaults"
    assert "${" not in out and "presets" not in out


def test_a_trial_resolved_is_the_recipe_that_it_trained(expkit: Expkit, made: Synthetic) -> None:
    id12 = made.ids["none", 17]
    assert expkit("show", id12, "--resolved")[1] == made.store.layout.recipe(id12).read_text()
    assert as_json(expkit("show", id12, "--resolved", "--json"))["seed"] == 17


def test_a_sweep_file_with_the_recipe_that_it_varies(expkit: Expkit) -> None:
    file = RECIPES.parent / "sweeps" / "ablate.yaml"
    assert as_json(expkit("show", str(file), "--json"))["ablate"]["baseline"] == []
    resolved = as_json(expkit("show", str(file), "--resolved", "--json"))
    assert resolved["trainer"]["ssr"] == 1.0


def test_a_file_with_mistakes_is_said_as_check_says_it(expkit: Expkit, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("version: 1\nname: x\nmodle: {}\n")
    code, _, err = expkit("show", str(file))
    assert code == 2
    assert "bad.yaml:3:1: modle: unknown key" in err
