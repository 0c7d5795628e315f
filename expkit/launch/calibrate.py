"""Calibrate: this host's time of the reference workload, so that it can be the reference system of trials elsewhere.

Each round is what every trial does before and after itself. 20 rounds take three to five seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from expkit.analysis import phrases
from expkit.analysis.reference_time import Timed
from expkit.errors import EnvironmentFault, UsageError
from expkit.store.atomic import write_json
from expkit.store.lock import acquire
from expkit.store.owner import host_name
from expkit.store.records import now_utc

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

    @property
    def doubts(self) -> list[str]:
        """Why this host, at this hour, is a poor reference; empty where it is none."""
        timed = Timed(self.wall_s, self.cpu_s, self.mad_s, self.rounds)
        found = []
        if timed.spread > STEADY:
            found.append(f"rounds differ by {phrases.share(timed.spread)}")
        if self.wall_s > CONTENDED * self.cpu_s / self.threads:
            found.append(f"wall over CPU time is {self.wall_s * self.threads / self.cpu_s:.2f}")
        return found

    @classmethod
    def read(cls, path: Path) -> Self:
        """From a file that `write` made; UsageError for any other."""
        try:
            found = json.loads(path.read_text())
            return cls(**found)
        except FileNotFoundError:
            raise UsageError(f"there is no calibration {path}; expkit calibrate -o {path} makes one") from None
        except (OSError, ValueError, TypeError) as e:
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


def calibrate(
    rounds: int = 20, threads: int = 1, *, wait: bool = False, on_wait: Callable[[str], None] = lambda _: None
) -> Calibration:
    """Time this host, alone on it as an exclusive sweep is; EnvironmentFault where a driver has it.

    UsageError for fewer than one round or thread. `wait` waits for the driver, and tells `on_wait` whom for.
    """
    if rounds < 1 or threads < 1:
        raise UsageError(f"rounds and threads are 1 or more, but got {rounds} and {threads}")
    import torch

    from expkit.launch.reference import measure

    before = torch.get_num_threads()
    with acquire("exclusive", wait=wait, on_wait=on_wait):
        torch.set_num_threads(threads)
        try:
            found = [measure() for _ in range(rounds)]
        finally:
            torch.set_num_threads(before)
    timed = Timed.of([one.wall_s for one in found], [one.cpu_s for one in found])
    return Calibration(
        host_name(), threads, torch.__version__, now_utc(), timed.wall_s, timed.cpu_s, timed.mad_s, rounds
    )
