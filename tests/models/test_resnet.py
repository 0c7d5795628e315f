from __future__ import annotations

import pytest
import torch

from expkit import plugins
from expkit.errors import PluginError
from expkit.models.resnet import ResNet


@pytest.mark.parametrize("depth", [2, 7, 9, 18, -4])
def test_depths_that_are_not_6n_plus_2_are_refused_with_those_that_are(depth: int) -> None:
    with pytest.raises(ValueError, match=rf"\(8, 14, 20, \.\.\.\), but got {depth}"):
        ResNet(depth=depth)


@pytest.mark.parametrize("bad", [{"width": 0}, {"stem_stride": 0}, {"num_classes": 1}, {"in_channels": 0}])
def test_ranges(bad: dict[str, int]) -> None:
    with pytest.raises(PluginError, match=next(iter(bad))):
        plugins.build("models", "resnet", bad)


def test_the_class_is_found_by_its_name() -> None:
    import expkit.models

    assert expkit.models.ResNet is ResNet


def test_settings_reach_the_module() -> None:
    module = ResNet(depth=14, width=4, stem_stride=2, num_classes=7, in_channels=2).build()
    assert module(torch.zeros(3, 2, 9, 9)).shape == (3, 7)
    assert module.stem.stride == (2, 2) and len(module.stages) == 6 and module.stages[-1].conv2.out_channels == 16
