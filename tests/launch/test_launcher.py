"""`expkit launch` with real processes: logs, codes, signals, and that nothing is left running whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from expkit.launch import process
from tests.launch.lab import ROOT, until

NAP = str(2 * 10**6 + os.getpid())  # tests of others may run beside these
STAYS = f"setsid sleep {NAP} & sleep {NAP} & echo up; "


class Launched:
    """One `expkit launch`, in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "EXPKIT_"))}
        env = {**environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        command = [sys.executable, "-m", "expkit.cli.launcher", *arguments]
        pipe = subprocess.PIPE
        self.popen = subprocess.Popen(command, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def end(self, timeout_s: float = 30) -> tuple[int, str, str]:
        out, err = self.popen.communicate(timeout=timeout_s)
        return self.popen.returncode, out, err

    def log(self, rank: int) -> str:
        return next(self.folder.glob(f"expkit-launch-*/rank{rank}.log")).read_text()

    def naps(self) -> list[int]:
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and self._is_nap(p)]

    def _is_nap(self, folder: Path) -> bool:
        try:
            return f"sleep\0{NAP}\0".encode() in (folder / "cmdline").read_bytes() and process.is_running(
                int(folder.name)
            )
        except OSError:
            return False

    @property
    def worker(self) -> int:
        """The half that starts the ranks; its guard is what was called."""
        (child,) = process.children(self.popen.pid)
        return child


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[list[Launched]]:
    every: list[Launched] = []
    yield every
    for one in every:
        one.popen.kill()
        one.popen.communicate()
        for pid in one.naps():
            os.kill(pid, signal.SIGKILL)


def shell(launched: list[Launched], folder: Path, script: str, *options: str, n: int = 2) -> Launched:
    launched.append(Launched(folder, "-n", str(n), *options, "-c", "sh", "-c", script))
    return launched[-1]


def test_each_rank_has_its_variables_a_session_and_a_log(launched: list[Launched], tmp_path: Path) -> None:
    script = "import os, sys; print(os.environ['RANK'], os.getsid(0) == os.getpid(), sys.argv[1:], sys.stdin.read())"
    (tmp_path / "mine.py").write_text(script)
    launched.append(Launched(tmp_path, "-n", "3", "--stdout", "rank{rank}.log", "mine.py", "-n", "5", "$HOME"))
    code, out, err = launched[0].end()
    assert (code, err) == (0, "")
    assert out == "0 True ['-n', '5', '$HOME'] \n"
    assert [(tmp_path / f"rank{rank}.log").read_text()[:6] for rank in (1, 2)] == ["1 True", "2 True"]


def test_a_launch_that_went_well_leaves_no_logs_behind_and_one_that_failed_does(
    launched: list[Launched], tmp_path: Path
) -> None:
    assert shell(launched, tmp_path, "echo fine").end()[0] == 0
    assert list(tmp_path.iterdir()) == []
    code, _, err = shell(launched, tmp_path, "echo fine", "-v").end()
    (kept,) = tmp_path.glob("expkit-launch-*/rank1.log")
    assert (code, kept.read_text(), str(kept) in err) == (0, "fine\n", True)
    (tmp_path / "failed").mkdir()
    failed = shell(launched, tmp_path / "failed", "[ $RANK = 1 ] && { echo why; exit 3; }; sleep 20")
    assert failed.end()[0] == 3
    assert failed.log(1) == "why\n"


def test_names_of_logs_are_the_user_s(launched: list[Launched], tmp_path: Path) -> None:
    one = shell(launched, tmp_path, "echo out; echo err >&2", "--stdout", "o/{rank}_{world_size}_{node_rank}.txt",
                "--stderr", "e{local_rank}.txt")  # fmt: skip
    assert one.end()[:2] == (0, "out\n")
    assert (tmp_path / "o" / "1_2_0.txt").read_text() == "out\n"
    assert (tmp_path / "e1.txt").read_text() == "err\n"
    code, _, err = shell(launched, tmp_path, "true", "--stdout", "{rnk}.txt").end()
    assert (code, "{local_rank}" in err) == (2, True)
    assert shell(launched, tmp_path, "true", "--stdout", "same.txt", n=3).end()[0] == 2


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("[ $RANK = 1 ] && { sleep 0.2; echo why; exit 7; }; sleep NAP", 7, ["rank 1 ended first", "why"]),
        ("[ $RANK = 1 ] && { sleep 0.2; kill -9 $$; }; trap 'exit 3' TERM; sleep NAP & wait", 137, ["SIGKILL"]),
        ("[ $RANK = 0 ] && { sleep 0.2; exit 4; }; trap 'echo late; exit 5' TERM; sleep NAP & wait", 4, ["rank 0"]),
        ("[ $RANK = 1 ] && exit 0; sleep 0.3", 0, []),
        ("[ $RANK = 1 ] && { i=0; while [ $i -lt 200000 ]; do echo line $i; i=$((i+1)); done; exit 6; }; sleep NAP",
         6, ["line 199999"]),
    ],
)  # fmt: skip
def test_the_first_failure_in_time_decides_and_is_shown(
    launched: list[Launched], tmp_path: Path, script: str, code: int, said: list[str]
) -> None:
    one = shell(launched, tmp_path, script.replace("NAP", NAP))
    got, _, err = one.end()
    assert got == code, err
    assert [words for words in said if words not in err] == []
    assert one.naps() == []


def test_helpers_end_with_their_rank_even_in_sessions_of_their_own(launched: list[Launched], tmp_path: Path) -> None:
    one = shell(launched, tmp_path, STAYS)
    assert one.end()[0] == 0
    assert one.naps() == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 43), (signal.SIGINT, 42), (signal.SIGHUP, 41)])
def test_signals_reach_the_ranks(launched: list[Launched], tmp_path: Path, number: int, code: int) -> None:
    traps = (
        f"trap 'exit 43' TERM; trap 'exit 42' INT; trap 'exit 41' HUP; trap 'echo usr' USR1; echo up; sleep {NAP} & "
    )
    one = shell(launched, tmp_path, traps + "wait; wait")
    assert one.popen.stdout is not None
    assert one.popen.stdout.readline() == "up\n"
    until(lambda: len(one.naps()) == 2)
    one.popen.send_signal(signal.SIGUSR1)
    assert one.popen.stdout.readline() == "usr\n"
    one.popen.send_signal(number)
    assert one.end()[0] == code
    assert one.naps() == []


@pytest.mark.parametrize("how", ["grace", "twice"])
def test_who_ignores_term_is_killed_after_the_grace_or_by_a_second_signal(
    launched: list[Launched], tmp_path: Path, how: str
) -> None:
    one = shell(launched, tmp_path, "trap '' TERM; " + STAYS + "wait", "--grace", "0.3" if how == "grace" else "60")
    until(lambda: len(one.naps()) == 4)
    one.popen.send_signal(signal.SIGTERM)
    if how == "twice":
        os.kill(one.worker, 0)  # still there
        until(lambda: False, 0.3)
        one.popen.send_signal(signal.SIGTERM)
    assert one.end()[0] == 128 + signal.SIGKILL
    assert one.naps() == []


@pytest.mark.parametrize("victim", ["launcher", "worker"])
def test_kill_9_leaves_nothing_running(launched: list[Launched], tmp_path: Path, victim: str) -> None:
    one = shell(launched, tmp_path, STAYS + "wait")
    until(lambda: len(one.naps()) == 4)
    worker = one.worker
    os.kill(one.popen.pid if victim == "launcher" else worker, signal.SIGKILL)
    one.popen.wait(10)
    until(lambda: not one.naps() and not process.is_running(worker), 5)
    assert one.naps() == []
    assert not process.is_running(worker)
    assert one.popen.returncode == (-signal.SIGKILL if victim == "launcher" else 128 + signal.SIGKILL)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("-m", "-c", "x"), 2, "exclude each other"),
        ((), 2, "nothing to launch"),
        (("-c", "no-such-command"), 3, "cannot start no-such-command"),
        (("-n", "2", "-m", "no_such_module"), 1, "No module named"),
        (("-n", "0", "x.py"), 2, "--nproc must be 1 or more"),
    ],
)
def test_a_launch_that_fails_outright_is_no_success(
    launched: list[Launched], tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    launched.append(Launched(tmp_path, *arguments))
    got, _, err = launched[0].end()
    assert (got, said in err) == (code, True), err


def test_the_launcher_loads_no_torch() -> None:
    code = "import sys, expkit.launch.launcher; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


MEET = """
import datetime, os, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
said = [None, None]
dist.all_gather_object(said, os.environ["RANK"])
dist.destroy_process_group()
assert said == ["0", "1"]
"""


def test_jobs_at_the_same_time_meet_on_ports_of_their_own(launched: list[Launched], tmp_path: Path) -> None:
    (tmp_path / "meet.py").write_text(MEET)
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        launched.append(Launched(tmp_path / str(number), "-n", "2", str(tmp_path / "meet.py")))
    ends = [one.end(90) for one in launched]
    assert [code for code, _, _ in ends] == [0, 0], ends
