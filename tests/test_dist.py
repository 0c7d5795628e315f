"""Dist: the usual variables, answers without a process group, what two processes say to each other."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from expkit import dist
from expkit.errors import EnvironmentFault, UsageError

ROOT = Path(__file__).parent.parent
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def place() -> tuple[int, ...]:
    return dist.rank(), dist.world_size(), dist.local_rank(), dist.local_world_size(), dist.node_rank()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1, 0, 1, 0)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, (1, 2, 1, 2, 0)),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "NODE_RANK": "1"},
         (5, 8, 1, 4, 1)),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}, (5, 8, 1, 4, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1"},
         (3, 4, 1, 2, 1)),
        ({"RANK": "", "WORLD_SIZE": ""}, (0, 1, 0, 1, 0)),
    ],
)  # fmt: skip
def test_the_usual_variables(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: Any) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert place() == expected


@pytest.mark.parametrize(
    ("variables", "says"),
    [({"WORLD_SIZE": "two"}, "WORLD_SIZE must be a whole number, at least 1, but is 'two'"),
     ({"WORLD_SIZE": "0"}, "at least 1, but is '0'"),
     ({"RANK": "-1"}, "RANK must be a whole number, at least 0"),
     ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK must be below the number of ranks, 2, but is 2")],
)  # fmt: skip
def test_variables_that_cannot_be_right(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], says: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentFault, match=says):
        place()


def test_one_rank_alone_gets_back_what_it_gave() -> None:
    dist.initialize()
    assert not dist.initialized()
    tensor = torch.arange(3.0)
    assert torch.equal(dist.all_reduce(tensor.clone(), "max"), tensor)
    assert torch.equal(dist.broadcast(tensor.clone()), tensor)
    assert [t.tolist() for t in dist.all_gather(tensor)] == [[0, 1, 2]]
    assert dist.all_gather_json({"a": [1]}) == [{"a": [1]}]
    assert dist.broadcast_json("text") == "text"
    dist.barrier()
    with dist.local_rank_zero_first():
        pass
    dist.shutdown()


def test_several_ranks_that_are_not_connected_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="the ranks are not connected"):
        dist.all_reduce(torch.zeros(1))


@pytest.mark.parametrize("num_samples", [0, 1, 7, 8, 9])
@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_samplers_of_all_ranks_see_each_sample_once(num_samples: int, world_size: int, shuffle: bool) -> None:
    ranks = [
        dist.Sampler(num_samples, shuffle=shuffle, seed=3, rank=r, world_size=world_size) for r in range(world_size)
    ]
    for rank in ranks:
        rank.set_epoch(2)
    seen = [list(rank) for rank in ranks]
    assert sorted(i for part in seen for i in part) == list(range(num_samples))
    assert [len(part) for part in seen] == [len(rank) for rank in ranks]


def test_a_sampler_has_an_order_for_each_epoch_and_seed_that_does_not_depend_on_the_ranks() -> None:
    def order(seed: int, epoch: int, world_size: int) -> list[int]:
        parts = []
        for rank in range(world_size):
            sampler = dist.Sampler(12, shuffle=True, seed=seed, rank=rank, world_size=world_size)
            sampler.set_epoch(epoch)
            parts.append(list(sampler))
        return [i for step in zip(*parts, strict=True) for i in step]

    assert order(1, 0, 1) == order(1, 0, 2) == order(1, 0, 4)
    assert len({tuple(order(seed, epoch, 1)) for seed in range(3) for epoch in range(3)}) == 9
    assert list(dist.get_sampler(range(4))) == [0, 1, 2, 3]


TALK = """
import json, sys, torch
from expkit import dist
dist.initialize(timeout_s=30)
rank = dist.rank()
said = {"reduce": dist.all_reduce(torch.tensor([rank + 1.0])).tolist(),
        "least": dist.all_reduce(torch.tensor([rank + 1]), "min", control=True).tolist(),
        "gather": [t.tolist() for t in dist.all_gather(torch.tensor([rank]))],
        "broadcast": dist.broadcast(torch.tensor([rank]), 1).tolist(),
        "json": dist.all_gather_json({"rank": rank, "text": "\\u00e9" * (3 * rank)}),
        "from_1": dist.broadcast_json(f"rank {rank}", 1)}
order = []
with dist.local_rank_zero_first():
    order.append(rank)
dist.barrier()
dist.shutdown()
dist.shutdown()
print(json.dumps(said))
"""


def test_two_processes_talk(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {**os.environ, "PYTHONPATH": str(ROOT), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
             "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}  # fmt: skip
    ranks = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", TALK], env={**given, "RANK": str(rank)}, cwd=ROOT,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]  # fmt: skip
    for rank in ranks:
        said, complained = rank.communicate(timeout=120)
        assert rank.returncode == 0, complained
        assert json.loads(said) == {
            "reduce": [3.0], "least": [1], "gather": [[0], [1]], "broadcast": [1], "from_1": "rank 1",
            "json": [{"rank": 0, "text": ""}, {"rank": 1, "text": "ééé"}],
        }  # fmt: skip


def test_a_rank_that_waits_in_vain_is_told_so(tmp_path: Path) -> None:
    code = f"from expkit import dist\ndist.initialize(store='file://{tmp_path}/store', timeout_s=1)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "RANK": "0", "WORLD_SIZE": "2"})  # fmt: skip
    assert "RankLost: rank 0 waited in vain for the other ranks (2 ranks at file://" in done.stderr
