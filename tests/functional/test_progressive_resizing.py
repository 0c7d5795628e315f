from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from expkit.functional.progressive_resizing import crop, crop_corner, resize, resize_labels, scale_at, size_at


@pytest.mark.parametrize(
    ("progress", "scale"),
    [(0.0, 0.5), (0.25, 0.5), (0.5, 0.5), (0.575, 0.625), (0.65, 0.75), (0.725, 0.875), (0.8, 1.0), (1.0, 1.0)],
)
def test_scale_hand_computed(progress: float, scale: float) -> None:
    assert scale_at(progress, 0.5, delay_fraction=0.5, finetune_fraction=0.2) == pytest.approx(scale)


@pytest.mark.parametrize("finetune", [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])
def test_delay_plus_finetune_of_one_divides_by_nothing_defect_D16(finetune: float) -> None:
    for percent in range(101):
        progress = percent / 100
        scale = scale_at(progress, 0.5, delay_fraction=1 - finetune, finetune_fraction=finetune)
        assert scale == (1.0 if progress >= 1 - finetune else 0.5)


@given(*[st.floats(0, 1) for _ in range(4)])
def test_scale_never_falls_and_stays_in_bounds(initial: float, delay: float, finetune: float, at: float) -> None:
    finetune = min(finetune, 1 - delay)
    scales = [scale_at(p, initial, delay, finetune) for p in (0.0, at / 2, at, 1.0)]
    assert all(min(initial, 1.0) <= s <= 1.0 for s in scales)
    assert scales == sorted(scales)


@pytest.mark.parametrize(
    ("size", "scale", "increment", "expected"),
    [(28, 0.5, 4, 16), (28, 0.43, 4, 12), (28, 0.99, 4, 28), (28, 0.5, 1, 14), (30, 0.97, 4, 28), (30, 1.0, 4, 30),
     (28, 0.01, 4, 4), (3, 0.5, 4, 3), (224, 0.5, 16, 112)],
)  # fmt: skip
def test_size_is_a_multiple_of_the_increment_and_whole_images_are_not_rounded(
    size: int, scale: float, increment: int, expected: int
) -> None:
    assert size_at(size, scale, increment) == expected


def test_a_constant_image_stays_constant_and_a_checkerboard_becomes_grey() -> None:
    constant = resize(torch.full((1, 1, 28, 28), 0.7), 16, 16)
    torch.testing.assert_close(constant, torch.full((1, 1, 16, 16), 0.7))
    checkerboard = ((torch.arange(28).view(-1, 1) + torch.arange(28)) % 2).float().view(1, 1, 28, 28)
    middle = resize(checkerboard, 14, 14)[..., 1:-1, 1:-1]
    torch.testing.assert_close(middle, torch.full_like(middle, 0.5))  # nearest would give black or white


def test_labels_keep_their_ids() -> None:
    labels = torch.tensor([[[0, 0, 7, 7], [0, 0, 7, 7], [3, 3, 9, 9], [3, 3, 9, 9]]])
    assert resize_labels(labels, 2, 2).tolist() == [[[0, 7], [3, 9]]]
    assert resize_labels(labels.unsqueeze(1), 2, 2).shape == (1, 1, 2, 2)


def test_crop_corners_cover_all_that_fit_and_a_whole_window_has_one() -> None:
    rng = torch.Generator().manual_seed(0)
    corners = {crop_corner(4, 5, 3, 3, rng) for _ in range(200)}
    assert corners == {(top, left) for top in range(2) for left in range(3)}
    assert crop_corner(4, 5, 4, 5, rng) == (0, 0)
    assert crop(torch.arange(12).view(1, 1, 3, 4), 1, 2, 2, 2).tolist() == [[[[6, 7], [10, 11]]]]
