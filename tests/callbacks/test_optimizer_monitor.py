from __future__ import annotations

from typing import Any

import pytest
import torch

from expkit.callbacks.optimizer_monitor import OptimizerMonitor
from expkit.errors import UsageError
from expkit.functional.decoupled import DecoupledAdamW
from expkit.loggers.memory import Memory
from expkit.trainer.callback import Callback
from tests.callbacks.lab import Lines, net, state_of, trainer


class Keeping(Callback):
    """Keeps weights before, weights after, gradients and the optimizer's tensors of the first batch, by name."""

    def batch_start(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == 0:
            self.before = {name: p.detach().clone() for name, p in state.model.named_parameters()}

    def batch_end(self, state: Any, logger: Any) -> None:
        if state.timestamp.batch == 1:
            named = dict(state.model.named_parameters())
            self.after = {name: p.detach().clone() for name, p in named.items()}
            self.gradients = {name: p.grad.clone() for name, p in named.items()}
            kept = [(name, *item) for name, p in named.items() for item in state.optimizer.state[p].items()]
            self.kept = {(name, key): tensor.clone() for name, key, tensor in kept if tensor is not None}


def watched(optimizer: Any, **settings: Any) -> tuple[dict[str, float], Keeping]:
    """What was recorded after the first batch, and what it was computed from."""
    model = net()
    keeping, memory = Keeping(), Memory()
    with trainer([OptimizerMonitor(**settings), keeping], model=model, optimizers=optimizer(model.parameters()),
                 loggers=[memory], max_duration="2ba") as t:  # fmt: skip
        t.fit()
    first = {name: rows[0][-1] for name, rows in memory.series.items() if rows[0][0] == 1}
    return {name: value for name, value in first.items() if name.startswith("l2_norm/")}, keeping


def norm(tensor: torch.Tensor) -> Any:
    return pytest.approx(float(tensor.double().norm()), rel=1e-5)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW, DecoupledAdamW])
def test_norms_of_adam_are_those_of_its_tensors(optimizer: Any) -> None:
    seen, at = watched(lambda p: optimizer(p, lr=0.1, weight_decay=1e-4))
    for name, gradient in at.gradients.items():
        assert seen[f"l2_norm/grad/{name}"] == norm(gradient)
        assert seen[f"l2_norm/param/{name}"] == norm(at.after[name])
        assert seen[f"l2_norm/update/{name}"] == norm(at.after[name] - at.before[name])
        assert seen[f"l2_norm/moment/{name}"] == norm(at.kept[name, "exp_avg"])
        assert seen[f"l2_norm/second_moment_sqrt/{name}"] == norm(at.kept[name, "exp_avg_sq"].sqrt())
    assert seen["l2_norm/grad/global"] == norm(torch.cat([g.flatten() for g in at.gradients.values()]))
    assert len(seen) == 5 * 4 + 1


def test_sgd_has_a_moment_where_it_has_momentum_and_always_an_update() -> None:
    plain, at = watched(lambda p: torch.optim.SGD(p, lr=0.5))
    assert plain["l2_norm/update/0.weight"] == norm(0.5 * at.gradients["0.weight"])
    assert not [name for name in plain if "moment" in name]
    heavy, at = watched(lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9))
    assert heavy["l2_norm/moment/0.weight"] == norm(at.kept["0.weight", "momentum_buffer"])


def test_gradients_alone_where_that_is_asked_for() -> None:
    seen, at = watched(torch.optim.AdamW, log_optimizer_metrics=False)
    assert set(seen) == {f"l2_norm/grad/{name}" for name in (*at.gradients, "global")}


def test_it_records_now_and_then_from_the_first_batch_on() -> None:
    memory = Memory()
    with trainer([OptimizerMonitor(batch_log_interval=5)], loggers=[memory]) as t:
        t.fit()
    assert memory.get_timeseries("l2_norm/grad/global")["batch"] == [1, 6, 11]


def test_frozen_parameters_are_left_out() -> None:
    model: Any = net()
    model[0].weight.requires_grad_(False)
    memory = Memory()
    with trainer([OptimizerMonitor()], model=model, loggers=[memory]) as t:
        t.fit()
    assert "l2_norm/param/0.weight" not in memory.series and "l2_norm/param/0.bias" in memory.series


def test_sparse_and_half_precision_gradients_have_norms() -> None:
    table = torch.nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1, 1, 3])).sum().backward()
    half = torch.nn.Linear(2, 2, dtype=torch.bfloat16)
    half(torch.ones(1, 2, dtype=torch.bfloat16)).sum().backward()
    model, lines = torch.nn.ModuleDict({"table": table, "low": half}), Lines()
    state = state_of(model=model, optimizer=torch.optim.SGD(model.parameters()))
    state.timestamp = state.timestamp._replace(batch=1)
    OptimizerMonitor(log_optimizer_metrics=False).batch_end(state, lines)
    assert lines.lines[0]["l2_norm/grad/table.weight"] == pytest.approx(10**0.5)
    assert lines.lines[0]["l2_norm/grad/low.weight"] == 2.0


def test_sharded_parameters_are_refused_with_the_reason() -> None:
    """OptimizerMonitor told norms of local shards under FSDP2 (Composer #3920)."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        model = torch.nn.Linear(2, 2)
        model.weight = torch.nn.Parameter(distribute_tensor(model.weight.detach(), mesh, [Shard(0)]))
        with pytest.raises(UsageError, match=r"needs whole parameters, but weight .* sharded over ranks"):
            OptimizerMonitor().fit_start(state_of(model=model), Lines())
    finally:
        dist.destroy_process_group()
