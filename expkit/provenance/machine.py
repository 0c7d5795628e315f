"""The machine: host, system, processor, memory, GPUs, container; read from the system, no library of a vendor's."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NVIDIA = Path("/proc/driver/nvidia")
_CONTAINERS = {"APPTAINER_CONTAINER": "apptainer", "SINGULARITY_CONTAINER": "apptainer", "KUBERNETES_SERVICE_HOST":
               "kubernetes"}  # fmt: skip


def hardware() -> dict[str, Any]:
    """Host, system, processor, memory, GPUs and their driver, container."""
    import psutil

    return {
        "host": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "container": _container(os.environ),
        **gpus(),
    }


def gpus(folder: Path = _NVIDIA) -> dict[str, Any]:
    """Models of the NVIDIA GPUs of this machine and the version of their driver, without loading a library."""
    version = re.search(r"Kernel Module\D*([\d.]+)", _text(folder / "version"))
    models = [
        match[1].strip()
        for path in sorted((folder / "gpus").glob("*/information"))
        if (match := re.search(r"^Model:(.*)$", _text(path), re.MULTILINE))
    ]
    return {"gpus": models, "gpu_driver": version[1] if version else None}


def _container(variables: Mapping[str, str]) -> str | None:
    named = next((kind for name, kind in _CONTAINERS.items() if name in variables), None)
    return named or ("docker" if Path("/.dockerenv").exists() else None)


def _processor() -> str:
    lines = _text(Path("/proc/cpuinfo")).splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
