"""The suites themselves: each catches the plug-in that breaks its promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.testing import methods, parts, suites, watchers
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.callback import Callback
from expkit.trainer.contracts import Metric, Model, Optimizer, Scheduler
from expkit.trainer.schedule import Steps


@dataclass
class Careless(Algorithm):
    """Breaks one promise, the one it is told to."""

    how: str = ""

    def after_dataloader(self, state: Any, logger: Any) -> None:
        if self.how == "writes":
            state.inputs.mul_(2)
        if self.how == "nan":
            state.inputs = state.inputs * torch.nan
        if self.how == "targets":
            state.targets = state.targets.flip(0)
        if self.how == "draws":
            noise = torch.empty(1).uniform_(generator=torch.Generator().manual_seed(torch.seed() % 2**31))
            state.inputs = state.inputs + noise
        if self.how == "seed":
            state.seed += 1

    def before_loss(self, state: Any, logger: Any) -> None:
        if self.how == "parts":
            state.outputs = state.outputs * (1 + state.microbatch)

    def state_dict(self) -> dict[str, Any]:
        return {"engine": self} if self.how == "objects" else {}


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("writes", methods.leaves_the_batch_as_found),
        ("targets", methods.leaves_the_batch_as_found),
        ("nan", methods.trains_to_finite_numbers),
        ("draws", methods.is_deterministic),
        ("seed", methods.changes_no_other_stream),
        ("parts", methods.in_parts_as_in_one),
        ("", methods.names_its_source),
        ("", suites.explains_itself),
    ],
)
def test_a_careless_algorithm_is_caught(how: str, check: suites.Check) -> None:
    with pytest.raises(AssertionError):
        check(Careless(how))


def test_state_that_needs_code_to_be_read_is_caught() -> None:
    with pytest.raises(Exception, match=r"[Ww]eights"):
        methods.keeps_plain_state(Careless("objects"))


def test_importing_torch_is_caught() -> None:
    with pytest.raises(AssertionError, match="loads torch"):
        suites.imports_without_torch(Careless())


@dataclass
class Meddling(Callback):
    """Touches the weights."""

    def batch_end(self, state: Any, logger: Any) -> None:
        with torch.no_grad():
            next(state.model.parameters()).mul_(0.9)


def test_a_callback_that_acts_is_caught() -> None:
    with pytest.raises(AssertionError, match="are not as they are without it"):
        watchers.changes_no_bit_of_training(Meddling())


@dataclass
class Untidy(Callback):
    """Records the loss and its mean over what it has seen, `mine/loss`; breaks one promise, the one it is told to."""

    how: str = ""
    changes_training = False
    _seen: Any = field(default_factory=list, init=False)

    def batch_end(self, state: Any, logger: Any) -> None:
        self._seen = [*self._seen, state.train_loss]
        logger.log_metrics({"mine/loss": sum(self._seen) / len(self._seen)})
        if self.how == "draws":
            torch.rand(1)
        if self.how == "stops":
            state.stop("enough")
        if self.how == "hooks":
            state.model.register_forward_hook(lambda *_: None)
        if self.how == "optimizer":
            state.optimizer.param_groups[0]["momentum"] = 0.5
        if self.how == "says more":
            logger.log_metrics({"mine/surprise": 1.0})

    def state_dict(self) -> dict[str, Any]:
        return {"object": {"seen": self}, "none": {}}.get(self.how, {"seen": self._seen})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._seen = state.get("seen", [])


@dataclass
class Late(Untidy):
    """Stops training and changes weights before, `mine/loss`."""

    changes_training = True

    def batch_end(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == 2:
            state.stop("enough")
            if self.how == "bends":
                with torch.no_grad():
                    next(state.model.parameters()).mul_(0.9)


@pytest.mark.parametrize(
    ("how", "check", "sentence"),
    [
        ("draws", watchers.changes_no_bit_of_training, "generators are not"),
        ("stops", watchers.changes_no_bit_of_training, "does not declare changes_training"),
        ("hooks", watchers.changes_no_bit_of_training, "hooks are not"),
        ("optimizer", watchers.changes_no_bit_of_training, "are not as they are without"),
        ("none", watchers.goes_on_where_it_was, "mine/loss is .* after a resume"),
        ("object", watchers.goes_on_where_it_was, "is no plain value and no tensor"),
        ("says more", watchers.names_its_series, r"no word about \['mine/surprise'\]"),
    ],
)
def test_an_untidy_callback_is_caught(how: str, check: suites.Check, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check(Untidy(how))


def test_one_that_stops_training_may_do_no_more_than_that() -> None:
    watchers.changes_no_bit_of_training(Late())
    with pytest.raises(AssertionError, match="weights are not as they are without it"):
        watchers.changes_no_bit_of_training(Late("bends"))


def test_a_tidy_callback_passes_all_checks_of_its_kind() -> None:
    for check in suites.checks("callbacks"):
        if check.__name__ not in {"imports_without_torch", "explains_itself"}:  # this file is no plug-in's
            check(Untidy())


@dataclass
class Boastful(Model):
    """Says it has convolutions."""

    provides = frozenset({"convolutions", "wings"})

    def build(self) -> Any:
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 2))


def test_capabilities_that_are_not_there_are_caught() -> None:
    for check, words in ((suites.declares_known_words, "wings"), (parts.provides_what_it_says, "convolutions")):
        with pytest.raises(AssertionError, match=words):
            check(Boastful())


@dataclass
class Uphill(Optimizer):
    """Climbs."""

    def build(self, params: Any) -> Any:
        return torch.optim.SGD(params, lr=0.1, maximize=True)


@dataclass
class Remembering(Scheduler):
    """Counts its calls."""

    _calls: Any = field(default=0, init=False)

    def factor(self, step: int, steps: Steps) -> float:
        self._calls += 1
        return 1 / float(self._calls)


@dataclass
class MeanOfMeans(Metric):
    """Weighs batches alike."""

    _means: Any = field(default=None, init=False)

    def reset(self) -> None:
        self._means = []

    def update(self, outputs: Any, targets: Any) -> None:
        self._means = [*(self._means or []), float((outputs.argmax(1) == targets).double().mean())]

    def compute(self) -> float:
        return sum(self._means) / len(self._means) if self._means else float("nan")


def test_other_broken_promises_are_caught() -> None:
    for check, plugin in (
        (parts.goes_downhill, Uphill()),
        (parts.is_a_pure_function_of_the_step, Remembering()),
        (parts.adds_up_over_batches, MeanOfMeans()),
    ):
        with pytest.raises(AssertionError):
            check(plugin)
