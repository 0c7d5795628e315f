"""Clocks: where the seconds went. Every moment belongs to exactly one part; some parts are not billed to training.

`train_s` is the sum of the billed parts and of what lies between them, `cpu_s` the CPU time of this process over the
same stretches. Nothing is billed before the first batch: that is `setup_s`.
"""

from __future__ import annotations

from time import perf_counter, process_time
from typing import Any

from expkit.trainer.checkpoint import checks

PARTS = ("data_wait_s", "forward_s", "backward_s", "optimizer_s", "algorithms_s", "callbacks_s", "eval_s",
         "checkpoint_s", "compile_s")  # fmt: skip
UNBILLED = frozenset({"callbacks_s", "eval_s", "checkpoint_s", "compile_s", "idle"})
_TOTALS = ("train_s", "cpu_s", "setup_s", "wall_s")
COLUMNS = ("setup_s", "train_s", "cpu_s", "wall_s", *PARTS)


class Clocks:
    """A stopwatch that is handed from part to part: `before = clocks.switch("eval_s") ... clocks.switch(before)`."""

    def __init__(self, setup_started: float | None = None) -> None:
        """`setup_started`: `perf_counter()` at process start, so that `setup_s` covers the imports as well."""
        self.train_s = 0.0
        self.cpu_s = 0.0
        self.setup_s = 0.0
        self.seconds = {**dict.fromkeys(PARTS, 0.0), "loop": 0.0, "idle": 0.0}
        self._origin_s = self._last_s = perf_counter() if setup_started is None else setup_started
        self._last_cpu_s = 0.0
        self.part = "idle"
        self._billed = False
        self._started = False
        self._carried_wall_s = self._carried_compile_s = 0.0

    def state_dict(self) -> dict[str, Any]:
        """All seconds so far, for a training that goes on in another process."""
        own = {name: getattr(self, name) for name in _TOTALS}
        return {**own, "seconds": dict(self.seconds)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there: the clocks of both processes are added, the time between them is nobody's."""
        carried = {name: checks.seconds(state.get(name), name) for name in _TOTALS}
        parts = checks.mapping(state.get("seconds"), "seconds")
        self.train_s, self.cpu_s, self.setup_s = (carried[name] for name in ("train_s", "cpu_s", "setup_s"))
        self.seconds |= {name: checks.seconds(parts.get(name), name) for name in self.seconds}
        self._carried_wall_s, self._carried_compile_s = carried["wall_s"], self.seconds["compile_s"]

    def start(self) -> None:
        """The first batch is about to be asked for; called again by a later fit, it bills from there."""
        if not self._started:
            self._started = True
            self._last_s = perf_counter()
            compiled_s = self.seconds["compile_s"] - self._carried_compile_s
            self.setup_s += self._last_s - self._origin_s - compiled_s
        self.switch("loop")

    def stop(self) -> None:
        """Training is over for now; nothing is billed until the next start."""
        self.switch("idle")

    def switch(self, part: str) -> str:
        """End the current part, begin another; gives the one ended. Costs 0.3 us, 1.5 us where billing changes."""
        before = self.part
        if part == before or not self._started:
            return before
        now_s = perf_counter()
        elapsed_s = now_s - self._last_s
        self._last_s = now_s
        self.seconds[before] += elapsed_s
        if self._billed:
            self.train_s += elapsed_s
        if self._billed is (part in UNBILLED):  # it changes: only now the CPU clock is read
            cpu_s = process_time()
            if self._billed:
                self.cpu_s += cpu_s - self._last_cpu_s
            self._last_cpu_s = cpu_s
            self._billed = not self._billed
        self.part = part
        return before

    def compiled_before_training(self, elapsed_s: float) -> None:
        """Compilation before the first batch, which no switch has noticed: it is no set-up either."""
        if not self._started:
            self.seconds["compile_s"] += elapsed_s

    @property
    def wall_s(self) -> float:
        """Since `setup_started`, as of the last switch; with that of the process that this one goes on from."""
        return self._carried_wall_s + self._last_s - self._origin_s

    def columns(self) -> dict[str, float]:
        """The clock columns of the `trials` view."""
        return {name: getattr(self, name, None) or self.seconds.get(name, 0.0) for name in COLUMNS}
