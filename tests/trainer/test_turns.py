"""Turns: fits inside fits, threads, Ctrl-C, one trainer after the other; what is interrupted stays whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from expkit.errors import EnvironmentFault, Interruption, UsageError
from expkit.trainer.callback import Callback
from expkit.trainer.event import Event
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, net, recorder, trainer, weights

ROOT = Path(__file__).parents[2]


class Does(Callback):
    """Does something once, at one event of one batch."""

    def __init__(self, event: str, action: Callable[[], object], batch: int = 1) -> None:
        self.done = False

        def act(state: Any, logger: Any) -> None:
            if not self.done and state.timestamp.batch >= batch:
                self.done = True
                action()

        setattr(self, event, act)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def fitted(**settings: Any) -> Trainer:
    done = trainer(net(dropout=0.3), **settings)
    done.fit()
    return done


@pytest.mark.parametrize(("action", "what"), [(lambda t: t.fit("1ba"), "fit"), (lambda t: t.close(), "close")])
def test_a_fit_inside_a_fit_is_refused_and_so_is_closing(action: Callable[[Trainer], None], what: str) -> None:
    t = trainer(callbacks=[Does("batch_end", lambda: action(t))])
    with pytest.raises(UsageError, match=f"^{what} must wait until fit has come back, but it is under way"):
        t.fit()
    t.fit()
    assert t.state.timestamp.batch == 8
    t.close()


ACTIONS: list[Callable[[Trainer, Path], object]] = [
    lambda t, folder: t.eval(batches(1)),
    lambda t, folder: t.predict(batches(1)),
    lambda t, folder: t.save_checkpoint(folder / "c"),
    lambda t, folder: fitted(max_duration="1ba"),
]


@pytest.mark.parametrize("action", ACTIONS)
def test_what_a_callback_may_do_with_its_trainer_changes_no_bit(action: Any, tmp_path: Path) -> None:
    t = trainer(net(dropout=0.3), callbacks=[Does("batch_end", lambda: action(t, tmp_path))])
    t.fit()
    assert torch.equal(weights(t), weights(fitted()))


def test_other_threads_are_refused_while_one_trains() -> None:
    said: list[str] = []

    def elsewhere() -> None:
        for action in (t.fit, t.eval, t.close, lambda: t.predict(batches(1)), lambda: t.save_checkpoint("nowhere")):
            try:
                action()  # type: ignore[operator]
            except UsageError as e:
                said.append(str(e).split(" must wait")[0])

    def ask() -> None:
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()

    t = trainer(net(dropout=0.3), callbacks=[Does("batch_end", ask)], eval_dataloader=batches(1))
    t.fit()
    assert said == ["train", "evaluate", "close", "predict", "save_checkpoint"]
    assert torch.equal(weights(t), weights(fitted()))


def test_a_thread_may_train_and_two_at_once_are_warned() -> None:
    made: list[Trainer] = []
    thread = threading.Thread(target=lambda: made.append(fitted()))
    thread.start()
    thread.join()
    assert torch.equal(weights(made[0]), weights(fitted()))

    def both() -> None:
        other = threading.Thread(target=beside)
        other.start()
        other.join()

    def beside() -> None:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fitted(max_duration="1ba")
        heard.extend(str(warning.message) for warning in said)

    heard: list[str] = []
    trainer(callbacks=[Does("batch_end", both)]).fit()
    assert len(heard) == 1 and "two threads train at once" in heard[0]


class TestCtrlC:
    @pytest.mark.parametrize("event", ["before_dataloader", "before_forward", "before_backward", "after_train_batch",
                                       "batch_end", "eval_batch_end", "epoch_end", "epoch_start"])  # fmt: skip
    def test_ends_after_the_step_with_everything_whole_and_saved(self, event: str, tmp_path: Path) -> None:
        settings: dict[str, Any] = {"eval_dataloader": batches(1), "eval_interval": "2ba", "save_interval": None}
        seen = recorder()
        t = trainer(net(dropout=0.3), callbacks=[Does(event, press, 3), seen], save_folder=tmp_path, **settings)
        with pytest.raises(KeyboardInterrupt), t:
            t.fit()
        batch = t.state.timestamp.batch
        assert batch in (3, 4, 5) and seen.seen.count(Event.FIT_ERROR) == 1
        assert isinstance(t.state.error, Interruption)
        assert [Path(saved).name.split("-")[1] for saved in t.saved_checkpoints] == [f"ba{batch}"]
        again = trainer(net(dropout=0.3), load_path=tmp_path, **settings)
        again.fit()
        assert torch.equal(weights(again), weights(fitted()))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_and_the_same_trainer_goes_on(self) -> None:
        t = trainer(net(dropout=0.3), callbacks=[Does("before_loss", press, 2)])
        with pytest.raises(KeyboardInterrupt):
            t.fit()
        assert t.state.timestamp.batch == 3
        t.fit()
        assert torch.equal(weights(t), weights(fitted()))

    def test_twice_ends_at_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        t = trainer(callbacks=[Does("before_loss", lambda: (press(), press()), 2)])
        with pytest.raises(KeyboardInterrupt) as e:
            t.fit()
        assert t.state.timestamp.batch == 2
        assert capsys.readouterr().err == "Ctrl-C: fit ends after this step; press it again to end at once\n"
        assert e.value.__cause__ is None

    def test_while_it_waits_for_data_ends_at_once(self) -> None:
        class Slow:
            def __len__(self) -> int:
                return 4

            def __iter__(self) -> Any:
                for place, batch in enumerate(batches()):
                    if place == 2 and not pressed:
                        pressed.append(True)
                        press()
                    yield batch

        pressed: list[bool] = []
        t = trainer(net(dropout=0.3), train_dataloader=Slow())
        with pytest.raises(KeyboardInterrupt):
            t.fit()
        assert t.state.timestamp.batch == 2
        t.fit()
        assert torch.equal(weights(t), weights(fitted(train_dataloader=Slow())))

    @pytest.mark.parametrize("event", ["fit_end", "epoch_checkpoint"])
    def test_after_the_last_step_is_not_swallowed(self, event: str) -> None:
        t = trainer(callbacks=[Does(event, press, 8)])
        with pytest.raises(KeyboardInterrupt):
            t.fit()
        assert t.state.timestamp.batch == 8

    def test_is_left_to_whoever_handles_it_already(self) -> None:
        heard: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
        try:
            fitted(callbacks=[Does("before_loss", press)])
        finally:
            signal.signal(signal.SIGINT, before)
        assert heard == [signal.SIGINT]

    def test_in_an_evaluation_of_its_own_leaves_the_model_as_it_was(self) -> None:
        t = trainer(net(dropout=0.3), callbacks=[Does("eval_batch_end", press, 0)])
        with pytest.raises(KeyboardInterrupt):
            t.eval(batches(2))
        t.fit()
        assert torch.equal(weights(t), weights(fitted()))


SCRIPT = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset
from expkit import Callback, Trainer

class Says(Callback):
    def batch_end(self, state, logger):
        if state.timestamp.batch == 5:
            print("ready", flush=True)

if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4000, 8), torch.arange(4000) % 4)
    loader = DataLoader(data, 2, shuffle=True, num_workers=2)
    model = torch.nn.Linear(8, 4)
    with Trainer(model=model, train_dataloader=loader, optimizers=torch.optim.SGD(model.parameters(), lr=0.1),
                 max_duration="100ep", device="cpu", save_folder=sys.argv[1], save_interval=None,
                 callbacks=Says()) as trainer:
        trainer.fit()
"""


def test_ctrl_c_in_a_terminal_reaches_the_workers_of_a_loader_too(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-u", str(script), str(tmp_path / "saved")]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True,
                               env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert err.count("\nKeyboardInterrupt: ") == 1 and "worker" not in err
    [saved] = [path.name for path in (tmp_path / "saved").iterdir() if path.is_dir()]
    assert saved.startswith("ep")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.parametrize("event", [event.value for event in Event if event is not Event.FIT_ERROR])
def test_a_callback_that_raises_at_an_event_closes_all_and_is_heard_once(event: str) -> None:
    seen, memory = recorder(), Memory()

    def raises() -> None:
        raise ZeroDivisionError(event)

    settings = {"callbacks": [Does(event, raises, 0), seen], "loggers": [memory], "iteration_length": "2ba"}
    with (
        pytest.raises(ZeroDivisionError, match=f"^{event}"),
        trainer(eval_dataloader=batches(1), **settings) as t,  # type: ignore[arg-type]
    ):
        t.fit()
        t.eval()
        t.predict(batches(1))
    alone = event.startswith(("init", "before_load", "after_load", "eval_standalone", "predict"))
    assert seen.seen.count(Event.FIT_ERROR) == (not alone)
    assert memory.closed == 1


def test_a_fit_after_an_error_goes_on_as_if_nothing_had_happened() -> None:
    def raises() -> None:
        raise ZeroDivisionError

    t = trainer(net(dropout=0.3), callbacks=[Does("before_loss", raises, 3)])
    with pytest.raises(ZeroDivisionError):
        t.fit()
    t.fit()
    assert torch.equal(weights(t), weights(fitted()))


class Shared(nn.Module):
    """Two layers with one weight, in float64."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)
        self.b.weight = self.a.weight
        self.double()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.out(self.b(torch.tanh(self.a(inputs))))


def test_shared_parameters_in_double_are_saved_and_go_on(tmp_path: Path) -> None:
    data = [(inputs.double(), targets) for inputs, targets in batches()]
    trainer(Shared(), train_dataloader=data, save_folder=tmp_path, max_duration="1ep").fit()
    again = trainer(Shared(), train_dataloader=data, load_path=tmp_path)
    again.fit()
    whole = trainer(Shared(), train_dataloader=data)
    whole.fit()
    assert torch.equal(weights(again), weights(whole))
    assert again.state.model.a.weight is again.state.model.b.weight


def with_lbfgs(model: nn.Module, **settings: Any) -> Trainer:
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    return Trainer(model=model, train_dataloader=batches(), optimizers=optimizer, device="cpu", **settings)


def test_lbfgs_trains_as_by_hand_and_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    model, by_hand = net(), net()
    done = with_lbfgs(model, max_duration="2ep")
    done.fit()
    optimizer = torch.optim.LBFGS(by_hand.parameters(), lr=0.5, max_iter=4)
    for inputs, targets in batches() * 2:

        def closure(inputs: Any = inputs, targets: Any = targets) -> float:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(by_hand(inputs), targets)
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

        optimizer.step(closure)
    assert torch.equal(weights(done), torch.cat([p.detach().flatten() for p in by_hand.parameters()]))
    with_lbfgs(net(), max_duration="3ba", save_folder=tmp_path).fit()
    again = with_lbfgs(net(), max_duration="2ep", load_path=tmp_path)
    again.fit()
    assert torch.equal(weights(again), weights(done))
    with pytest.raises(UsageError, match="cannot be auto with LBFGS, which needs gradients more than once a step"):
        with_lbfgs(net(), max_duration="1ep", device_train_microbatch_size="auto")


@pytest.mark.parametrize("name", ["file", "file/saved", "x" * 300])
def test_a_save_folder_that_cannot_be_is_noticed_before_the_first_step(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    t = trainer(save_folder=tmp_path / name)
    with pytest.raises(EnvironmentFault, match="no checkpoint can be saved in"):
        t.fit()
    assert t.state.timestamp.batch == 0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
