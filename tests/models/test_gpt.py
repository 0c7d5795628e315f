from __future__ import annotations

import pytest
import torch

from expkit import plugins
from expkit.errors import PluginError
from expkit.models.gpt import GPT


def test_settings_reach_the_module() -> None:
    plugin = plugins.build("models", "gpt", {"vocab_size": 7, "context_length": 5, "layers": 3, "heads": 4, "width": 8})
    module = plugin.build()  # type: ignore[attr-defined]
    assert module(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 7, 5)
    assert len(module.blocks) == 3 and module.blocks[0].attention.heads == 4


def test_a_width_that_heads_cannot_share_is_refused() -> None:
    with pytest.raises(PluginError, match="a multiple of the 3 heads, but got 64"):
        plugins.build("models", "gpt", {"heads": 3})


def test_dropout_is_a_capability_only_where_something_is_dropped() -> None:
    assert "dropout" in GPT(dropout=0.1).capabilities()
    assert GPT().capabilities() == {"attention", "layernorm", "embeddings", "sequences", "soft_targets"}
