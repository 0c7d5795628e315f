"""Algorithm: the contract of what changes training. Imports without torch, so that plans can read declarations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from expkit.plugins import Plugin
from expkit.trainer.event import Event

if TYPE_CHECKING:
    from expkit.trainer.logger import Logger
    from expkit.trainer.state import State


class Algorithm(Plugin):
    """A method that changes training: name a method after an event, `def before_loss(self, state, logger)`, and it
    is called there. Override `match` and `apply` instead where the moment is not one event."""

    conflicts: ClassVar[frozenset[str]] = frozenset()
    """Names of algorithms that make no sense beside this one."""
    requires: ClassVar[frozenset[str]] = frozenset()
    """Capabilities of model and data (words of plugins.CAPABILITIES) without which it has nothing to do; see `needs`
    where they depend on the settings."""
    before: ClassVar[frozenset[str]] = frozenset()
    """Names of algorithms that come after this one where both act on an event."""
    after: ClassVar[frozenset[str]] = frozenset()
    """Names of algorithms that come before this one where both act on an event."""
    changes_targets: ClassVar[bool] = False
    changes_batch: ClassVar[bool] = False
    """Whether the number or shape of samples in a batch changes."""
    needs_closure: ClassVar[bool] = False
    """Whether the optimizer must be able to compute loss and gradients again."""
    exact_under_microbatching: ClassVar[bool] = True
    """Whether a batch in parts gives the same gradient as the batch in one."""
    resumable: ClassVar[bool] = True
    paper: ClassVar[str] = ""
    """Where the method comes from, one line."""

    effective = False
    """Run-time: whether it has really done something yet; each method sets it where it does."""

    def needs(self) -> frozenset[str]:
        """What it requires with these settings."""
        return self.requires

    def match(self, event: Event, state: State) -> bool:
        """Whether `apply` is to be called at this event; by default, whether a method has the event's name."""
        return hasattr(self, event.value)

    def apply(self, event: Event, state: State, logger: Logger) -> None:
        """Act at this event; by default, call the method with the event's name."""
        getattr(self, event.value)(state, logger)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, in plain types and tensors."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""


def name_of(plugin: object) -> str:
    """The name a plug-in is known by: its file's for ours, else its class in snake_case."""
    cls = type(plugin)
    if re.fullmatch(r"expkit\.\w+\.\w+", cls.__module__):
        return cls.__module__.rpartition(".")[2]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
