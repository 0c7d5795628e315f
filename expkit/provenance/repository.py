"""What git says of a folder: commit, branch, remotes, and what is not committed as a patch. Bounded in time and size.

No configuration makes git start a program of anybody's choice, and none a patch that `git apply` does not take.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from expkit.provenance.secrets import masked
from expkit.uri import without_userinfo

GIT_TIMEOUT_S = 2.0
PATCH_BYTES = 256 * 1024
"""Of a larger diff this much is read and kept, and the record says so."""
MOST_UNTRACKED = 200
_SAFE_CONFIG = ("core.fsmonitor=false", "core.quotepath=false", "color.ui=false", "diff.relative=false",
                "diff.noprefix=false", "diff.mnemonicPrefix=false")  # fmt: skip


def git(folder: Path) -> dict[str, Any]:
    """Commit, branch, remotes without their userinfo, patch against the commit; `reason` where git could not go on.

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


def _git_facts(folder: Path, deadline: float) -> Iterator[tuple[str, Any]]:
    yield "sha", _git(folder, deadline, "rev-parse", "HEAD").strip()
    yield "branch", _git(folder, deadline, "rev-parse", "--abbrev-ref", "HEAD").strip()
    yield "remotes", _remotes(folder, deadline)
    state = _git(folder, deadline, "status", "--porcelain", "--untracked-files=normal")
    yield "dirty", bool(state.strip())
    untracked = [line[3:] for line in state.splitlines() if line.startswith("??")]
    yield "untracked", untracked[:MOST_UNTRACKED]
    yield "num_untracked", len(untracked)
    patch = _git(folder, deadline, "diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD", most=PATCH_BYTES + 1)
    kept, hidden = masked(patch.encode()[:PATCH_BYTES].decode(errors="ignore"))
    yield "patch", kept
    yield "patch_cut", len(patch.encode()) > PATCH_BYTES
    yield "patch_masked", hidden


def _remotes(folder: Path, deadline: float) -> dict[str, str]:
    """By name the addresses, without who one is there."""
    try:
        lines = _git(folder, deadline, "config", "--get-regexp", r"^remote\..*\.url$")
    except subprocess.CalledProcessError as e:
        if e.returncode != 1:  # which says that there is none
            raise
        return {}
    pairs = [line.partition(" ") for line in lines.splitlines() if line]
    return {
        key.removeprefix("remote.").removesuffix(".url"): re.sub(r"^[^/@\s:]+@(?=[^/]+:)", "", without_userinfo(url))
        for key, _, url in pairs
    }


def _git(folder: Path, deadline: float, *arguments: str, most: int = 1 << 22) -> str:
    """What git prints, of a longer text the first `most` bytes."""
    settings = [word for setting in _SAFE_CONFIG for word in ("-c", setting)]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k == "GIT_CONFIG_GLOBAL"}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            ["git", "-C", str(folder), *settings, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env={**inherited, **quiet},
            start_new_session=True,
        )  # fmt: skip
        try:
            said = _read(process, deadline, most)
            code = 0 if len(said) == most else process.wait(max(0.01, deadline - time.monotonic()))
        finally:
            _end(process)
        errors.seek(0)
        if code:
            raise subprocess.CalledProcessError(code, "git", stderr=errors.read())
    return said.decode(errors="replace")


def _read(process: subprocess.Popen[bytes], deadline: float, most: int) -> bytes:
    assert process.stdout is not None
    said = b""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while len(said) < most:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                raise subprocess.TimeoutExpired("git", GIT_TIMEOUT_S)
            chunk = os.read(process.stdout.fileno(), min(most - len(said), 1 << 16))
            if not chunk:
                break
            said += chunk
    return said


def _end(process: subprocess.Popen[bytes]) -> None:
    """It and whatever it has started, where it has not ended by itself."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _said(error: Exception) -> str:
    stderr = getattr(error, "stderr", None) or b""
    lines = stderr.decode(errors="replace").splitlines()
    return lines[0] if lines else str(error)
