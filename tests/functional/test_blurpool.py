from __future__ import annotations

import pytest
import torch
from torch import nn

from expkit.functional.blurpool import BlurConv2d, BlurMaxPool2d, apply_blurpool, blur


def test_an_impulse_becomes_the_binomial_filter() -> None:
    image = torch.zeros(1, 1, 5, 5)
    image[0, 0, 2, 2] = 16
    assert blur(image)[0, 0, 1:4, 1:4].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    assert blur(image, 2)[0, 0].tolist() == [[0, 0, 0], [0, 4, 0], [0, 0, 0]]


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (7, 6)])
def test_a_constant_image_stays_constant_at_the_border_too(shape: tuple[int, int]) -> None:
    image = torch.full((2, 3, *shape), 0.3)
    torch.testing.assert_close(blur(image), image)
    assert blur(image, 2).shape[-2:] == tuple((side + 1) // 2 for side in shape)


def test_borders_are_reflected() -> None:
    row = torch.tensor([0.0, 4.0, 8.0, 16.0]).view(1, 1, 1, 4).expand(1, 1, 4, 4)
    assert blur(row)[0, 0, 0].tolist() == [2.0, 4.0, 9.0, 12.0]  # (4 + 2*0 + 4)/4, ..., (8 + 2*16 + 8)/4


CONVS = [
    {"kernel_size": 3, "stride": 2, "padding": 1, "padding_mode": "circular"},
    {"kernel_size": 3, "stride": 2, "padding": 2, "dilation": 2, "groups": 4},
    {"kernel_size": 1, "stride": 2, "bias": False},
    {"kernel_size": 5, "stride": (2, 3), "padding": (2, 1), "padding_mode": "reflect"},
]


@pytest.mark.parametrize("settings", CONVS)
@pytest.mark.parametrize("blur_first", [True, False])
def test_shape_settings_and_weights_of_a_convolution_stay(settings: dict[str, object], blur_first: bool) -> None:
    conv = nn.Conv2d(16, 16, **settings)  # type: ignore[arg-type]
    model = nn.Sequential(conv)
    images = torch.randn(2, 16, 11, 12, generator=torch.Generator().manual_seed(0))
    shape = model(images).shape
    keys = list(model.state_dict())
    assert apply_blurpool(model, blur_first=blur_first) == (1, 0)
    blurred = model[0]
    assert isinstance(blurred, BlurConv2d)
    assert blurred.weight is conv.weight and blurred.bias is conv.bias and list(model.state_dict()) == keys
    assert (blurred.padding_mode, blurred.groups, blurred.dilation) == (conv.padding_mode, conv.groups, conv.dilation)
    assert model(images).shape == shape
    if blur_first:
        torch.testing.assert_close(model(images), conv(blur(images)))
    else:
        conv.stride, stride = (1, 1), conv.stride
        torch.testing.assert_close(model(images), blur(conv(images), stride))  # type: ignore[arg-type]


def test_max_pool_is_a_stride_one_max_and_a_blur_that_subsamples() -> None:
    model = nn.Sequential(nn.MaxPool2d(3, stride=2, padding=1))
    images = torch.randn(1, 2, 9, 9, generator=torch.Generator().manual_seed(0))
    shape = model(images).shape
    assert apply_blurpool(model) == (0, 1)
    assert isinstance(model[0], BlurMaxPool2d)
    assert model(images).shape == shape
    torch.testing.assert_close(model(images), blur(nn.functional.max_pool2d(images, 3, 1, 1), 2))


def test_applying_it_twice_changes_nothing_more() -> None:
    model = nn.Sequential(nn.Conv2d(16, 16, 3, 2), nn.MaxPool2d(2))
    assert apply_blurpool(model) == (1, 1)
    modules = list(model.modules())
    assert apply_blurpool(model) == (0, 0)
    assert list(model.modules()) == modules


def test_few_channels_no_stride_indices_and_own_subclasses_are_left_alone() -> None:
    class Mine(nn.Conv2d):
        pass

    model = nn.Sequential(
        nn.Conv2d(8, 16, 3, 2), nn.Conv2d(16, 16, 3), Mine(16, 16, 3, 2), nn.MaxPool2d(3, 1),
        nn.MaxPool2d(2, return_indices=True), nn.MaxPool2d(2, ceil_mode=True),
    )  # fmt: skip
    assert apply_blurpool(model) == (0, 0)
    assert apply_blurpool(model, min_channels=8) == (1, 0)


def test_a_shift_of_the_image_changes_the_output_less() -> None:
    images = torch.randn(4, 16, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(16, 16, 3, 2, padding=1, padding_mode="circular"))

    @torch.no_grad()
    def moved() -> float:
        return float((model(images) - model(images.roll(1, -1))).std() / model(images).std())

    before = moved()
    apply_blurpool(model)
    assert moved() < 0.75 * before
