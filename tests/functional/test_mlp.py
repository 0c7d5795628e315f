from __future__ import annotations

import torch

from expkit.functional.mlp import MLP


def test_layers_by_hand() -> None:
    model = MLP(12, (5, 3), 2)
    assert sum(p.numel() for p in model.parameters()) == 12 * 5 + 5 + 5 * 3 + 3 + 3 * 2 + 2
    assert model(torch.zeros(4, 1, 3, 4)).shape == (4, 2)
    assert sum(p.numel() for p in MLP(12, (), 2).parameters()) == 12 * 2 + 2


def test_dropout_stands_only_where_it_drops() -> None:
    names = [type(m).__name__ for m in MLP(4, (3,), 2, dropout=0.5).layers]
    assert names == ["Flatten", "Linear", "ReLU", "Dropout", "Linear"]
    assert "Dropout" not in [type(m).__name__ for m in MLP(4, (3,), 2).layers]
