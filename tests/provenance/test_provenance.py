"""Provenance: what was run where, without secrets, without waiting."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from expkit import provenance
from expkit.provenance import machine
from expkit.provenance import repository as reading


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
    git("remote", "add", "origin", "https://me:hun@ter2@example.org/lab/code.git")
    git("remote", "add", "mirror", "me@host.example:lab/code.git")
    return tmp_path


def test_git_knows_commit_branch_patch_and_a_remote_without_password(repository: Path) -> None:
    clean = provenance.git(repository)
    assert len(clean["sha"]) == 40 and clean["branch"] == "main" and clean["dirty"] is False
    assert clean["remotes"] == {"origin": "https://example.org/lab/code.git", "mirror": "host.example:lab/code.git"}
    assert clean["patch"] == ""
    (repository / "train.py").write_text("lr = 0.2\n")
    (repository / "new.py").write_text("")
    changed = provenance.git(repository)
    assert changed["dirty"] is True and "+lr = 0.2" in changed["patch"] and changed["untracked"] == ["new.py"]
    assert provenance.dirty(repository) is True
    assert "ter2" not in json.dumps(changed)


def test_a_long_patch_is_cut_and_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PATCH_BYTES", 100)
    (repository / "train.py").write_text("x = 'é'\n" * 100_000)
    started = time.monotonic()
    found = provenance.git(repository)
    assert len(found["patch"].encode()) <= 100 and found["patch_cut"] is True and "reason" not in found
    assert time.monotonic() - started < 2


def test_the_patch_applies_whatever_git_was_configured_to_print(repository: Path, tmp_path: Path) -> None:
    """Also from a folder below, with a file that is no text; a program that was configured is not started."""
    below = repository / "sub"
    below.mkdir()
    marker = tmp_path / "ran"
    (repository / "blob.bin").write_bytes(bytes(range(256)))
    for arguments in (
        ("add", "blob.bin"), ("commit", "-q", "-m", "blob"), ("config", "diff.noprefix", "true"),
        ("config", "color.ui", "always"), ("config", "diff.relative", "true"), ("config", "diff.external", "false"),
        ("config", "core.fsmonitor", f"touch {marker}; false"),
    ):  # fmt: skip
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repository), *arguments], check=True
        )
    (repository / "blob.bin").write_bytes(bytes(reversed(range(256))))
    (repository / "train.py").write_text("lr = 0.2\n")
    patch = provenance.git(below)["patch"]
    marker.unlink(missing_ok=True)
    provenance.git(below)
    assert not marker.exists()
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(repository), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "apply"], input=patch.encode(), check=True)
    for name in ("train.py", "blob.bin"):
        assert (clone / name).read_bytes() == (repository / name).read_bytes()


def test_secrets_in_a_patch_are_masked_and_counted_and_code_is_left_alone(repository: Path) -> None:
    code = 'key = jax.random.PRNGKey(0)\npad_token = "<|endoftext|>"\nnum_tokens = 4096\nd["monkey"] = "capuchin"\n'
    (repository / "train.py").write_text(
        code + 'API_KEY = "s3cr3tvalue99"\nexport WANDB_API_KEY=0123456789abcdef\n'
        f'x = "ghp_{"a" * 36}"\nu = "https://me:pw@host/x?X-Amz-Signature=abcdef&y=1"\n'
        '{"password": "correcthorse1"}\n'
    )
    found = provenance.git(repository)
    added = [line[1:] for line in found["patch"].splitlines() if line.startswith("+")][1:]
    assert added == [
        *code.splitlines(), 'API_KEY = "***"', "export WANDB_API_KEY=***", 'x = "***"',
        'u = "https://host/x?X-Amz-Signature=***&y=1"', '{"password": "***"}',
    ]  # fmt: skip
    assert found["patch_masked"] == 4


def test_many_untracked_files_are_counted_and_some_are_named(repository: Path) -> None:
    for i in range(250):
        (repository / f"ü {i}.py").write_text("")
    found = provenance.git(repository)
    assert found["num_untracked"] == 250 and len(found["untracked"]) == reading.MOST_UNTRACKED
    assert found["untracked"][0].strip('"').startswith("ü ")


def test_a_repository_that_the_environment_names_is_not_ours(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As inside a hook of git, where GIT_DIR names the repository that is being committed to."""
    monkeypatch.setenv("GIT_DIR", str(repository / "nowhere"))
    assert len(provenance.git(repository)["sha"]) == 40


def test_no_repository_and_no_git_are_no_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not a git repository" in provenance.git(tmp_path)["reason"]
    assert provenance.dirty(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.git(tmp_path) == {"reason": "git is not installed"}


def test_git_that_hangs_is_left_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "git"
    slow.write_text('#!/bin/sh\ncase "$*" in *"rev-parse HEAD") echo abc; exit;; esac\nsleep 30 & wait\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(reading, "GIT_TIMEOUT_S", 0.5)
    started = time.monotonic()
    found = provenance.git(tmp_path)
    assert found["sha"] == "abc" and found["reason"] == "git took longer than 0.5 s"
    assert time.monotonic() - started < 5


def test_the_environment_is_an_allow_list_and_secrets_are_masked() -> None:
    variables = {
        "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "7", "HOME": "/home/me",
        "AWS_SECRET_ACCESS_KEY": "x", "EXPKIT_API_TOKEN": "t0ps3cret", "TORCH_PASSWORD": "y",
        "EXPKIT_RUNS": "s3://user:pw@bucket/runs", "MALLOC_ARENA_MAX": "1", "NCCL_DEBUG": "INFO",
        "EXPKIT_EXTRA": f"hf_{'a' * 30}",
    }  # fmt: skip
    assert provenance.environment(variables) == {
        "CUDA_VISIBLE_DEVICES": "0", "EXPKIT_API_TOKEN": "***", "EXPKIT_RUNS": "s3://bucket/runs",
        "EXPKIT_EXTRA": "***", "NCCL_DEBUG": "INFO", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1",
        "SLURM_JOB_ID": "7", "TORCH_PASSWORD": "***",
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


def test_gpus_are_read_from_the_driver_s_own_files(tmp_path: Path) -> None:
    assert machine.gpus(tmp_path) == {"gpus": [], "gpu_driver": None}
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\nGCC version: 12\n"
    )
    for bus in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "gpus" / bus).mkdir(parents=True)
        (tmp_path / "gpus" / bus / "information").write_text("Model: \t\t NVIDIA H200\nIRQ: 11\nGPU UUID: GPU-1\n")
    assert machine.gpus(tmp_path) == {"gpus": ["NVIDIA H200", "NVIDIA H200"], "gpu_driver": "550.90.07"}


def test_distributions_of_a_checkout_say_where_they_are_from() -> None:
    vcs = '{"url": "https://me:pw@host/x", "vcs_info": {"vcs": "git", "commit_id": "abc"}}'
    assert provenance._origin(vcs) == "git+https://host/x@abc"
    assert provenance._origin('{"url": "file:///here", "dir_info": {"editable": true}}') == "file:///here (editable)"
    assert provenance._origin("[]") == provenance._origin("{") == "unknown"
    assert isinstance(provenance.collect()["packages_from"], dict)
