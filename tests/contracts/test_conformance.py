"""Every plug-in of ours against the suite of its kind, with its defaults and with settings worth a second look."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from expkit import plugins
from expkit.callbacks.checkpoint_saver import CheckpointSaver
from expkit.testing.suites import Check, checks, name_of_check
from expkit.testing.training import train

KINDS = ("algorithms", "callbacks", "loggers", "models", "datasets", "optimizers", "schedulers", "metrics")
MORE: dict[str, list[dict[str, Any]]] = {
    "blurpool": [{"blur_first": False, "min_channels": 1}],
    "colout": [{"batch": False, "p_row": 0.5}, {"p_row": 0, "p_col": 0}],
    "cutmix": [{"interpolate_loss": True, "uniform_sampling": True}, {"alpha": 0}],
    "ema": [{"half_life": "2ba"}, {"smoothing": 0.5, "ema_start": "1ba", "update_interval": "2ba"}],
    "label_smoothing": [{"smoothing": 0}],
    "mixup": [{"alpha": 1.0, "interpolate_loss": True}, {"alpha": 0}],
    "progressive_resizing": [
        {"mode": "crop"},
        {"delay_fraction": 0.8, "finetune_fraction": 0.2},
        {"initial_scale": 1.0},
    ],
    "selective_backprop": [
        {"start": 0.0, "end": 1.0, "interrupt": 0, "keep": 0.3, "scale_factor": 0.5},
        {"keep": 1.0},
    ],
    "seq_length_warmup": [
        {"min_seq_length": 4, "step_size": 4, "duration": 1.0, "truncate": False},
        {"min_seq_length": 16},
    ],
    "activation_monitor": [{"interval": "2ba", "ignore_module_types": ["BatchNorm", "relu"]}],
    "early_stopper": [
        {"monitor": "train/loss", "patience": "1ba"},
        {"monitor": "train/loss", "min_delta": 100, "patience": "0ba"},
        {"monitor": "eval/cross_entropy", "min_delta": 10, "patience": "0.1dur"},
    ],
    "memory_monitor": [{"batch_log_interval": 2}],
    "profiler": [{"wait": 2, "warmup": 0, "active": 1, "repeat": 0, "record_shapes": True, "with_stack": True}],
    "optimizer_monitor": [{"batch_log_interval": 2}, {"log_optimizer_metrics": False}],
    "runtime_estimator": [{"skip_batches": 4, "time_unit": "seconds"}],
    "speed_monitor": [{"window_size": 2, "time_unit": "minutes"}],
    "system_metrics_monitor": [{"batch_log_interval": 2}],
    "threshold_stopper": [
        {"monitor": "train/loss", "threshold": 0.0},
        {"monitor": "train/loss", "threshold": 100.0, "stop_on_batch": True},
        {"monitor": "train/loss", "threshold": 100.0},
    ],
    "console": [{"interval_s": 0}],
    "mlp": [{"hidden": [], "num_classes": 3}, {"dropout": 0.5, "hidden": [8, 8]}],
    "resnet": [{"depth": 8, "width": 4, "in_channels": 1, "stem_stride": 2}],
    "gpt": [{"dropout": 0.1}, {"vocab_size": 5, "context_length": 3, "layers": 1, "heads": 1, "width": 4}],
    "austen": [
        {"shuffle": True, "characters": 100_000},
        {"split": "validation", "characters": 65_536, "batch_size": 60},
        {"split": "test", "sequence_length": 1000, "batch_size": 4096},
    ],
    "fashion_mnist_10k": [
        {"shuffle": True},
        {"split": "validation", "batch_size": 500},
        {"split": "test", "batch_size": 4096, "drop_last": True, "shuffle": True},
    ],
    "sgd": [{"momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}],
    "adamw": [{"lr": 0.1}],
    "decoupled_sgd": [{"momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}],
    "decoupled_adamw": [{"lr": 0.1, "amsgrad": True}],
    "constant": [{"warmup": "0.1dur"}, {"alpha": 2.0, "t_max": "0.5ep"}],
    "linear": [{"warmup": "0.1dur", "alpha_f": 0.1}, {"alpha_i": 0.1, "alpha_f": 1.0, "t_max": "1ep"}],
    "cosine": [{"warmup": "0.1dur", "alpha_f": 0.1}, {"warmup": "1dur"}, {"t_max": "0.5dur"}],
    "polynomial": [{"warmup": "0.1dur", "power": 0.5, "alpha_f": 0.1}],
    "cosine_warm_restarts": [{"t_0": "0.1dur", "t_mult": 2.0, "warmup": "0.1dur"}],
    "step": [{"step_size": "0.25dur", "warmup": "0.1dur"}],
    "multi_step": [{"milestones": ["0.5dur", "1ep", "800ba"], "gamma": 0.5, "warmup": "100ba"}],
    "exponential": [{"gamma": 0.9, "decay_period": "100ba", "warmup": "1ep"}],
}
REQUIRED: dict[str, dict[str, Any]] = {
    "cosine_warm_restarts": {"t_0": "0.3dur"},
    "step": {"step_size": "1ep"},
    "multi_step": {"milestones": ["0.5dur", "0.75dur"]},
    "exponential": {"gamma": 0.9},
    "early_stopper": {"monitor": "eval/accuracy"},
    "threshold_stopper": {"monitor": "eval/accuracy", "threshold": 1.0},
}


def cases() -> Iterator[Any]:
    for kind in KINDS:
        for name in plugins.names(kind):
            for index, settings in enumerate([{}, *MORE.get(name, [])]):
                for check in checks(kind):
                    once = check.__name__ in {"imports_without_torch", "explains_itself"}
                    if index == 0 or not once:
                        yield pytest.param(kind, name, settings, check, id=f"{name}-{index}-{name_of_check(check)}")


@pytest.mark.parametrize(("kind", "name", "settings", "check"), list(cases()))
def test_conforms(kind: str, name: str, settings: dict[str, Any], check: Check, tmp_path: Path) -> None:
    required = required_settings(name, tmp_path) or REQUIRED.get(name, {})
    check(plugins.build(kind, name, {**required, **settings}))


def required_settings(name: str, folder: Path) -> dict[str, Any]:
    """Those that name a place on a disk."""
    if name == "parquet":
        return {"attempt_dir": folder, "id": "0123456789ab"}
    if name == "profiler":
        return {"folder": str(folder)}
    if name == "checkpoint_saver":
        return {"folder": str(folder), "save_interval": "1ba"}
    if name == "load_checkpoint":
        train(callbacks=[CheckpointSaver(folder=str(folder), weights_only=True)])
        return {"path": folder}
    return {}


def test_every_kind_has_a_suite_of_its_own() -> None:
    for kind in KINDS:
        assert len(checks(kind)) > len(checks("sections"))


def test_every_class_is_found_by_its_name_too() -> None:
    for kind in KINDS:
        for name in plugins.names(kind):
            cls = plugins.load(kind, name)
            assert getattr(importlib.import_module(f"expkit.{kind}"), cls.__name__) is cls
