"""EMA: training goes on as ever, evaluation sees the moving average of its weights.

After `fit` the model holds the average, which is what the last evaluation measured; another `fit` takes the training
weights back first. Both are kept to the bit: they change places, they are not copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from expkit.duration import Time, TimeUnit
from expkit.functional.schedules import require_steps
from expkit.trainer.algorithm import Algorithm


@dataclass
class EMA(Algorithm):
    """Evaluates an exponential moving average of the weights: smoother curves, better quality before the end."""

    conflicts = frozenset({"swa"})
    paper = "Tarvainen and Valpola 2017, Mean Teachers Are Better Role Models, arXiv 1703.01780; after Polyak 1992"

    half_life: Time | None = None
    """Span after which half of an old average is left; 1000ba where neither this nor smoothing is given."""
    smoothing: Annotated[float | None, Field(gt=0, lt=1)] = None
    """Weight of the old average at each update, instead of a half-life."""
    ema_start: Time = field(default=Time(0, TimeUnit.DURATION))
    """When averaging begins; until then the training weights are evaluated."""
    update_interval: Time | None = None
    """How often the average is updated; after every batch where it is not given."""
    _averages: Any = field(default=None, init=False, repr=False, compare=False)
    _places: Any = field(default=None, init=False, repr=False, compare=False)
    _start_step: Any = field(default=0, init=False, repr=False, compare=False)
    _swapped: Any = field(default=False, init=False, repr=False, compare=False)
    _evaluating: Any = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.half_life is not None and self.smoothing is not None:
            raise ValueError(f"give half_life or smoothing, not both (got {self.half_life} and {self.smoothing})")
        if self.half_life is None and self.smoothing is None:
            self.half_life = Time(1000, TimeUnit.BATCH)
        for name in ("half_life", "ema_start", "update_interval"):
            if (time := getattr(self, name)) is not None:
                require_steps(name, time)
                if time.value == 0 and name != "ema_start":
                    raise ValueError(f"{name} must be positive, but got {time}")

    def init(self, state: Any, logger: Any) -> None:
        self._averages, self._start_step = None, 0  # it may have been part of another training
        self._swapped = self._evaluating = False

    def fit_start(self, state: Any, logger: Any) -> None:
        from expkit.functional import ema as functional

        self._places = functional.places_of(state.model)
        if self._averages is not None:  # of an earlier fit, or of a checkpoint, which may have been read elsewhere
            places = self._places.items()
            self._averages = {name: self._averages[name].to(owner[key].device) for name, (owner, key) in places}
        if self._swapped:
            self._swap()

    def batch_start(self, state: Any, logger: Any) -> None:
        if self._averages is None and state.timestamp.batch >= state.steps.of(self.ema_start):
            self._averages = dict(zip(self._places, map(_copy, self._current()), strict=True))
            self._start_step = state.timestamp.batch

    def batch_end(self, state: Any, logger: Any) -> None:
        from expkit.functional import ema as functional

        if self._averages is None:
            return
        interval = max(1, round(state.steps.of(self.update_interval))) if self.update_interval else 1
        if (state.timestamp.batch - self._start_step) % interval == 0:
            functional.update(self._averages.values(), self._current(), self._smoothing(state, interval))
            self.effective = True

    def eval_start(self, state: Any, logger: Any) -> None:
        if self._averages is not None and not self._swapped:
            self._evaluating = True
            self._swap()

    def eval_end(self, state: Any, logger: Any) -> None:
        if self._evaluating:
            self._evaluating = False
            self._swap()

    def predict_start(self, state: Any, logger: Any) -> None:
        self.eval_start(state, logger)

    def predict_end(self, state: Any, logger: Any) -> None:
        self.eval_end(state, logger)

    def fit_error(self, state: Any, logger: Any) -> None:
        self.eval_end(state, logger)

    def fit_end(self, state: Any, logger: Any) -> None:
        if self._averages is not None and not self._swapped:
            self._swap()

    def state_dict(self) -> dict[str, Any]:
        """The weights that are not in the model, by name, and which of the two these are."""
        return {
            "held": self._averages,
            "swapped": self._swapped,
            "start_step": self._start_step,
            "effective": self.effective,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        held = state["held"]
        self._averages = None if held is None else {name: tensor.clone() for name, tensor in held.items()}
        self._swapped, self._start_step = state["swapped"], state["start_step"]
        self.effective = state["effective"]

    def _current(self) -> list[Any]:
        return [tensors[key] for tensors, key in self._places.values()]

    def _smoothing(self, state: Any, interval: int) -> float:
        from expkit.functional import ema as functional

        if self.smoothing is not None:
            return self.smoothing
        return functional.smoothing_of(state.steps.of(self.half_life), interval)

    def _swap(self) -> None:
        from expkit.functional import ema as functional

        functional.swap(self._averages.values(), self._current())
        self._swapped = not self._swapped


def _copy(tensor: Any) -> Any:
    return tensor.detach().clone()
