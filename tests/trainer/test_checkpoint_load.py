"""Loading: strict where it says so, by name and not by order, into trainings that are not the one that saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from expkit.algorithms.ema import EMA
from expkit.algorithms.label_smoothing import LabelSmoothing
from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.callbacks.load_checkpoint import LoadCheckpoint
from expkit.errors import CheckpointError
from expkit.trainer.algorithm import Algorithm
from expkit.trainer.checkpoint.moment import Generators
from expkit.trainer.checkpoint.stateful import OptimizerState, ScalerState
from expkit.trainer.precision import Scaler
from expkit.trainer.trainer import Trainer
from tests.trainer.doubles import Memory, batches, net, recorder, trainer, weights


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After one epoch of two, with an average."""
    t = trainer(algorithms=[EMA(half_life="2ba")], max_duration="6ba")
    t.fit()
    return Path(t.save_checkpoint(tmp_path_factory.mktemp("saved") / "c"))


def like_saved(**settings: Any) -> Trainer:
    return trainer(**{"algorithms": [EMA(half_life="2ba")], "max_duration": "9ba", **settings})


class Wider(nn.Module):
    """The same names but for one, and another shape."""

    def __init__(self, width: int = 16, name: str = "head") -> None:
        super().__init__()
        self.add_module("0", nn.Linear(8, width))
        self.add_module(name, nn.Linear(width, 4))
        self._name = name

    def forward(self, x: Any) -> Any:
        return getattr(self, self._name)(torch.tanh(getattr(self, "0")(x)))


class Surgery(Algorithm):
    """One more layer."""

    def init(self, state: Any, logger: Any) -> None:
        state.model.append(nn.Linear(4, 4))


class TestStrict:
    def test_a_full_load_names_what_is_missing_and_what_is_unexpected(self, saved: Path) -> None:
        with pytest.raises(CheckpointError) as e:
            like_saved(model=Wider(), load_path=saved)
        said = str(e.value)
        assert (
            "its model lacks head.bias, head.weight" in said and "its model has 3.bias, 3.weight, unknown here" in said
        )
        assert "its optimizer lacks head.weight, head.bias" in said and said.endswith(
            "load_strict=False takes what fits"
        )

    def test_weights_alone_likewise(self, saved: Path) -> None:
        with pytest.raises(CheckpointError, match=r"its model lacks head\.bias, head\.weight") as e:
            trainer(model=Wider(), load_path=saved, load_weights_only=True)
        assert "optimizer" not in str(e.value)

    def test_without_it_what_fits_is_taken(self, saved: Path) -> None:
        model = Wider()
        head = model.head.weight.detach().clone()
        part = r"taken up in part: it has algorithms/ema, unknown here; its model lacks head\.bias, head\.weight; "
        with pytest.warns(UserWarning, match="of a training set up otherwise: "), pytest.warns(UserWarning, match=part):
            t = like_saved(model=model, load_path=saved, load_strict=False, algorithms=[], max_duration="12ba")
        assert t.state.timestamp.batch == 6 and torch.equal(model.head.weight, head)
        loaded = like_saved(load_path=saved)
        assert torch.equal(t.state.model.get_parameter("0.weight"), loaded.state.model.get_parameter("0.weight"))
        t.fit()
        assert t.state.timestamp.batch == 12

    def test_another_shape_never_fits(self, saved: Path) -> None:
        for strict in (True, False):
            with pytest.raises(CheckpointError, match=r"model: 0\.bias has shape \[16\] there and \[32\] here"):
                trainer(model=Wider(32, "3"), load_path=saved, load_weights_only=True, load_strict=strict)

    def test_methods_must_be_the_same(self, saved: Path) -> None:
        with pytest.raises(CheckpointError) as e:
            trainer(algorithms=[LabelSmoothing()], load_path=saved)
        said = str(e.value)
        assert "it has algorithms/ema, unknown here" in said and "its training lacks method label_smoothing" in said
        assert "saved with the methods ema, here are label_smoothing" in said

    def test_a_method_that_changed_the_network_is_named(self, tmp_path: Path) -> None:
        path = trainer(algorithms=[Surgery()]).save_checkpoint(tmp_path / "c", weights_only=True)
        with pytest.raises(CheckpointError, match="saved with the methods surgery, here are none"):
            trainer(load_path=path, load_weights_only=True)

    def test_nothing_is_changed_where_it_does_not_fit(self, saved: Path) -> None:
        model = Wider()
        before = model.get_parameter("0.weight").detach().clone()
        with pytest.raises(CheckpointError):
            trainer(model=model, load_path=saved)
        assert torch.equal(model.get_parameter("0.weight"), before)

    def test_callbacks_and_loggers_may_come_and_go(self, saved: Path) -> None:
        t = like_saved(load_path=saved, callbacks=[recorder()], loggers=[Memory()])
        assert t.state.timestamp.batch == 6

    def test_the_middle_of_an_epoch_of_another_length_is_refused(self, saved: Path) -> None:
        with pytest.raises(CheckpointError, match="in the middle of an epoch of 4 batches, and an epoch here has 5"):
            like_saved(load_path=saved, train_dataloader=batches(5))


class TestIgnoredKeys:
    def test_globs_over_paths(self, saved: Path) -> None:
        model = net()
        head = model[3].weight.detach().clone()
        t = like_saved(model=model, load_path=saved, load_ignore_keys=["model/3.*", "optimizer/state/3.*", "clocks"])
        assert torch.equal(model[3].weight, head) and not torch.equal(model[0].weight, net()[0].weight)
        assert {tuple(p.shape) for p in t.state.optimizer.state} == {(16, 8), (16,)}

    def test_a_prefix_takes_all_below_it(self, saved: Path) -> None:
        t = like_saved(load_path=saved, load_ignore_keys=["optimizer", "algorithms/*"])
        assert not t.state.optimizer.state and t.state.timestamp.batch == 6
        t.fit()

    def test_counters_left_behind_begin_anew_with_the_weights(self, saved: Path) -> None:
        t = like_saved(load_path=saved, load_ignore_keys=["training", "rng", "loader", "clocks"])
        assert t.state.timestamp.batch == 0 and t.state.optimizer.state
        t.fit()
        assert t.state.timestamp.batch == 9

    def test_it_lets_another_head_pass(self, saved: Path) -> None:
        t = trainer(model=Wider(name="3", width=16), load_path=saved, load_weights_only=True,
                    load_ignore_keys=["model/3.*"])  # fmt: skip
        assert t.state.timestamp.batch == 0
        with pytest.raises(CheckpointError, match=r"lacks head\.bias"):
            trainer(model=Wider(), load_path=saved, load_weights_only=True, load_ignore_keys=["model/3.*"])
        trainer(model=Wider(), load_path=saved, load_weights_only=True, load_ignore_keys=["model/3.*", "model/head.*"])

    def test_a_pattern_that_matches_nothing_is_said(self, saved: Path) -> None:
        with pytest.warns(UserWarning, match=r"nothing in .* matches 'modle/\*'"):
            like_saved(load_path=saved, load_ignore_keys=["modle/*"])


class TestWeightsOnly:
    def test_only_the_weights_are_taken(self, saved: Path) -> None:
        t = trainer(load_path=saved, load_weights_only=True)
        assert torch.equal(weights(t), weights(like_saved(load_path=saved)))
        assert t.state.timestamp.batch == 0 and not t.state.optimizer.state

    def test_what_holds_nothing_else_can_be_loaded_so_only(self, tmp_path: Path) -> None:
        t = trainer(save_folder=None, max_duration="3ba")
        t.fit()
        path = t.save_checkpoint(tmp_path / "{run_name}-{batch:04d}", weights_only=True)
        assert path == str(tmp_path / f"{t.state.run_name}-0003")
        assert {p.name for p in Path(path).iterdir()} == {"manifest.json", "rank0.json", "rank0.safetensors"}
        with pytest.raises(CheckpointError, match="holds weights only; load_weights_only=True takes them"):
            trainer(load_path=path)
        assert torch.equal(weights(trainer(load_path=path, load_weights_only=True)), weights(t))


class TestAnotherTraining:
    def test_another_seed_and_run_name_stay_what_they_are_here(self, saved: Path) -> None:
        t = like_saved(load_path=saved, seed=99, run_name="other")
        assert (t.state.seed, t.state.run_name, t.state.timestamp.batch) == (99, "other", 6)

    def test_the_length_asked_for_here_holds(self, saved: Path) -> None:
        t = like_saved(load_path=saved, max_duration="7ba")
        t.fit()
        assert t.state.timestamp.batch == 7
        more = like_saved(load_path=saved, max_duration="7ba")
        more.fit("4ba")
        assert more.state.timestamp.batch == 10, "without autoresume it is so much more"

    def test_other_settings_of_the_optimizer_are_said_to_be_left_as_saved(self, saved: Path) -> None:
        with pytest.warns(
            UserWarning, match=r"optimizer\.groups\.0\.momentum was 0\.9 and is 0\.5; the optimizer goes on"
        ):
            t = like_saved(load_path=saved, momentum=0.5)
        assert t.state.optimizer.param_groups[0]["momentum"] == 0.9

    def test_a_folder_of_checkpoints_means_its_newest(self, tmp_path: Path) -> None:
        trainer(save_folder=tmp_path, save_interval="3ba").fit()
        for path in (tmp_path, f"{tmp_path}/", f"file://{tmp_path}"):
            assert trainer(load_path=path).state.timestamp.batch == 8

    def test_a_run_name_in_its_path_is_filled(self, tmp_path: Path) -> None:
        trainer(save_folder=tmp_path / "a").fit()
        assert trainer(load_path=str(tmp_path / "{run_name}"), run_name="a").state.timestamp.batch == 8

    def test_events_stand_around_it(self, saved: Path) -> None:
        class Looking(type(recorder())):  # type: ignore[misc]
            def before_load(self, state: Any, logger: Any) -> None:
                self.before = state.timestamp.batch

            def after_load(self, state: Any, logger: Any) -> None:
                self.after = state.timestamp.batch

        looking = Looking()
        memory = Memory()
        like_saved(load_path=saved, callbacks=[looking], loggers=[memory])
        assert (looking.before, looking.after) == (0, 6)
        assert [(kind, payload) for kind, _, payload in memory.events] == [
            ("load", {"address": str(saved), "batch": 6})
        ]


class TestOptimizer:
    def two(self, order: str, betas: tuple[float, float] = (0.9, 0.99)) -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(3, 2)})
        parts = {"a": list(model["a"].parameters()), "b": list(model["b"].parameters())}
        groups = [{"params": parts[name], "lr": 0.1 * (i + 1)} for i, name in enumerate(order)]
        return model, torch.optim.AdamW(groups, betas=betas)

    def state(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> OptimizerState:
        holder = type("Holder", (), {"model": model, "optimizer": optimizer})()
        return OptimizerState(holder)

    def stepped(self, order: str = "ab") -> tuple[nn.Module, torch.optim.Optimizer]:
        model, optimizer = self.two(order)
        for i, p in enumerate(model.parameters()):
            p.grad = torch.full_like(p, i + 1.0)
        optimizer.step()
        return model, optimizer

    def test_the_order_of_parameters_does_not_matter(self) -> None:
        model, optimizer = self.stepped()
        saved = self.state(model, optimizer).state_dict()
        other, second = self.two("ab")
        second.param_groups[0]["params"].reverse()
        self.state(other, second).load_state_dict(saved)
        for name, p in other.named_parameters():
            assert torch.equal(second.state[p]["exp_avg"], optimizer.state[model.get_parameter(name)]["exp_avg"]), name

    def test_other_groups_are_a_difference(self) -> None:
        model, optimizer = self.stepped()
        saved = self.state(model, optimizer).state_dict()
        other, second = self.two("ba")
        assert self.state(other, second).differences(saved).wrong == [
            "its parameters are grouped differently there and here"
        ]

    def test_state_keeps_its_own_number_type(self) -> None:
        parameter = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
        model = nn.ParameterDict({"p": parameter})
        optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9)
        kept = {"state": {"p": {"momentum_buffer": torch.tensor([1.001, 2.0, 3.0])}}, "groups": [
            {**optimizer.param_groups[0], "params": ["p"]}]}  # fmt: skip
        self.state(model, optimizer).load_state_dict(kept)
        assert torch.equal(optimizer.state[parameter]["momentum_buffer"], kept["state"]["p"]["momentum_buffer"])

    def test_a_parameter_in_no_module_goes_by_its_place(self) -> None:
        alone = nn.Parameter(torch.ones(2))
        optimizer = torch.optim.SGD([alone], lr=0.1, momentum=0.9)
        alone.grad = torch.ones(2)
        optimizer.step()
        saved = self.state(nn.Linear(1, 1), optimizer).state_dict()
        assert saved["groups"][0]["params"] == ["#0.0"] and list(saved["state"]) == ["#0.0"]

    def test_tuples_of_settings_stay_tuples(self, tmp_path: Path) -> None:
        def adamw(**settings: Any) -> Trainer:
            model = net()
            optimizer = torch.optim.AdamW(model.parameters(), betas=(0.8, 0.9))
            return Trainer(model=model, optimizers=optimizer, train_dataloader=batches(), max_duration="2ba",
                           device="cpu", **settings)  # fmt: skip

        again = adamw(load_path=adamw().save_checkpoint(tmp_path / "c"))
        assert again.state.optimizer.param_groups[0]["betas"] == (0.8, 0.9)


def test_a_scaler_goes_on_and_is_left_out_where_there_is_none() -> None:
    def scaler(scale: float) -> Scaler:
        return Scaler(torch.amp.GradScaler("cpu", init_scale=scale), torch.device("cpu"))

    first, second = scaler(32.0), scaler(8.0)
    first.skipped = 3
    ScalerState(second).load_state_dict(ScalerState(first).state_dict())
    assert second.scale == 32.0 and second.skipped == 3
    ScalerState(second).load_state_dict({})
    ScalerState(None).load_state_dict(ScalerState(first).state_dict())
    assert second.scale == 32.0 and ScalerState(None).state_dict() == {}


def test_generators_are_taken_up_when_training_goes_on_and_not_before() -> None:
    import random

    import numpy as np

    def draw() -> tuple[float, float, float]:
        return float(torch.rand(())), random.gauss(0, 1), float(np.random.standard_normal())

    draw()
    generators = Generators(torch.device("cpu"))
    state = generators.state_dict()
    expected = draw()
    other = draw()
    generators.load_state_dict(state)
    assert draw() != expected and other != expected
    generators.take_up()
    assert draw() == expected
    generators.take_up()
    assert draw() != expected, "once"


class TestLoadCheckpoint:
    def test_it_begins_with_the_weights_of_another_training(self, saved: Path) -> None:
        t = trainer(callbacks=[LoadCheckpoint(path=saved)])
        assert torch.equal(weights(t), weights(like_saved(load_path=saved))) and t.state.timestamp.batch == 0

    def test_all_the_rest_as_well_where_it_is_asked_for(self, saved: Path) -> None:
        t = like_saved(callbacks=[LoadCheckpoint(path=saved, weights_only=False)])
        t.fit()
        other = like_saved(load_path=saved)
        other.fit()
        assert t.state.timestamp.batch == 9 and torch.equal(weights(t), weights(other))

    def test_what_is_resumed_stays(self, saved: Path, tmp_path: Path) -> None:
        def make() -> Trainer:
            return trainer(
                callbacks=[LoadCheckpoint(path=saved), CheckpointSaver(folder=str(tmp_path))], autoresume=True
            )

        first = make()
        first.fit()
        assert torch.equal(weights(make()), weights(first))

    def test_it_is_strict_and_can_leave_out(self, saved: Path) -> None:
        with pytest.raises(CheckpointError, match="does not fit"):
            trainer(model=Wider(), callbacks=[LoadCheckpoint(path=saved)])
        with pytest.warns(UserWarning, match="is taken up in part: its model lacks"):
            trainer(model=Wider(), callbacks=[LoadCheckpoint(path=saved, strict=False)])
        trainer(model=Wider(), callbacks=[LoadCheckpoint(path=saved, ignore_keys=["model/3.*", "model/head.*"])])

    def test_it_changes_training_and_says_so(self) -> None:
        assert LoadCheckpoint.changes_training
