"""Callback: the contract of what watches training, logs, and may ask it to stop. Imports without torch."""

from __future__ import annotations

from typing import Any, ClassVar

from expkit.plugins import Plugin


class Callback(Plugin):
    """Name a method after an event, `def batch_end(self, state, logger)`, and it is called there.

    A callback changes no bit of training: what does is an Algorithm. It may end it with `state.stop(reason)`.
    """

    changes_training: ClassVar[bool] = False
    """True for those that stop training or load weights before it; only then it is part of a trial's identity."""
    alone_in: ClassVar[str | None] = None
    """The setting that names a folder which no two may use at once; suites give each copy one of its own."""

    def close(self) -> None:
        """Give back files and threads; called exactly once, whatever happened before."""

    def post_close(self) -> None:
        """What can only be done when all callbacks and loggers are closed; called exactly once, after that."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, in plain types and tensors."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""
