"""Workers of a loader: one that raises, dies or hangs is a sentence, and none is left running however `fit` ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import torch
from torch.utils import data

from expkit.errors import Interruption, TrialFailure
from expkit.trainer.callback import Callback
from tests.trainer.doubles import batches, net, trainer
from tests.trainer.test_loaders import INPUTS, TARGETS, Stateful, Stream, of


class Trouble(data.Dataset[Any]):
    """26 samples in order; something happens at the 15th."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self.happens = happens

    def __len__(self) -> int:
        return 26

    def __getitem__(self, index: int) -> Any:
        if index == 14:
            self.happens()
        return INPUTS[index], TARGETS[index]


def raises() -> None:
    raise ValueError("not an image:\n  /data/14.png")


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def workers() -> set[int]:
    """Forked children of this process; multiprocessing's own helpers have a command line of their own."""
    own = psutil.Process()
    return {child.pid for child in own.children(recursive=True) if child.cmdline() in ([], own.cmdline())}


@pytest.fixture(autouse=True)
def _none_left() -> Any:
    before = workers()
    yield
    assert workers() <= before


def failure(dataset: Any, **settings: Any) -> TrialFailure:
    loader = data.DataLoader(dataset, 6, **{"num_workers": 2, **settings})
    with pytest.raises(TrialFailure) as caught:
        trainer(train_dataloader=loader).fit()
    return caught.value


@pytest.mark.parametrize("persistent", [False, True])
def test_a_data_set_that_raises_in_a_worker_is_a_sentence_with_the_sample(persistent: bool) -> None:
    error = failure(Trouble(raises), persistent_workers=persistent)
    assert str(error) == ("sample 14 could not be loaded, in loader worker 0, after 2 batches of training: "
                          "ValueError: not an image: /data/14.png")  # fmt: skip
    assert error.cause == "exception"
    assert "Trouble" not in str(error) and "__getitem__" in str(error.__cause__)  # the traceback is there to read


@pytest.mark.parametrize("error", [KeyError("label"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")])
def test_whatever_it_raises(error: Exception) -> None:
    def raises() -> None:
        raise error

    assert f"after 2 batches of training: {type(error).__name__}: {error}" in str(failure(Trouble(raises)))


def test_what_collates_may_raise_too() -> None:
    def collate(samples: list[Any]) -> Any:
        raise ZeroDivisionError("no samples left")

    told = str(failure(data.TensorDataset(INPUTS, TARGETS), collate_fn=collate))
    assert told == ("the data could not be loaded, in loader worker 0, after 0 batches of training: "
                    "ZeroDivisionError: no samples left")  # fmt: skip


def test_in_the_main_process_the_error_is_the_data_sets_own_and_names_the_sample() -> None:
    with pytest.raises(ValueError, match="not an image") as caught:
        trainer(train_dataloader=data.DataLoader(Trouble(raises), 6)).fit()
    assert caught.value.__notes__ == [
        "while loading sample 14",
        "in epoch 0, after 2 batches of it, while its data were loaded",
    ]


@pytest.mark.parametrize(
    ("happens", "how", "cause"),
    [(killed, "was killed (Killed)", "signal"), (lambda: os._exit(3), "ended by itself", "exception")],
)
def test_a_worker_that_dies_is_a_sentence(happens: Any, how: str, cause: str) -> None:
    error = failure(Trouble(happens))
    assert f"{how} after " in str(error) and "num_workers=0" in str(error)
    assert error.cause == cause


def test_a_worker_that_hangs_is_a_sentence_where_the_loader_has_a_timeout() -> None:
    error = failure(Trouble(lambda: time.sleep(60)), timeout=0.5)
    assert "gave no batch within its timeout of 0.5 s, after 2 batches" in str(error)
    assert error.cause == "timeout"


class Leaves(Callback):
    def batch_end(self, state: Any, logger: Any) -> None:
        assert workers()
        if state.timestamp.batch == 2:
            raise Interruption("enough")


class Breaks(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize("settings", [{"persistent_workers": True}, {"dataset": Stream}, {}])
def test_no_worker_is_left_however_fit_ends(settings: dict[str, Any]) -> None:
    make = of(num_workers=2, **settings)
    for duration in ("1ep", "2ba"):
        with trainer(train_dataloader=make(), max_duration=duration) as t:
            t.fit()
            assert not workers()
    with pytest.raises(Interruption):
        trainer(train_dataloader=make(), callbacks=[Leaves()]).fit()
    with pytest.raises(ZeroDivisionError) as caught:
        trainer(torch.nn.Sequential(net(), Breaks()), train_dataloader=make()).fit()
    assert caught.tb  # it holds the iterator, and yet the workers are gone
    assert not workers()


def test_workers_that_the_user_has_started_are_left_alone() -> None:
    loader = of(num_workers=1, persistent_workers=True)()
    assert len(list(loader)) == 5
    own = workers()
    with trainer(train_dataloader=loader, max_duration="2ba") as t:
        t.fit()
    assert workers() == own and len(list(loader)) == 5
    loader._iterator._shutdown_workers()


def test_a_loader_that_knows_its_place_is_not_asked_after_an_error() -> None:
    class Dead(Stateful):
        def state_dict(self) -> dict[str, int]:
            raise AssertionError("its workers are gone")

    with pytest.raises(ZeroDivisionError):
        trainer(torch.nn.Sequential(net(), Breaks()), train_dataloader=Dead()).fit()


@pytest.mark.parametrize("how", ["fit", "eval", "predict"])
def test_evaluation_and_prediction_end_their_workers_and_say_the_same(how: str) -> None:
    loader = data.DataLoader(Trouble(raises), 6, num_workers=1, persistent_workers=True)
    t = trainer(train_dataloader=batches(), eval_dataloader=loader)
    with pytest.raises(TrialFailure, match="could not be loaded, in loader worker 0"):
        t.predict(loader) if how == "predict" else getattr(t, how)()
    assert not workers()
    with pytest.raises(ValueError, match="not an image"):
        list(loader)  # its workers are new ones
    loader._iterator._shutdown_workers()  # type: ignore[union-attr]
