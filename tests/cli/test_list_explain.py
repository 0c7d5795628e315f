"""`expkit list` and `expkit explain`: what there is, and what it means."""

import json

import pytest
from typer.testing import CliRunner

from expkit import plugins
from expkit.cli import app
from expkit.errors import PluginError, UsageError

runner = CliRunner()


def out(*args: str) -> str:
    done = runner.invoke(app, list(args), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_list_names_every_algorithm_with_its_first_sentence() -> None:
    lines = out("list", "algorithms").splitlines()
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert any(line.startswith("label_smoothing ") and "(" not in line.split()[1] for line in lines)


def test_list_without_a_kind_lists_all_kinds_as_json_too() -> None:
    rows = json.loads(out("list", "--json"))
    assert {"algorithms", "models", "datasets", "optimizers"} <= {row["kind"] for row in rows}
    assert all(row["summary"] and "broken" not in row["summary"] for row in rows)


def test_list_of_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(PluginError, match="did you mean 'algorithms'"):
        runner.invoke(app, ["list", "algorithm"], catch_exceptions=False)


def test_explain_a_method_shows_settings_with_ranges_and_its_declarations() -> None:
    text = out("explain", "ema")
    assert "half_life" in text and "Declares:" in text and "paper" in text
    settings = {s["name"]: s for s in json.loads(out("explain", "label_smoothing", "--json"))["settings"]}
    assert settings["smoothing"]["default"] == "0.1" and "ge=0" in settings["smoothing"]["type"]


@pytest.mark.parametrize("kind", ["schedulers", "optimizers", "models"])
def test_explain_a_kind_of_plug_in_names_all_there_are(kind: str) -> None:
    lines = json.loads(out("explain", kind, "--json"))["text"].splitlines()
    assert [line.split(":")[0] for line in lines] == plugins.names(kind)
    assert all(len(line.split(": ", 1)[1]) > 15 for line in lines)


def test_explain_puts_a_plug_in_s_own_settings_before_those_of_its_contract() -> None:
    settings = json.loads(out("explain", "multi_step", "--json"))["settings"]
    assert [s["name"] for s in settings] == ["milestones", "gamma", "warmup", "scale_warmup"]
    assert settings[0]["default"] == "(required)"


def test_explain_a_map_says_what_it_is_for() -> None:
    found = json.loads(out("explain", "trainer.checkpoint", "--json"))
    assert "running it again goes on from there" in found["text"]
    assert [setting["name"] for setting in found["settings"]] == ["every", "keep"]


@pytest.mark.parametrize("key", ["trainer.max_duration", "metrics.primary.mode", "ablate.design", "seeds", "seed"])
def test_explain_a_key_says_the_sentence_under_its_field(key: str) -> None:
    found = json.loads(out("explain", key, "--json"))
    assert found["name"] == key and len(found["text"]) > 15


def test_explain_an_unknown_name_suggests_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'label_smoothing'"):
        runner.invoke(app, ["explain", "label_smoothin"], catch_exceptions=False)


def test_what_may_be_left_out_is_not_called_required() -> None:
    defaults = {s["name"]: s["default"] for s in json.loads(out("explain", "ablate", "--json"))["settings"]}
    assert set(defaults.values()) == {"(optional)"}
    found = json.loads(out("explain", "recipe", "--json"))["settings"]
    assert {s["name"] for s in found if s["default"] == "(required)"} == {
        "version", "name", "model", "data.train", "data.eval", "optimizer", "trainer.max_duration",
        "metrics.primary.name", "metrics.primary.mode",
    }  # fmt: skip


def test_no_explanation_shows_how_a_value_is_checked() -> None:
    assert not [word for word in ("<function", "func=", "allow_inf_nan") if word in out("explain", "recipe")]


def test_the_last_part_of_a_key_will_do_and_a_target_may_be_a_number() -> None:
    assert json.loads(out("explain", "constraints", "--json"))["name"] == "ablate.constraints"
    assert "a number" in out("explain", "metrics.target")
    assert "a number" in out("explain", "metrics")


def test_files_and_events_are_explained_and_a_key_comes_before_a_section_of_the_report() -> None:
    assert "expkit.toml" in out("explain", "trust")
    assert "ablate.design" in out("explain", "sweep")
    assert "BEFORE_LOSS" in out("explain", "events")


def test_own_code_is_not_looked_for_among_ours() -> None:
    with pytest.raises(UsageError, match="is your own"):
        runner.invoke(app, ["explain", "py:mylab.parts:GradientNoise"], catch_exceptions=False)


def test_a_miss_names_the_nearest_and_not_a_hundred_others() -> None:
    with pytest.raises(UsageError) as error:
        runner.invoke(app, ["explain", "progressive_resize"], catch_exceptions=False)
    assert "did you mean 'progressive_resizing'" in str(error.value)
    assert len(str(error.value)) < 200


def test_list_takes_the_words_of_the_readme() -> None:
    assert out("list", "methods") == out("list", "algorithms")


@pytest.mark.parametrize("command", [c.name for c in app.registered_commands])
def test_every_command_has_help_with_an_example_to_paste(command: str) -> None:
    text = out(command, "-h")
    assert f"expkit {command}" in text.split("Example:")[1]


@pytest.mark.parametrize(("name", "formula"), [("Shapley", "phi_i = "), ("p_of_sign_flips", "/ 2^n"), ("eps", "A/A")])
def test_explain_a_statistic_of_a_report(name: str, formula: str) -> None:
    found = json.loads(out("explain", name, "--json"))
    assert found["kind"] == "statistic" and formula in found["formula"] + found["text"] and found["where"]
    assert found["formula"] in out("explain", name)


def test_explain_a_guard_and_what_a_key_hides() -> None:
    assert "(guard)" in out("explain", "guards/target")
    assert "In a report: expkit explain statistics/target" in out("explain", "target")
    assert "Also: expkit explain guards/noise_floor" in out("explain", "noise_floor")
    assert "same seed: " in out("explain", "guards")


@pytest.mark.parametrize("kind", ["statistics", "guards"])
def test_list_the_numbers_of_a_report(kind: str) -> None:
    lines = out("list", kind).splitlines()
    rows = json.loads(out("list", kind, "--json"))
    assert [line.split()[0] for line in lines] == [row["name"] for row in rows]
    assert all(row["formula"] and row["summary"].endswith(".") for row in rows)
    assert all(f"{row['kind']}" == kind for row in rows) and len(rows) > 24


def test_explain_a_statistic_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'hodges_lehmann'"):
        runner.invoke(app, ["explain", "hodges_leman"], catch_exceptions=False)
