"""`expkit rerun --verify`: the same bits, from a fork server and from a fresh interpreter alike."""

from __future__ import annotations

import pytest

from tests.launch.lab import Lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    made = Lab(tmp_path_factory.mktemp("lab"))
    made.sweep("one", "{ema: {half_life: 4ba}}")
    done = made.call("sweep", "one")
    assert done.returncode == 0, done.stderr
    return made


def test_a_trial_of_a_sweep_gives_the_same_bits_in_a_fresh_interpreter(lab: Lab) -> None:
    (ema,) = [row for row in lab.store.read_plan("one") if row.arm == "ema"]
    done = lab.expkit("rerun", ema.id[:6], "--verify")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{ema.id}: r1 equals r0 bit by bit" in done.stdout


def test_bits_that_differ_are_exit_1_and_named(lab: Lab) -> None:
    recipe = lab.folder / "recipes" / "noisy.yaml"
    recipe.write_text((lab.folder / "recipes" / "tiny.yaml").read_text().replace("make_net", "make_noisy_net"))
    first = lab.json("run", "noisy")
    done = lab.call("rerun", first["id"], "--verify")
    assert done.returncode == 1
    assert "r1 differs from r0: train/loss at batch 1 is" in done.stdout


def test_what_cannot_be_compared_is_said_before_it_is_trained(lab: Lab) -> None:
    unknown = lab.call("rerun", "zzz", "--verify")
    assert unknown.returncode == 2
    assert "no trial 'zzz'" in unknown.stderr
