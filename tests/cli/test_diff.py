"""expkit diff: only what differs."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import RECIPES, Expkit, as_json
from tests.store.synthetic import Synthetic


def test_two_trials(expkit: Expkit, made: Synthetic) -> None:
    found = as_json(expkit("diff", made.ids["none", 17], made.ids["ema", 18], "--json"))
    assert found["config"] == {"algorithms.ema.strength": {"a": "(absent)", "b": 0.5}, "seed": {"a": 17, "b": 18}}
    assert found["run"]["state"] == {"a": "complete", "b": "failed"}
    assert set(found["final metrics"]) >= {"eval/accuracy"}
    assert "setting" not in found


def test_two_replicates_of_one_trial_differ_in_seconds_alone(expkit: Expkit, made: Synthetic) -> None:
    id12 = made.ids["none", 17]
    found = as_json(expkit("diff", f"{id12}/r0", f"{id12}/r1", "--json"))
    assert set(found) == {"clocks", "final metrics"}
    code, out, _ = expkit("diff", f"{id12}/r0", f"{id12}/r1")
    assert code == 0
    assert "clocks:\n" in out and "  train_s" in out and "config" not in out


def test_nan_equals_nan(expkit: Expkit, made: Synthetic) -> None:
    id12 = made.ids["none", 20]
    found = as_json(expkit("diff", f"{id12}/r0", f"{id12}/r1", "--json"))
    assert "eval/accuracy" not in found.get("final metrics", {})


def test_a_trial_does_not_differ_from_itself(expkit: Expkit, made: Synthetic) -> None:
    code, out, err = expkit("diff", made.ids["none", 17], made.ids["none", 17])
    assert (code, out) == (0, "")
    assert "do not differ" in err


def test_user_report_29_a_default_that_changed_shows_with_the_version(
    expkit: Expkit, tmp_path: Path, monkeypatch: object
) -> None:
    from expkit.launch.differing import versions

    identity = {"algorithms": {"ema": {"name": "ema", "version": 2, "settings": {}}}, "seed": 1,
                "model": {"name": "mlp", "version": 1, "settings": {"name": "x"}}}  # fmt: skip
    assert versions(identity) == {"algorithms.ema.ema": 2, "model.mlp": 1}


def test_two_recipes(expkit: Expkit, tmp_path: Path) -> None:
    file, other = RECIPES / "fashion_resnet.yaml", tmp_path / "other.yaml"
    other.write_text(f"extends: {file}\nversion: 1\nname: other\nscheduler: {{linear: {{}}}}\nvars: {{lr: 0.5}}\n")
    found = as_json(expkit("diff", str(file), str(other), "--json"))["config"]
    assert found["optimizer.sgd.lr"] == {"a": 0.2, "b": 0.5}
    assert found["name"]["b"] == "other"
    assert all(key.split(".")[0] in ("optimizer", "scheduler", "name") for key in found)


def test_two_sweeps(expkit: Expkit, tmp_path: Path) -> None:
    text = (RECIPES.parent / "sweeps" / "ablate.yaml").read_text()
    (tmp_path / "one.yaml").write_text(text.replace("../recipes/", f"{RECIPES}/"))
    (tmp_path / "two.yaml").write_text(text.replace("../recipes/", f"{RECIPES}/").replace("count: 5", "count: 3"))
    found = as_json(expkit("diff", str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml"), "--json"))
    assert found == {"sweep": {"seeds.count": {"a": 5, "b": 3}}}


def test_a_trial_and_a_file_or_two_kinds_of_files_are_refused(expkit: Expkit, made: Synthetic) -> None:
    recipe, sweep = RECIPES / "fashion_resnet.yaml", RECIPES.parent / "sweeps" / "ablate.yaml"
    code, _, err = expkit("diff", made.ids["none", 17], str(recipe))
    assert code == 2 and "show ID --resolved" in err
    code, _, err = expkit("diff", str(recipe), str(sweep))
    assert code == 2 and "two of a kind" in err
