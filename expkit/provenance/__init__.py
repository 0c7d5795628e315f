"""Provenance: what was run where: code, packages, hardware, environment, command. Nothing secret, nothing slow.

About 0.2 s for `collect`, of which git may take 2 s at most. What is equal for all trials of a run is stored once:
`store` writes the document under its hash and gives the replicate a reference.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expkit.provenance.machine import hardware
from expkit.provenance.repository import git
from expkit.provenance.secrets import MASK, is_secret, masked, masked_arguments
from expkit.uri import without_userinfo

ALLOWED = re.compile(
    r"(?:CUDA_|NCCL_|OMP_|MKL_|KMP_|GOMP_|OPENBLAS_|TORCH_|PYTORCH_|NVIDIA_|HIP_|SLURM_JOB|EXPKIT_|MALLOC_).*"
)
"""Names of the environment variables that are recorded; all others stay out."""


def collect(folder: Path | None = None) -> dict[str, Any]:
    """Everything a reader needs to know where a number came from, as JSON values; `folder` is where git looks."""
    return {
        "schema_version": 2,
        "command": masked_arguments(sys.argv),
        "cwd": str(Path.cwd()),
        "git": git(folder or Path.cwd()),
        "expkit": {"version": _version("expkit"), "code_sha": code_sha()},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "packages": packages(),
        "packages_from": packages_from(),
        "hardware": hardware(),
        "environment": environment(os.environ),
    }


def packages() -> dict[str, str]:
    """Installed distributions and their versions, by name."""
    found = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:  # a broken installation leaves nameless ones
            found[name] = distribution.version
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def packages_from() -> dict[str, str]:
    """Where those distributions are from that no index has: a checkout, a repository at a commit, a file."""
    found = {}
    for distribution in importlib.metadata.distributions():
        text = distribution.read_text("direct_url.json")
        if text and distribution.metadata["Name"]:
            found[distribution.metadata["Name"]] = _origin(text)
    return dict(sorted(found.items()))


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The allowed variables, values of secret-looking names and what looks like a secret masked."""
    allowed = sorted(name for name in variables if ALLOWED.fullmatch(name))
    return {name: MASK if is_secret(name) else masked(variables[name])[0] for name in allowed}


@functools.cache
def code_sha() -> str:
    """12 hex over expkit's own Python files: which code ran, whether or not git knows it."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def dirty(folder: Path | None = None) -> bool | None:
    """Whether the working tree differs from its commit; None where git cannot say."""
    return git(folder or Path.cwd()).get("dirty")


def _origin(direct_url: str) -> str:
    """`git+https://host/x@commit`, `file:///here (editable)`; PEP 610."""
    try:
        value = json.loads(direct_url)
        url = without_userinfo(str(value["url"]))
        if vcs := value.get("vcs_info"):
            return f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
        return f"{url} (editable)" if value.get("dir_info", {}).get("editable") else url
    except (ValueError, KeyError, TypeError, AttributeError):
        return "unknown"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
