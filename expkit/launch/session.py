"""Session: one driver run on this host: its lock, its executor, its provenance, all taken when the first trial runs."""

from __future__ import annotations

import contextlib
import errno
from collections import Counter
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Self

from expkit import provenance
from expkit.errors import EnvironmentFault
from expkit.launch.drive import MISSING, Drive, Job, Order, Stop
from expkit.launch.executor import Executor
from expkit.launch.fail_fast import FailFast
from expkit.launch.progress import watcher
from expkit.launch.trials import add, refuse_what_cannot_run
from expkit.speech import say
from expkit.store.lock import acquire
from expkit.store.space import unless
from expkit.store.store import Store


class Session:
    """`with Session(...) as session: session.drive(jobs)`; leaving it ends every trial that still runs."""

    def __init__(self, store: Store, executor: Executor, order: Order, *, wait: bool = False) -> None:
        self.stop = Stop()
        self.num_started = 0
        """Trials that were begun so far, whatever became of them."""
        self._store = store
        self._executor = executor
        self._order = order
        self._wait = wait
        self._open = contextlib.ExitStack()
        self._begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        self._open.close()

    def drive(
        self,
        jobs: Sequence[Job],
        metric: str,
        *,
        states: Collection[str] = MISSING,
        target_hash: str | None = None,
        succeeded: bool = False,
    ) -> Counter[str]:
        """Run jobs and give the states that they ended in; nothing is started for none.

        `succeeded`: others of the same sweep have had results, so failures in a row do not stop it.
        """
        if not jobs or self.stop.number is not None:
            return Counter()
        refuse_what_cannot_run(job.cell.trial for job in jobs)
        self._begin()
        add(self._store, (job.cell.trial for job in jobs))
        with watcher(len(jobs), metric, self._store.layout) as listener:
            order = self._order.with_target(target_hash)
            fail_fast = FailFast(succeeded=succeeded)
            drive = Drive(self._store, self._executor, order, self._provenance, listener, self.stop, fail_fast, metric)
            try:
                return drive.run(jobs, states=states)
            except OSError as e:
                raise _explained(e, self._store) from e
            finally:
                self.num_started += drive.num_started

    def _begin(self) -> None:
        if self._begun:
            return
        self._open.enter_context(
            acquire("exclusive" if self._order.exclusive else "shared", wait=self._wait, on_wait=say)
        )
        self._open.enter_context(self.stop)
        self._open.enter_context(unless(lambda: self.stop.number is not None))
        self._open.callback(self._executor.close)
        self._executor.prepare()  # imports torch while we look around
        self._provenance = provenance.collect()
        self._begun = True


def _explained(error: OSError, store: Store) -> Exception:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error
    return EnvironmentFault(
        f"the disk of {store.layout.root} is full; what is complete stays, make room and call again"
    )
