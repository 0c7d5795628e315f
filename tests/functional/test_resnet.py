from __future__ import annotations

import pytest
import torch
from torch import nn

from expkit.functional.resnet import ResNet, init_weights


@pytest.mark.parametrize("depth", [8, 14, 20])
def test_depth_counts_layers_with_weights_beside_the_shortcuts(depth: int) -> None:
    model = ResNet(depth, 8, 1, 10, 3)
    layers = [n for n, m in model.named_modules() if isinstance(m, (nn.Conv2d, nn.Linear)) and "shortcut" not in n]
    assert len(layers) == depth


def test_size_of_the_smallest_by_hand() -> None:
    model = ResNet(8, 8, 2, 10, 1)
    stem = 9 * 8
    stages = 2 * 9 * 8 * 8 + (9 * 8 * 16 + 9 * 16 * 16 + 8 * 16) + (9 * 16 * 32 + 9 * 32 * 32 + 16 * 32)
    norms = 2 * (3 * 8 + 3 * 16 + 3 * 32)
    assert sum(p.numel() for p in model.parameters()) == stem + stages + norms + 32 * 10 + 10


@pytest.mark.parametrize("size", [1, 7, 28, 33])
def test_any_image_size_goes_in(size: int) -> None:
    model = ResNet(8, 4, 2, 10, 1).eval()
    assert model(torch.zeros(2, 1, size, size)).shape == (2, 10)


def test_shortcut_carries_the_input_where_the_branch_is_silent() -> None:
    model = ResNet(8, 4, 1, 10, 1).eval()
    block = model.stages[0]
    nn.init.zeros_(block.conv2.weight)
    x = torch.rand(1, 4, 5, 5)
    torch.testing.assert_close(block(x), x)


def test_weights_come_from_the_generator_alone() -> None:
    def weights(global_seed: int) -> torch.Tensor:
        torch.manual_seed(global_seed)
        model = ResNet(8, 4, 1, 10, 1)
        init_weights(model, torch.Generator().manual_seed(1))
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    assert torch.equal(weights(1), weights(2))
