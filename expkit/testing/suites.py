"""Conformance: what every plug-in of a kind must do, ours and those of other packages.

    from expkit.testing.suites import checks, name_of_check

    @pytest.mark.parametrize("check", checks("algorithms"), ids=name_of_check)
    def test_my_method_conforms(check):
        check(MyMethod(strength=0.5))

A check takes one plug-in with its settings and raises AssertionError with a sentence. Plug-ins are never used up: each
training gets a fresh one of the same settings.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from expkit import plugins
from expkit.plugins import CAPABILITIES, Plugin
from expkit.testing import methods, parts, watchers

Check = Callable[[Any], None]


def checks(kind: str) -> list[Check]:
    """All checks for plug-ins of a kind: those for every kind, then its own."""
    return [*_ALL, *_OWN.get(kind, [])]


def name_of_check(check: Check) -> str:
    """How a check is called in a test's id."""
    return check.__name__


def imports_without_torch(plugin: Plugin) -> None:
    """Plans, lists and explanations read the class; torch would cost them a second."""
    module = type(plugin).__module__
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"importing {module} loads torch, or fails: {done.stderr[-500:]}"


def explains_itself(plugin: Plugin) -> None:
    """A sentence for the class and one under every setting."""
    cls = type(plugin)
    own = cls.__dict__.get("__doc__") or ""
    assert own and not own.startswith(f"{cls.__name__}("), f"{cls.__name__} has no docstring"
    silent = [setting.name for setting in plugins.settings(cls) if not setting.doc]
    assert not silent, f"no sentence under the settings {', '.join(silent)} of {cls.__name__}"


def settings_survive_a_file(plugin: Plugin) -> None:
    """What is written for a trial gives the same plug-in when it is read again."""
    written = plugins.dump(plugin)
    again = plugins.adapter(type(plugin)).validate_python(written)
    assert plugins.dump(again) == written, f"{written} is read as {plugins.dump(again)}"


def declares_known_words(plugin: Plugin) -> None:
    """Capabilities come from the closed list."""
    words = plugin.capabilities() | getattr(plugin, "requires", frozenset())
    assert words <= CAPABILITIES, f"{sorted(words - CAPABILITIES)} are no capabilities"
    assert isinstance(type(plugin).version, int) and type(plugin).version >= 1


_ALL: list[Check] = [imports_without_torch, explains_itself, settings_survive_a_file, declares_known_words]
_OWN: dict[str, list[Check]] = {
    "algorithms": [
        methods.names_its_source,
        methods.declares_names_of_algorithms,
        methods.trains_to_finite_numbers,
        methods.leaves_the_batch_as_found,
        methods.is_deterministic,
        methods.changes_no_other_stream,
        methods.in_parts_as_in_one,
        methods.keeps_plain_state,
        methods.serves_a_second_training,
    ],
    "callbacks": [
        watchers.changes_no_bit_of_training,
        watchers.goes_on_where_it_was,
        watchers.names_its_series,
        watchers.serves_a_second_training,
    ],
    "loggers": [
        watchers.changes_no_bit_of_training,
    ],
    "models": [
        parts.answers_every_input_with_logits,
        parts.takes_soft_targets_if_it_says_so,
        parts.draws_weights_from_the_default_generator,
        parts.provides_what_it_says,
    ],
    "datasets": [
        parts.counts_what_it_gives,
        parts.orders_by_seed_and_epoch_alone,
        parts.shares_samples_between_ranks,
        parts.gives_batches_that_may_be_changed,
    ],
    "optimizers": [
        parts.goes_downhill,
    ],
    "schedulers": [
        parts.is_a_pure_function_of_the_step,
        parts.scales_with_the_training,
    ],
    "metrics": [
        parts.adds_up_over_batches,
    ],
}
