"""Provenance: what was run where, without secrets, without waiting."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from expkit import provenance


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path), *arguments], check=True,
            capture_output=True,
        )  # fmt: skip

    git("init", "-q", "-b", "main")
    (tmp_path / "train.py").write_text("lr = 0.1\n")
    git("add", "train.py")
    git("commit", "-q", "-m", "first")
    git("remote", "add", "origin", "https://me:hunter2@example.org/lab/code.git")
    return tmp_path


def test_git_knows_commit_branch_patch_and_a_remote_without_password(repository: Path) -> None:
    clean = provenance.git(repository)
    assert len(clean["sha"]) == 40 and clean["branch"] == "main" and clean["dirty"] is False
    assert clean["remote"] == "https://example.org/lab/code.git" and clean["patch"] == ""
    (repository / "train.py").write_text("lr = 0.2\n")
    (repository / "new.py").write_text("")
    changed = provenance.git(repository)
    assert changed["dirty"] is True and "+lr = 0.2" in changed["patch"] and changed["untracked"] == ["new.py"]
    assert provenance.dirty(repository) is True
    assert "hunter2" not in json.dumps(changed)


def test_a_long_patch_is_cut_and_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "PATCH_CHARACTERS", 100)
    (repository / "train.py").write_text("x = 1\n" * 1000)
    found = provenance.git(repository)
    assert len(found["patch"]) == 100 and found["patch_cut"] is True


def test_no_repository_and_no_git_are_no_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not a git repository" in provenance.git(tmp_path)["reason"]
    assert provenance.dirty(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.git(tmp_path) == {"reason": "git is not installed"}


def test_git_that_hangs_is_left_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "git"
    slow.write_text('#!/bin/sh\n[ "$3" = rev-parse ] && { echo abc; exit; }\nexec sleep 30\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(provenance, "GIT_TIMEOUT_S", 0.5)
    started = time.monotonic()
    found = provenance.git(tmp_path)
    assert found["sha"] == "abc" and found["reason"] == "git took longer than 0.5 s"
    assert time.monotonic() - started < 5


def test_the_environment_is_an_allow_list_and_secrets_are_masked() -> None:
    variables = {
        "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "7", "HOME": "/home/me",
        "AWS_SECRET_ACCESS_KEY": "x", "EXPKIT_API_TOKEN": "t0ps3cret", "TORCH_PASSWORD": "y",
        "EXPKIT_RUNS": "s3://user:pw@bucket/runs", "MALLOC_ARENA_MAX": "1",
    }  # fmt: skip
    assert provenance.environment(variables) == {
        "CUDA_VISIBLE_DEVICES": "0", "EXPKIT_API_TOKEN": "***", "EXPKIT_RUNS": "s3://bucket/runs",
        "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "7", "TORCH_PASSWORD": "***",
    }  # fmt: skip


def test_the_command_line_keeps_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [
        "expkit", "sweep", "--api-key", "abc123", "--token=abc123", "--set", "x.password=abc123", "--key-file", "--go",
        "https://u:abc123@host/x", "lr=0.1",
    ])  # fmt: skip
    assert provenance.collect()["command"] == [
        "expkit", "sweep", "--api-key", "***", "--token=***", "--set", "x.password=***", "--key-file", "--go",
        "https://host/x", "lr=0.1",
    ]  # fmt: skip


def test_everything_is_json_and_says_what_is_installed() -> None:
    document = provenance.collect()
    json.dumps(document, allow_nan=False)
    assert document["packages"]["duckdb"] and document["hardware"]["cores"] >= 1
    assert document["hardware"]["memory_bytes"] > 2**20
    assert document["expkit"]["code_sha"] == provenance.code_sha()


def test_the_code_hash_is_12_hex_over_our_files() -> None:
    sha = provenance.code_sha()
    assert len(sha) == 12 and set(sha) <= set("0123456789abcdef")
