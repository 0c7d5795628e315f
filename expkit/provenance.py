"""Provenance: what was run where: code, packages, hardware, environment, command. Nothing secret, nothing slow.

About 0.2 s for `collect`, of which git may take 2 s at most. What is equal for all trials of a run is stored once:
`store` writes the document under its hash and gives the replicate a reference.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from expkit.uri import without_userinfo

GIT_TIMEOUT_S = 2.0
PATCH_CHARACTERS = 256 * 1024
"""A larger diff is cut, and the record says so."""
ALLOWED = re.compile(r"(?:CUDA_|OMP_|MKL_|TORCH_|PYTORCH_|SLURM_JOB|EXPKIT_|MALLOC_).*")
"""Names of the environment variables that are recorded; all others stay out."""
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CRED", re.IGNORECASE)
MASK = "***"
_ASSIGNED = re.compile(
    r"(?P<name>[^\s=]*(?:KEY|TOKEN|SECRET|PASS|CRED)[^\s=]*)=(?P<value>.+)", re.IGNORECASE | re.DOTALL
)


def collect(folder: Path | None = None) -> dict[str, Any]:
    """Everything a reader needs to know where a number came from, as JSON values; `folder` is where git looks."""
    return {
        "schema_version": 1,
        "command": [masked_argument(a) for a in _without_secret_values(sys.argv)],
        "cwd": str(Path.cwd()),
        "git": git(folder or Path.cwd()),
        "expkit": {"version": _version("expkit"), "code_sha": code_sha()},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "packages": packages(),
        "hardware": hardware(),
        "environment": environment(os.environ),
    }


def git(folder: Path) -> dict[str, Any]:
    """Commit, branch, remote without its userinfo, patch against the commit; `reason` where git could not go on.

    All of it together may take GIT_TIMEOUT_S; what was found by then is kept.
    """
    found: dict[str, Any] = {}
    try:
        found.update(_git_facts(folder, time.monotonic() + GIT_TIMEOUT_S))  # fact by fact: those before an error stay
    except FileNotFoundError:
        found["reason"] = "git is not installed"
    except subprocess.TimeoutExpired:
        found["reason"] = f"git took longer than {GIT_TIMEOUT_S:g} s"
    except (subprocess.CalledProcessError, OSError) as e:
        found["reason"] = _said(e)
    return found


def packages() -> dict[str, str]:
    """Installed distributions and their versions, by name."""
    found = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:  # a broken installation leaves nameless ones
            found[name] = distribution.version
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def hardware() -> dict[str, Any]:
    """Host, system, processor and memory."""
    import psutil

    return {
        "host": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The allowed variables, values of secret-looking names masked, passwords in addresses removed."""
    allowed = sorted(name for name in variables if ALLOWED.fullmatch(name))
    return {name: MASK if SECRET.search(name) else without_userinfo(variables[name]) for name in allowed}


def masked_argument(argument: str) -> str:
    """`--api-key=abc` -> `--api-key=***`; addresses lose user and password."""
    match = _ASSIGNED.fullmatch(argument)
    return f"{match['name']}={MASK}" if match else without_userinfo(argument)


@functools.cache
def code_sha() -> str:
    """12 hex over expkit's own Python files: which code ran, whether or not git knows it."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def dirty(folder: Path | None = None) -> bool | None:
    """Whether the working tree differs from its commit; None where git cannot say."""
    return git(folder or Path.cwd()).get("dirty")


def _without_secret_values(arguments: list[str]) -> list[str]:
    """`--api-key abc` -> `--api-key ***`: a value that follows a secret-looking option."""
    shown = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        follows = before.startswith("-") and "=" not in before and SECRET.search(before)
        shown.append(MASK if follows and not argument.startswith("-") else argument)
    return shown


def _git_facts(folder: Path, deadline: float) -> Iterator[tuple[str, Any]]:
    yield "sha", _git(folder, deadline, "rev-parse", "HEAD").strip()
    yield "branch", _git(folder, deadline, "rev-parse", "--abbrev-ref", "HEAD").strip()
    remote = _git(folder, deadline, "config", "--default", "", "--get", "remote.origin.url").strip()
    yield "remote", without_userinfo(remote) or None
    state = _git(folder, deadline, "status", "--porcelain", "--untracked-files=normal")
    yield "dirty", bool(state.strip())
    yield "untracked", [line[3:] for line in state.splitlines() if line.startswith("??")]
    patch = _git(folder, deadline, "diff", "--no-ext-diff", "--no-textconv", "HEAD")
    yield "patch", patch[:PATCH_CHARACTERS]
    yield "patch_cut", len(patch) > PATCH_CHARACTERS


def _git(folder: Path, deadline: float, *arguments: str) -> str:
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=max(0.01, deadline - time.monotonic()),
        env={**os.environ, **quiet},
    )
    return done.stdout.decode(errors="replace")


def _said(error: Exception) -> str:
    stderr = getattr(error, "stderr", None) or b""
    lines = stderr.decode(errors="replace").splitlines()
    return lines[0] if lines else str(error)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
