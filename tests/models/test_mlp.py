from __future__ import annotations

import torch

from expkit import plugins
from expkit.models.mlp import MLP


def test_settings_reach_the_module_also_from_a_files_list() -> None:
    plugin = plugins.build("models", "mlp", {"num_inputs": 6, "hidden": [5, 4], "num_classes": 3})
    assert isinstance(plugin, MLP) and plugin.hidden == (5, 4)
    assert plugin.build()(torch.zeros(2, 1, 2, 3)).shape == (2, 3)


def test_dropout_is_a_capability_only_where_something_is_dropped() -> None:
    assert "dropout" in MLP(dropout=0.1).capabilities()
    assert "dropout" not in MLP().capabilities()
    assert "dropout" not in MLP(dropout=0.1, hidden=()).capabilities()
    assert "images" not in MLP().capabilities()
