"""Drive: run a list of replicates through an executor, settle how each ended, tell a listener. One loop, one thread."""

from __future__ import annotations

import dataclasses
import signal
import time
import uuid
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from expkit.errors import Interruption, UsageError
from expkit.launch import leftovers
from expkit.launch.executor import Executor, Outcome
from expkit.launch.fail_fast import CONSECUTIVE, FailFast, Unfit
from expkit.launch.ranks import sentence, to_blame
from expkit.launch.resume import CONTINUED, Origin, origin, take_over
from expkit.launch.sources import Versions, versions
from expkit.launch.trials import write_own_recipe
from expkit.plan.trial import Cell
from expkit.store.claims import HEARTBEAT_S, Claim, touch
from expkit.store.owner import Owner
from expkit.store.records import FINAL, Status, now_utc
from expkit.store.store import Store

MISSING = frozenset({"pending", "claimed", "interrupted", "lost"})
"""What running again does: never started, or begun without a result."""
TICK_S = 0.2


@dataclass(frozen=True)
class Job:
    """A cell of a plan with the replicate that stands for it in the store."""

    cell: Cell
    replicate: int

    @property
    def id12(self) -> str:
        """The trial's folder."""
        return self.cell.trial.id12

    def name(self) -> str:
        """`ema+label_smoothing seed 17 r0`."""
        return f"{self.cell.trial.arm} seed {self.cell.trial.seed} r{self.replicate}"


@dataclass(frozen=True)
class Order:
    """What every attempt of one driver run is told."""

    trust: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()
    exclusive: bool = False
    target_hash: str | None = None
    driver: str = field(default_factory=lambda: uuid.uuid4().hex)

    def with_target(self, target_hash: str | None) -> Order:
        """The same for trials that are measured against this target."""
        return dataclasses.replace(self, target_hash=target_hash)


class Listener(Protocol):
    """Who watches a drive."""

    def started(self, job: Job, attempt: Path) -> None:
        """A trial begins."""

    def ended(self, job: Job, state: str, status: Status | None, attempt: Path | None) -> None:
        """A trial has ended, here or in another driver's hands; `attempt` is None for the latter."""

    def note(self, text: str) -> None:
        """Something that a person should know."""

    def tick(self) -> None:
        """Some time has passed."""


class Stop:
    """Whether somebody wants us to stop: the first INT, TERM or HUP lets running steps finish, the second kills."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.twice = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        heard = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
        self._handlers = {n: signal.signal(n, self._hear) for n in heard}  # nohup has a right to be left alone
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def raise_if_asked(self, sentence: str) -> None:
        """Interruption with the exit code that belongs to the signal."""
        if self.number is not None:
            raise Interruption(sentence, 128 + self.number)

    def sentence(self) -> str:
        """Who stopped a trial that was running, the same whenever the signal reached it; empty where nobody has."""
        if self.number is None:
            return ""
        name = signal.Signals(self.number).name
        return f"interrupted by {'you' if self.number == signal.SIGINT else 'a signal to expkit'} ({name})"

    def _hear(self, number: int, _: FrameType | None) -> None:
        self.twice = self.number is not None
        self.number = self.number or number


class Drive:
    """One driver run over some jobs; `tally` counts the states that they ended in, `num_started` those begun here."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        order: Order,
        provenance: Mapping[str, Any],
        listener: Listener,
        stop: Stop,
        fail_fast: FailFast,
        metric: str,
    ) -> None:
        """`metric` must be recorded by every complete trial: the first that lacks it ends the drive."""
        self.tally: Counter[str] = Counter()
        self.num_started = 0
        self._provenance = provenance
        self._store = store
        self._executor = executor
        self._order = order
        self._listener = listener
        self._stop = stop
        self._fail_fast = fail_fast
        self._unfit = Unfit()
        self._running: dict[Path, tuple[Job, Claim]] = {}
        self._held: list[Job] = []
        self._metric = metric
        self._touched_s = 0.0
        self._unrecorded: str | None = None

    def run(self, jobs: Iterable[Job], *, states: Collection[str] = MISSING) -> Counter[str]:
        """Run the jobs in their order, those in one of `states`; others' are waited for. Gives the tally."""
        waiting = deque(jobs)
        while waiting or self._running or self._held:
            if self._stop.number is not None:
                self._begin_no_other(waiting, "stopping: running trials finish their step; a second signal kills them")
                self._end_running()
            elif self._fail_fast.reached:
                self._begin_no_other(waiting, f"{CONSECUTIVE} trials failed alike in a row and none had a result: the "
                                     "others stay pending; mend it, then run it again with --retry failed")  # fmt: skip
            elif self._unrecorded:
                self._begin_no_other(waiting, "the others stay pending")
            self._fill(waiting, states)
            for outcome in self._executor.poll(TICK_S):
                self._settle(outcome)
            waiting.extend(self._freed())
            self._touch_claims()
            self._listener.tick()
        if self._unrecorded:
            raise UsageError(self._unrecorded)
        return self.tally

    def _begin_no_other(self, waiting: deque[Job], why: str) -> None:
        if waiting or self._held:
            self._listener.note(why)
        self.tally["pending"] += len(waiting) + len(self._held)
        waiting.clear()
        self._held.clear()

    def _fill(self, waiting: deque[Job], states: Collection[str]) -> None:
        while waiting and len(self._running) < self._executor.slots:
            job = waiting.popleft()
            if self._is_unfit(job):
                continue
            claim = self._store.claim(job.id12, job.replicate, self._order.driver, only=states)
            if claim is None:
                self._not_ours(job)
            else:
                self._submit(job, claim)

    def _is_unfit(self, job: Job) -> bool:
        """Whether it would fail as another has, for a part that they share; it stays pending then."""
        found = self._unfit.hits(job.cell.trial.recipe)
        self.tally["pending"] += found
        return found

    def _submit(self, job: Job, claim: Claim) -> None:
        self._end_leftovers(job)
        sources = versions(job.cell.trial.recipe, self._order.python_path)
        start = self._start_of(job, sources)
        order = dataclasses.asdict(self._order)
        driver = order.pop("driver")
        owner = dataclasses.asdict(Owner.this_process())
        dirty = self._provenance.get("git", {}).get("dirty")
        attempt = self._store.new_attempt(
            job.id12, job.replicate, driver, driver_owner=owner, dirty=dirty, created_utc=now_utc(),
            nproc=job.cell.trial.recipe.runtime.nproc, continues=start.continues, checkpoint=start.name,
            passed_over=start.passed_over, sources=sources, **order
        )  # fmt: skip
        take_over(self._store, job.id12, job.replicate, start, attempt)
        write_own_recipe(self._store, job.cell.trial, attempt)
        self._store.write_provenance(job.id12, job.replicate, self._provenance, driver=driver)
        self._running[attempt] = (job, claim)
        self._executor.submit(attempt)
        self.num_started += 1
        self._listener.started(job, attempt)

    def _start_of(self, job: Job, sources: Versions) -> Origin:
        """Where the attempt begins; under `exclusive` times must be of one piece, so it starts over."""
        before = self._store.read_status(job.id12, job.replicate)
        begun = self._store.attempts(job.id12, job.replicate)
        if self._order.exclusive or not begun or (before is not None and before.state not in CONTINUED):
            return Origin()
        start = origin(self._store, job.id12, job.replicate, job.cell.trial.recipe.runtime.nproc, sources)
        if (sentence := start.sentence()) is not None:
            self._listener.note(f"{job.name()}: {sentence}")
        return start

    def _not_ours(self, job: Job) -> None:
        """Another driver has it, or has brought it to an end since we looked."""
        state = self._store.state_of(job.id12, job.replicate)
        if state in FINAL:
            self._count(job, state, None)
        else:
            self._held.append(job)

    def _freed(self) -> list[Job]:
        """Jobs of other drivers that have come to an end, well or not; they are looked at again."""
        freed = [j for j in self._held if self._store.state_of(j.id12, j.replicate) not in ("claimed", "running")]
        self._held = [job for job in self._held if job not in freed]
        return freed

    def _touch_claims(self) -> None:
        """Our heartbeat, for drivers that cannot see this process."""
        if time.monotonic() - self._touched_s >= HEARTBEAT_S:
            self._touched_s = time.monotonic()
            for _, claim in self._running.values():
                touch(claim)

    def _end_running(self) -> None:
        for attempt in self._executor.running():
            (self._executor.kill if self._stop.twice else self._executor.cancel)(attempt)

    def _end_leftovers(self, job: Job) -> None:
        """Where this replicate was lost with its driver: what that has left running is killed before we begin."""
        before = self._store.read_status(job.id12, job.replicate)
        if before is None or before.state not in ("claimed", "running"):
            return
        record = self._store.read_attempt(self._store.layout.attempt(job.id12, job.replicate, before.attempt))
        owner = record.get("driver_owner") if record is not None else None
        if owner is not None and leftovers.end(Owner(**owner)):
            self._listener.note(f"{job.name()} was lost; what it had left running was ended")

    def _settle(self, outcome: Outcome) -> None:
        job, claim = self._running.pop(outcome.attempt)
        status = self._store.read_status(job.id12, job.replicate)
        if status is not None and (last := self._last_word(status, job, outcome)) is not None:
            self._store.write_status(job.id12, job.replicate, last)
        claim.release()
        self._count(job, self._store.state_of(job.id12, job.replicate), outcome.attempt)

    def _last_word(self, status: Status, job: Job, outcome: Outcome) -> Status | None:
        """The status of a trial that could not write its own, or whose rank 0 did not know why; None where it stands.

        Nothing is said of one that was lost with its server: readers see that it is.
        """
        stopped = self._stop.sentence()
        if stopped and status.state == "interrupted":
            return dataclasses.replace(status, message=stopped)  # its own words are about the TERM that we sent it
        unsettled = status.state in ("claimed", "running")
        pulled_down = status.state in ("failed", "interrupted")  # by the end of another rank, perhaps
        blamed = to_blame(outcome) if unsettled or pulled_down else None
        if (not unsettled or outcome.code is None) and (blamed is None or blamed.rank == 0):
            return None
        ended = dataclasses.replace(status, ended_utc=now_utc())
        if stopped:
            return dataclasses.replace(ended, state="interrupted", cause=None, message=stopped)
        cause, message = outcome.cause(), outcome.sentence()
        if blamed is not None:
            cause, message = blamed.cause, sentence(job.id12, blamed, outcome.attempt)
        return dataclasses.replace(ended, state="failed", cause=cause, message=message)

    def _count(self, job: Job, state: str, attempt: Path | None) -> None:
        self.tally[state] += 1
        status = self._store.read_status(job.id12, job.replicate)
        self._fail_fast.saw(state, status)
        if state == "complete" and status is not None and self._metric not in status.final:
            self._unrecorded = (
                f"{self._metric} was not recorded by trial {job.id12}; metrics.primary must be one of "
                f"{', '.join(sorted(status.final))} (correcting it trains nothing again)"
            )
        self._listener.ended(job, state, status, attempt)
        for name in self._unfit.saw(job.cell.trial.recipe, status):
            self._listener.note(f"{name} does not work with these settings, so other trials with it stay pending: mend "
                                "it, then run it again with --retry failed")  # fmt: skip


def exit_code(tally: Counter[str], stop: Stop) -> int:
    """128+n where signal n asked us to stop, 1 where a trial has no result or all diverged, else 0."""
    if stop.number is not None:
        return 128 + stop.number
    without_result = sum(count for state, count in tally.items() if state not in ("complete", "diverged", "pruned"))
    all_diverged = bool(tally) and set(tally) == {"diverged"}
    return 1 if without_result or all_diverged else 0
