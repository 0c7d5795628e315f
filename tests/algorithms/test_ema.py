from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from expkit.algorithms.ema import EMA
from expkit.duration import Time
from expkit.errors import PluginError
from expkit.plugins import build, dump
from expkit.testing.training import train
from expkit.trainer.callback import Callback
from expkit.trainer.trainer import Trainer


@dataclass
class Watch(Callback):
    """Writes down one weight after each batch and at each evaluation."""

    trained: Any = field(default_factory=list, init=False)
    evaluated: Any = field(default_factory=list, init=False)
    raises: bool = False

    def batch_start(self, state: Any, logger: Any) -> None:
        if not self.trained:
            self.trained.append(self._weight(state))

    def batch_end(self, state: Any, logger: Any) -> None:
        self.trained.append(self._weight(state))

    def eval_batch_start(self, state: Any, logger: Any) -> None:
        self.evaluated.append(self._weight(state))
        if self.raises:
            raise RuntimeError("in the middle of an evaluation")

    def _weight(self, state: Any) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in state.model.parameters()])


def fitted(method: EMA | None, watch: Watch, num_batches: int = 4, **settings: Any) -> Trainer:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    rng = torch.Generator().manual_seed(0)
    data = [(torch.randn(4, 3, generator=rng), torch.arange(4) % 2) for _ in range(4)]
    trainer = Trainer(
        model=model, train_dataloader=data, eval_dataloader=data[:1], device="cpu",
        optimizers=torch.optim.SGD(model.parameters(), lr=0.5), max_duration=f"{num_batches}ba", eval_interval="1ba",
        algorithms=[method] if method else [], callbacks=[watch], **settings,
    )  # fmt: skip
    trainer.fit()
    return trainer


def expected(trained: list[torch.Tensor], smoothing: float, start: int = 0, every: int = 1) -> list[torch.Tensor]:
    """What each evaluation sees, written out: the average from the weights before step `start` on."""
    average, seen = None, []
    for step, weights in enumerate(trained[1:]):
        if step >= start:
            average = trained[start] if average is None else average
            if (step + 1 - start) % every == 0:
                average = smoothing * average + (1 - smoothing) * weights
        seen.append(weights if average is None else average)
    return seen


@pytest.mark.parametrize(
    ("settings", "smoothing", "start", "every"),
    [
        ({"smoothing": 0.75}, 0.75, 0, 1),
        ({"half_life": "1ba"}, 0.5, 0, 1),
        ({"half_life": "0.5dur"}, 2**-0.5, 0, 1),
        ({"half_life": "1ep"}, 2**-0.25, 0, 1),
        ({"half_life": "1ba", "update_interval": "2ba"}, 0.25, 0, 2),
        ({"smoothing": 0.5, "ema_start": "0.5dur"}, 0.5, 2, 1),
    ],
)
def test_evaluation_sees_the_average_hand_computed(
    settings: dict[str, Any], smoothing: float, start: int, every: int
) -> None:
    watch, method = Watch(), build("algorithms", "ema", settings)
    assert isinstance(method, EMA)
    fitted(method, watch)
    for seen, average in zip(watch.evaluated, expected(watch.trained, smoothing, start, every), strict=True):
        torch.testing.assert_close(seen, average)
    assert method.effective


def test_training_weights_are_intact_bit_by_bit() -> None:
    plain, averaged = Watch(), Watch()
    fitted(None, plain)
    fitted(EMA(smoothing=0.9), averaged)
    assert all(torch.equal(a, b) for a, b in zip(plain.trained, averaged.trained, strict=True))
    assert not torch.equal(plain.evaluated[-1], averaged.evaluated[-1])


@pytest.mark.parametrize("num_batches", [3, 4, 5])
def test_after_fit_the_model_holds_what_was_evaluated_last_whatever_the_last_event_defect_D11(num_batches: int) -> None:
    watch = Watch()
    trainer = fitted(EMA(smoothing=0.9), watch, num_batches)
    held = torch.cat([p.detach().flatten() for p in trainer.state.model.parameters()])
    assert torch.equal(held, watch.evaluated[-1])


def test_another_fit_goes_on_from_the_training_weights() -> None:
    whole, parts = Watch(), Watch()
    fitted(EMA(smoothing=0.9), whole, 4)
    fitted(EMA(smoothing=0.9), parts, 2).fit("2ba")
    assert all(torch.equal(a, b) for a, b in zip(whole.trained, parts.trained, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(whole.evaluated, parts.evaluated, strict=True))


def test_an_evaluation_that_raises_leaves_the_training_weights() -> None:
    watch = Watch(raises=True)
    method = EMA(smoothing=0.9)
    with pytest.raises(RuntimeError, match="in the middle"):
        fitted(method, watch)
    tensors = torch.cat([owner[key].detach().flatten() for owner, key in list(method._places.values())[:4]])
    assert torch.equal(tensors, watch.trained[-1])


def test_smoothing_alone_constructs_and_runs_defect_D11() -> None:
    method = EMA(smoothing=0.99)
    assert method.half_life is None
    assert fitted(method, Watch()).effective == {"ema": True}


def test_batch_counters_are_copied_not_averaged_defect_D11() -> None:
    trainer = fitted(EMA(smoothing=0.99), Watch())
    assert trainer.state.model[1].num_batches_tracked.item() == 4


def test_neither_given_means_composers_half_life_and_both_are_refused() -> None:
    assert dump(EMA())["half_life"] == "1000ba"
    with pytest.raises(ValueError, match="half_life or smoothing, not both"):
        EMA(half_life=Time.parse("10ba"), smoothing=0.9)


@pytest.mark.parametrize("bad", [{"smoothing": 0}, {"smoothing": 1}, {"half_life": "0ba"}, {"half_life": "5"},
                                 {"half_life": "10sec"}, {"update_interval": "0ba"}, {"ema_start": "1h"}])  # fmt: skip
def test_ranges_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises((PluginError, ValueError), match=next(iter(bad))):
        build("algorithms", "ema", bad)


def test_a_start_after_the_end_has_no_effect_and_says_so() -> None:
    method = EMA(smoothing=0.9, ema_start=Time.parse("100ba"))
    assert train([method]).losses == train().losses
    assert not method.effective


def test_half_life_scales_with_the_ssr() -> None:
    watch = Watch()
    fitted(EMA(half_life=Time.parse("2ba")), watch, num_batches=8, ssr=0.5)
    for seen, average in zip(watch.evaluated, expected(watch.trained, 0.5), strict=True):
        torch.testing.assert_close(seen, average)


def test_state_restores_the_average_in_another_instance() -> None:
    method, resumed = EMA(smoothing=0.9), EMA(smoothing=0.9)
    trainer = fitted(method, Watch())
    resumed.load_state_dict(method.state_dict())
    resumed.fit_start(trainer.state, trainer.logger)
    trained = [tensors[key] for tensors, key in resumed._places.values()]
    assert all(torch.equal(a, b) for a, b in zip(method._averages.values(), trained, strict=True))
    assert not resumed._swapped and method._swapped and resumed.effective
