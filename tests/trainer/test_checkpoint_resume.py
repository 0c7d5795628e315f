"""A training that was cut and resumed is, bit by bit, the training that ran through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.errors import CheckpointError, Interruption, UsageError
from expkit.trainer.event import Event
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import recorder, trainer, weights
from tests.trainer.resuming import (
    RECIPES,
    InterruptAt,
    assert_equal,
    fingerprint,
    make,
    run_through,
    sgd_ema,
    tail,
    torch_loader,
)


def goes_on_alike(recipe: Any, folder: Path, address: str, whole: Trainer, rows: Any, **settings: Any) -> None:
    resumed, memory = make(recipe, load_path=address, **settings)
    cut = resumed.state.timestamp.batch
    if resumed.state.progress < 1:
        with resumed:
            resumed.fit()
        assert memory.rows and tail(memory, cut) == tail(rows, cut), f"other numbers after batch {cut}"
    assert_equal(fingerprint(resumed.state), fingerprint(whole.state), f"resumed at batch {cut}")


@pytest.mark.parametrize("microbatch", [None, 3], ids=["whole", "microbatches"])
@pytest.mark.parametrize("name", RECIPES)
def test_resumed_at_any_batch_it_ends_as_if_it_had_run_through(name: str, microbatch: Any, tmp_path: Path) -> None:
    settings = {"device_train_microbatch_size": microbatch}
    whole, rows = run_through(RECIPES[name], tmp_path / "run", **settings)
    saved = whole.saved_checkpoints
    assert len(saved) == whole.state.timestamp.batch
    for address in saved:
        goes_on_alike(RECIPES[name], tmp_path, address, whole, rows, **settings)


def interrupted(t: Trainer, script: Any = Trainer.fit) -> None:
    """Run a script until its InterruptAt asks for the end."""
    for callback in t.state.callbacks.values():
        if isinstance(callback, InterruptAt):
            callback.trainer = t
    with t, pytest.raises(Interruption):
        script(t)


def test_saving_changes_no_bit(tmp_path: Path) -> None:
    saved, rows = run_through(sgd_ema, tmp_path / "run")
    plain, other = make(sgd_ema)
    plain.fit()
    assert tail(rows, 0) == tail(other, 0) and torch.equal(weights(saved), weights(plain))


def test_two_workers_of_a_loader_begin_where_they_were(tmp_path: Path) -> None:
    def recipe() -> Any:
        return torch_loader(num_workers=2)

    whole, rows = run_through(recipe, tmp_path / "run", "4ba", max_duration="2ep")
    for address in whole.saved_checkpoints:
        goes_on_alike(recipe, tmp_path, address, whole, rows, max_duration="2ep")


@pytest.mark.parametrize("unit", ["15ba", "120sp", "2.5ep"])
def test_whatever_the_end_is_counted_in(unit: str, tmp_path: Path) -> None:
    whole, rows = run_through(sgd_ema, tmp_path / "run", "4ba", max_duration=unit, iteration_length="4ba")
    for address in whole.saved_checkpoints:
        goes_on_alike(sgd_ema, tmp_path, address, whole, rows, max_duration=unit, iteration_length="4ba")


def test_bf16_and_a_searched_microbatch(tmp_path: Path) -> None:
    settings = {"precision": "amp_bf16", "device_train_microbatch_size": "auto"}
    whole, rows = run_through(sgd_ema, tmp_path / "run", "5ba", **settings)
    for address in whole.saved_checkpoints:
        goes_on_alike(sgd_ema, tmp_path, address, whole, rows, **settings)


def test_the_microbatch_that_was_found_is_not_looked_for_again(tmp_path: Path) -> None:
    first, _ = make(sgd_ema, device_train_microbatch_size="auto", max_duration="2ba")
    first.fit()
    first.state.microbatch_size = 4
    address = first.save_checkpoint(tmp_path / "c")
    again, _ = make(sgd_ema, device_train_microbatch_size="auto", load_path=address)
    assert again.microbatch_size_found == 4
    given, _ = make(sgd_ema, device_train_microbatch_size=2, load_path=address)
    assert given.microbatch_size_found == 2, "what was asked for holds"


def test_resume_mid_epoch_does_not_fire_epoch_start_twice(tmp_path: Path) -> None:
    whole, resumed = recorder(), recorder()
    t = trainer(callbacks=[whole], save_folder=tmp_path, save_interval="3ba")
    t.fit()
    trainer(callbacks=[resumed], load_path=tmp_path / "ep0-ba3").fit()
    cut = [i for i, event in enumerate(whole.seen) if event == Event.BATCH_CHECKPOINT][2]
    after = resumed.seen[resumed.seen.index(Event.FIT_START) + 1 :]
    assert after == whole.seen[cut + 1 :]


@pytest.mark.parametrize("batch", [3, 4, 5, 8])
def test_an_interruption_saves_and_the_rest_is_as_if_there_had_been_none(batch: int, tmp_path: Path) -> None:
    """Batch 4 is the last of an epoch, 8 the last of all: what follows it in the epoch comes after the resume."""
    plain, first, then = recorder(), recorder(), recorder()
    settings: Any = {"iteration_length": "2ba", "save_folder": tmp_path, "save_interval": None}
    whole = trainer(**{**settings, "save_folder": tmp_path / "whole"}, callbacks=[plain])
    whole.fit()
    interrupted(trainer(**settings, callbacks=[first, InterruptAt(batch)]))
    resumed = trainer(**settings, callbacks=[then, InterruptAt(0)], autoresume=True)
    assert resumed.state.timestamp.batch == batch
    resumed.fit()
    assert torch.equal(weights(resumed), weights(whole))
    assert resumed.state.timestamp._replace(train_s=0) == whole.state.timestamp._replace(train_s=0)
    cut = first.seen.index(Event.FIT_ERROR)
    assert first.seen[:cut] + then.seen[then.seen.index(Event.FIT_START) + 1 :] == plain.seen


def test_clocks_go_on_and_writing_is_billed_to_nobody(tmp_path: Path) -> None:
    whole, _ = run_through(sgd_ema, tmp_path / "run", "4ba")
    clocks = whole.clocks
    assert clocks["checkpoint_s"] > 0
    resumed, _ = make(sgd_ema, load_path=tmp_path / "run" / "ep1-ba8")
    before = resumed.state.timestamp.train_s
    assert 0 < before < clocks["train_s"]
    resumed.fit()
    assert resumed.clocks["train_s"] > before and resumed.state.timestamp.train_s > before
    assert resumed.clocks["wall_s"] > resumed.clocks["train_s"] + resumed.clocks["checkpoint_s"]


class TestAutoresume:
    def test_without_a_checkpoint_it_begins_at_the_beginning(self, tmp_path: Path) -> None:
        t = trainer(save_folder=tmp_path / "none yet", autoresume=True)
        assert t.state.timestamp.batch == 0 and t.state.resumed_from is None

    def test_a_training_that_is_complete_is_left_alone(self, tmp_path: Path) -> None:
        first = trainer(save_folder=tmp_path, autoresume=True)
        first.fit()
        first.close()
        events = recorder()
        again = trainer(save_folder=tmp_path, autoresume=True, callbacks=[events])
        again.fit()
        assert Event.FIT_START not in events.seen and torch.equal(weights(first), weights(again))

    @pytest.mark.parametrize("cut", [1, 5, 9, 13])
    def test_each_fit_ends_where_it_would_have_ended(self, cut: int, tmp_path: Path) -> None:
        """fit(duration=) means so much more from where that fit began, not from where the checkpoint was taken."""

        def script(t: Trainer) -> Trainer:
            t.fit()
            t.fit("1ep")
            t.fit(duration="3ba")
            return t

        settings: Any = {"max_duration": "5ba", "save_interval": "1ba"}
        whole = script(trainer(**settings, save_folder=tmp_path / "whole"))
        assert whole.state.timestamp.batch == 12
        if cut < 12:
            interrupted(trainer(**settings, save_folder=tmp_path / "cut", callbacks=[InterruptAt(cut)]), script)
        else:
            script(trainer(**settings, save_folder=tmp_path / "cut"))
        resumed = script(trainer(**settings, save_folder=tmp_path / "cut", autoresume=True))
        assert resumed.state.timestamp._replace(train_s=0) == whole.state.timestamp._replace(train_s=0)
        assert torch.equal(weights(resumed), weights(whole))

    def test_a_longer_training_goes_on_from_the_shorter_one(self, tmp_path: Path) -> None:
        trainer(save_folder=tmp_path).fit()
        longer = trainer(save_folder=tmp_path, autoresume=True, max_duration="3ep")
        longer.fit()
        whole = trainer(max_duration="3ep")
        whole.fit()
        assert longer.state.timestamp.batch == 12 and torch.equal(weights(longer), weights(whole))

    def test_a_shorter_one_never_overshoots(self, tmp_path: Path) -> None:
        interrupted(trainer(save_folder=tmp_path, callbacks=[InterruptAt(6)]))
        shorter = trainer(save_folder=tmp_path, autoresume=True, max_duration="5ba")
        shorter.fit()
        assert shorter.state.timestamp.batch == 6

    def test_another_config_is_refused_in_one_sentence(self, tmp_path: Path) -> None:
        trainer(save_folder=tmp_path).fit()
        with pytest.raises(CheckpointError) as e:
            trainer(save_folder=tmp_path, autoresume=True, momentum=0.5)
        assert "optimizer.groups" in str(e.value) and "\n" not in str(e.value)
        with pytest.raises(CheckpointError, match="seed was 0 and is 3; choose another run_name or save_folder"):
            trainer(save_folder=tmp_path, autoresume=True, seed=3)
        assert trainer(save_folder=tmp_path, autoresume=True, seed=3, load_strict=False).state.timestamp.batch == 8

    def test_it_says_what_it_needs(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="autoresume needs save_folder"):
            trainer(autoresume=True)
        with pytest.raises(UsageError, match="autoresume needs run_name"):
            trainer(autoresume=True, save_folder=str(tmp_path / "{run_name}"))
        with pytest.raises(UsageError, match="autoresume needs save_folder"):
            trainer(autoresume=True, callbacks=[CheckpointSaver(folder=str(tmp_path), weights_only=True)])

    def test_it_finds_what_a_saver_among_the_callbacks_has_saved(self, tmp_path: Path) -> None:
        def make_one() -> Trainer:
            return trainer(callbacks=[CheckpointSaver(folder=str(tmp_path / "{run_name}"))], run_name="a",
                           autoresume=True)  # fmt: skip

        make_one().fit()
        assert make_one().state.resumed_from == str(tmp_path / "a" / "ep2-ba8")

    def test_it_wins_over_load_path(self, tmp_path: Path) -> None:
        trainer(save_folder=tmp_path / "before", max_duration="1ep").fit()
        first = trainer(save_folder=tmp_path / "run", load_path=tmp_path / "before", autoresume=True)
        assert first.state.timestamp.batch == 4
        first.fit()
        again = trainer(save_folder=tmp_path / "run", load_path=tmp_path / "before", autoresume=True)
        assert again.state.timestamp.batch == 8
