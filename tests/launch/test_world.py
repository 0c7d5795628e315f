"""Which ranks there are: inferred from options and environment, by table, and what each is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from expkit.errors import UsageError
from expkit.launch.world import VARIABLES, Asked, World, infer, without_ranks

ONE = World(1, 1, 0, 0, "127.0.0.1", 0)
NODES = {"master_addr": "head", "master_port": 26000}


@pytest.mark.parametrize(
    ("asked", "env", "num_gpus", "world"),
    [
        ({}, {}, 0, ONE),
        ({}, {}, 4, World(4, 4, 0, 0, "127.0.0.1", 0)),
        ({"nproc": 2}, {}, 4, World(2, 2, 0, 0, "127.0.0.1", 0)),
        ({}, {"LOCAL_WORLD_SIZE": "3"}, 0, World(3, 3, 0, 0, "127.0.0.1", 0)),
        ({"nproc": 2}, {"LOCAL_WORLD_SIZE": "1", "WORLD_SIZE": "1"}, 0, World(2, 2, 0, 0, "127.0.0.1", 0)),
        ({"nproc": 2, "master_port": 26000}, {}, 0, World(2, 2, 0, 0, "127.0.0.1", 26000)),
        ({"nproc": 2, "world_size": 4, "node_rank": 1, **NODES}, {}, 0, World(2, 4, 2, 1, "head", 26000)),
        ({"nproc": 2, "world_size": 4, "base_rank": 2, **NODES}, {}, 0, World(2, 4, 2, 1, "head", 26000)),
        ({"nproc": 2, "world_size": 3, "base_rank": 1, "node_rank": 1, **NODES}, {}, 0,
         World(2, 3, 1, 1, "head", 26000)),
        ({"nproc": 1}, {"WORLD_SIZE": "2", "NODE_RANK": "1", "MASTER_ADDR": "head", "MASTER_PORT": "5"}, 0,
         World(1, 2, 1, 1, "head", 5)),
    ],
)  # fmt: skip
def test_what_is_meant(asked: Mapping[str, Any], env: Mapping[str, str], num_gpus: int, world: World) -> None:
    assert infer(Asked(**asked), env, num_gpus) == world


@pytest.mark.parametrize(
    ("asked", "env", "said"),
    [
        ({"nproc": 0}, {}, "--nproc must be 1 or more, but got 0"),
        ({"nproc": 4, "world_size": 2}, {}, "4"),
        ({"nproc": 2, "base_rank": 1}, {}, "--base-rank must be 0 on a single node"),
        ({"nproc": 2, "node_rank": 1}, {}, "--node-rank must be 0 on a single node"),
        ({"nproc": 2, "world_size": 4, **NODES}, {}, "--node-rank or --base-rank"),
        ({"nproc": 2, "world_size": 4, "node_rank": 0}, {}, "--master-addr and --master-port"),
        ({"nproc": 2, "world_size": 3, "base_rank": 1, **NODES}, {}, "no multiple of 2"),
        ({"nproc": 2, "world_size": 4, "base_rank": 3, "node_rank": 1, **NODES}, {}, "ranks 3 to 4 do not fit"),
        ({}, {"LOCAL_WORLD_SIZE": "two"}, "LOCAL_WORLD_SIZE is 'two'"),
    ],
)
def test_what_does_not_add_up_is_said(asked: Mapping[str, Any], env: Mapping[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        infer(Asked(**asked), env, 0)


def test_ranks_read_the_usual_variables() -> None:
    env = World(2, 4, 2, 1, "head", 26000).env(1)
    assert tuple(env) == ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK",
                          "MASTER_ADDR", "MASTER_PORT")  # fmt: skip
    assert set(env) == set(VARIABLES)
    assert list(env.values()) == ["3", "1", "4", "2", "1", "head", "26000"]
    assert without_ranks({**env, "HOME": "/"}) == {"HOME": "/"}
