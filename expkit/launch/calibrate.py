"""Calibrate: what work takes on this machine, so that it can be the reference system of trials made anywhere.

The reference workload, which every trial times before and after itself, takes 20 rounds and three to five seconds. Of a
sweep each phase of each arm is timed as well: every (arm, what its steps do, shapes), at least 200 steps of each, the
arms in turn. All that runs in a process with the environment of trials, alone on the host as an exclusive sweep is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from expkit.analysis import phrases
from expkit.analysis.reference_system import table_of
from expkit.analysis.reference_time import Phase, Timed, out_of_line
from expkit.errors import EnvironmentFault, UsageError
from expkit.launch.apart import Unanswered, answer, ask
from expkit.store.atomic import write_json
from expkit.store.lock import acquire
from expkit.store.owner import host_name
from expkit.store.records import now_utc
from expkit.store.store import Store

STEADY = 0.05
"""Spread of the rounds above which a host is no reference."""
CONTENDED = 1.1


@dataclass(frozen=True)
class Calibration:
    """One host that nobody else of expkit used, timed; what a file holds that `--reference` reads."""

    host: str
    threads: int
    torch: str
    utc: str
    wall_s: float
    cpu_s: float
    mad_s: float
    rounds: int
    setting: Mapping[str, Any] = field(default_factory=dict)
    """What changes seconds there, as a trial's setting has it."""
    phases: tuple[Phase, ...] = ()
    """Of the arms of a sweep; none where only the host was timed."""

    @property
    def doubts(self) -> list[str]:
        """Why this host, at this hour, is a poor reference; empty where it is none."""
        timed = Timed(self.wall_s, self.cpu_s, self.mad_s, self.rounds)
        found = []
        if timed.spread > STEADY:
            found.append(f"rounds differ by {phrases.share(timed.spread)}")
        if self.wall_s > CONTENDED * self.cpu_s / self.threads:
            found.append(f"wall over CPU time is {self.wall_s * self.threads / self.cpu_s:.2f}")
        odd = [f"{one.phase} of {one.arm}" for one in out_of_line(self.phases)]
        return [*found, *([f"more than 20 % off what sizes predict: {phrases.listing(odd)}"] if odd else [])]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """From what `to_json` gave."""
        return cls(**{**found, "phases": table_of(found)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file that `write` made; UsageError for any other."""
        try:
            return cls.of(json.loads(path.read_text()))
        except FileNotFoundError:
            raise UsageError(f"there is no calibration {path}; expkit calibrate -o {path} makes one") from None
        except (OSError, ValueError, TypeError, AttributeError) as e:
            raise UsageError(f"{path} is no calibration that expkit calibrate wrote: {e}") from None

    def write(self, path: Path) -> None:
        """Beside and renamed; EnvironmentFault where it cannot be."""
        try:
            write_json(path, self.to_json())
        except OSError as e:
            raise EnvironmentFault(f"{path} cannot be written: {e.strerror or e}") from None

    def to_json(self) -> Mapping[str, Any]:
        """Its fields."""
        return asdict(self)


@dataclass(frozen=True)
class Order:
    """What to time."""

    rounds: int = 20
    threads: int = 1
    courses: Sequence[Mapping[str, Any]] = ()
    """{arm, recipe, steps} of each arm, as `phases.Course` has it."""
    least: int = 200
    """Steps of each phase."""
    trust: Sequence[str] = ()
    python_path: Sequence[str] = ()


def calibrate(order: Order, *, wait: bool = False, on_wait: Callable[[str], None] = lambda _: None) -> Calibration:
    """Time this host, alone on it; EnvironmentFault where a driver has it, or where the measuring process failed.

    UsageError for fewer than one round, thread or step. `wait` waits for the driver, and tells `on_wait` whom for.
    """
    if min(order.rounds, order.threads, order.least) < 1:
        asked = f"{order.rounds}, {order.threads} and {order.least}"
        raise UsageError(f"rounds, threads and steps are 1 or more, but got {asked}")
    with acquire("exclusive", wait=wait, on_wait=on_wait):
        return _apart(order)


def courses(store: Store, sweep: str) -> list[dict[str, Any]]:
    """Each arm of a sweep by its first complete trial that counted its steps; UsageError where there is none.

    UsageError also for arms on several ranks, which one process cannot time.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in store.read_plan(sweep):
        if row.arm in found or row.role not in ("baseline", "arm", "repeat"):
            continue
        status = store.read_status(row.id, row.replicate)
        if status is None or status.state != "complete" or not status.phases:
            continue
        if (status.setting.get("nproc") or 1) > 1:
            raise UsageError(f"{row.arm} ran on {status.setting['nproc']} ranks; only arms on one rank can be timed")
        found[row.arm] = {"arm": row.arm, "recipe": str(store.layout.recipe(row.id)), "steps": status.phases}
    if not found:
        raise UsageError(f"no complete trial of {sweep} has counted its steps by what they do, so there is nothing to "
                         "time; trials made by this version count them")  # fmt: skip
    return list(found.values())


def here(order: Order) -> Calibration:
    """Time in this process."""
    import torch

    from expkit.launch.phases import Course, time_phases
    from expkit.launch.reference import measure
    from expkit.launch.setting import setting
    from expkit.spec.recipe import Runtime

    before, path = torch.get_num_threads(), list(sys.path)
    sys.path[:0] = order.python_path
    torch.set_num_threads(order.threads)
    try:
        found = [measure() for _ in range(order.rounds)]
        asked = [Course(one["arm"], Path(one["recipe"]), one["steps"]) for one in order.courses]
        phases = tuple(time_phases(asked, order.trust, order.least))
    finally:
        torch.set_num_threads(before)
        sys.path[:] = path
    timed = Timed.of([one.wall_s for one in found], [one.cpu_s for one in found])
    values = setting(Runtime(threads=order.threads), torch.__version__, "cpu", None)
    return Calibration(
        host_name(), order.threads, torch.__version__, now_utc(), timed.wall_s, timed.cpu_s, timed.mad_s, order.rounds,
        values, phases,
    )  # fmt: skip


def _apart(order: Order) -> Calibration:
    try:
        return Calibration.of(ask("expkit.launch.calibrate", asdict(order), order.threads))
    except Unanswered as e:
        raise EnvironmentFault(f"this machine could not be timed: {e}") from None


if __name__ == "__main__":
    answer(lambda order: here(Order(**order)).to_json())
