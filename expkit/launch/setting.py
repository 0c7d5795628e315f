"""Setting: what changes a trial's seconds or bits but not its mathematics; times are compared only within one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from expkit.spec.recipe import Runtime
from expkit.store.owner import host_name

_FOUND = ("microbatch", "device")
"""Known only once a trial has run."""
_TYPES = {"gpu": "cuda", "tpu": "xla", "neuron": "xla"}
"""What torch calls a device, where that is another word."""


def setting(runtime: Runtime, torch_version: str, device: str, microbatch: int | None) -> dict[str, Any]:
    """The setting of a trial that runs here; `malloc` tells our allocator settings from the system's."""
    return {
        "host": host_name(),
        "device": device,
        "nproc": runtime.nproc,
        "threads": runtime.threads,
        "parallel": runtime.parallel,
        "torch": torch_version,
        "malloc": os.environ.get("MALLOC_MMAP_THRESHOLD_", "default"),
        "microbatch": microbatch,
    }


def setting_hash(values: Mapping[str, Any]) -> str:
    """12 hex over the whole setting."""
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()[:12]


def expected(runtime: Runtime) -> dict[str, Any]:
    """The setting that a trial started now would get, as far as that is known without importing torch."""
    from expkit.launch.workers import MALLOC

    values = setting(runtime, _torch_version(), runtime.device, None)
    return {**values, "malloc": MALLOC["MALLOC_MMAP_THRESHOLD_"]}


@cache
def _torch_version() -> str:
    """As its metadata have it, which cost a millisecond to read: too much for each of 10,000 trials."""
    from importlib.metadata import version

    return version("torch")


def agrees(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a trial that ran under `found` has the setting `wanted`; device auto agrees with any device."""
    same = all(found.get(key) == value for key, value in wanted.items() if key not in _FOUND)
    asked = str(wanted["device"]).partition(":")[0]
    return same and (asked == "auto" or str(found.get("device")).startswith(_TYPES.get(asked, asked)))
