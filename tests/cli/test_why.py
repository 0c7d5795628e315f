"""expkit why: each state explained."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from expkit.launch.why import gone_because, why
from expkit.store.owner import Owner
from expkit.store.records import Status
from expkit.store.store import Store
from tests.cli.conftest import Expkit, as_json
from tests.store.synthetic import Synthetic


@pytest.mark.parametrize(
    ("arm", "seed", "says"),
    [
        ("ema", 17, "complete since"),
        ("ema", 18, "failed: its code raised an error"),
        ("ema", 19, "it was running since"),
        ("none", 20, "stopped being a finite number"),
        ("ema", 21, "it has not been started; it is number 15 of 15 in sweep ablate"),
    ],
)
def test_each_state_is_explained(expkit: Expkit, made: Synthetic, arm: str, seed: int, says: str) -> None:
    code, out, _ = expkit("why", made.ids[arm, seed])
    assert code == 0
    assert says in out


def test_a_failed_trial_shows_its_traceback_and_no_escape_sequence(expkit: Expkit, made: Synthetic) -> None:
    _, out, err = expkit("why", made.ids["ema", 18])
    assert "ValueError: the third batch is unlucky" in out and "File own.py, line 3" in out
    assert "\x1b" not in out
    assert "next: expkit sweep sweeps/ablate.yaml --retry failed" in err
    (told,) = as_json(expkit("why", made.ids["ema", 18], "--json"))
    assert (told["state"], told["cause"]) == ("failed", "exception")


def test_what_is_not_valid_and_what_had_no_effect_is_noted(expkit: Expkit, made: Synthetic) -> None:
    assert "timing is not valid: other work held the processor" in expkit("why", made.ids["none", 19], "r1")[1]
    assert "ema found nothing to do" in expkit("why", made.ids["ema", 17])[1]
    assert "eval/accuracy is not finite" in expkit("why", made.ids["none", 20])[1]


def test_a_lost_trial_says_how_we_know() -> None:
    me = Owner.this_process()
    assert gone_because(dataclasses.replace(me, process_start=1.0)) == f"its process {me.pid} on {me.host} is gone"
    assert gone_because(dataclasses.replace(me, boot_id="earlier/")) == f"{me.host} was started anew since"
    assert "has said nothing for 90 s" in gone_because(dataclasses.replace(me, host="elsewhere"))


def test_the_end_of_the_log_stands_below_what_failed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = store.new_attempt("a" * 12, 0, "driver")
    store.layout.log(folder, 0).write_text("\n".join(f"line {i}" for i in range(100)))
    store.layout.heartbeat("a" * 12, 0).write_text('{"batch": 5, "of": 8}')
    store.write_status("a" * 12, 0, Status("failed", 1, cause="signal"))
    told = why(store, "a" * 12, 0)
    assert told.lines[-1] == "line 99" and len(told.lines) == 20
    assert "something killed its process, batch 5 of 8" in told.sentence
    assert told.next == f"expkit rerun {'a' * 12}"


@pytest.mark.parametrize(
    ("cause", "message"),
    [("config", "GradNorm must be a @dataclass"), ("exception", "ValueError: unlucky\n  File own.py, line 3")],
)
def test_what_the_message_says_already_is_not_said_again_from_the_log(tmp_path: Path, cause: str, message: str) -> None:
    store = Store(tmp_path)
    store.layout.log(store.new_attempt("a" * 12, 0, "driver"), 0).write_text(f"Traceback\n{message}\n")
    store.write_status("a" * 12, 0, Status("failed", 1, cause=cause, message=message))
    told = why(store, "a" * 12, 0)
    assert (told.message, told.lines) == (message, ())


def test_a_status_that_cannot_be_read_is_the_reason(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.new_attempt("a" * 12, 0, "driver")
    store.layout.status("a" * 12, 0).write_text("[")
    told = why(store, "a" * 12, 0)
    assert told.state == "lost"
    assert any("status.json" in remark and "set aside" in remark for remark in told.remarks)


@pytest.mark.parametrize(
    ("state", "says"),
    [("interrupted", "asked to stop"), ("pruned", "ended it early"), ("running", "as process"), ("claimed", "claimed")],
)
def test_the_other_states(tmp_path: Path, state: str, says: str) -> None:
    store = Store(tmp_path)
    store.new_attempt("a" * 12, 0, "driver")
    store.write_status("a" * 12, 0, Status(state, 1).owned_by(Owner.this_process()))
    assert says in why(store, "a" * 12, 0).sentence
