from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from expkit.functional.cutmix import Box, draw_box, draw_mix, paste


def test_pasting_hand_computed_and_the_given_images_stay() -> None:
    images = torch.arange(24.0).view(2, 1, 3, 4)
    pasted = paste(images, torch.tensor([1, 0]), Box(1, 1, 3, 3))
    assert pasted[0, 0].tolist() == [[0, 1, 2, 3], [4, 17, 18, 7], [8, 21, 22, 11]]
    assert pasted[1, 0].tolist() == [[12, 13, 14, 15], [16, 5, 6, 19], [20, 9, 10, 23]]
    assert torch.equal(images, torch.arange(24.0).view(2, 1, 3, 4))


def test_a_quarter_of_the_image_is_a_quarter_of_the_target_defect_D13() -> None:
    box = Box(0, 0, 4, 4)  # sides of half the image: lambda is 3/4; Composer's `length` makes it 1/4
    assert box.share_of(8, 8) == 0.25


@given(st.integers(1, 30), st.integers(1, 30), st.floats(0, 1), st.booleans(), st.integers(0, 1000))
def test_the_share_is_the_area_really_cut_also_where_the_border_cuts_the_box_defect_D13(
    height: int, width: int, share: float, uniform: bool, seed: int
) -> None:
    box = draw_box(height, width, share, uniform, torch.Generator().manual_seed(seed))
    ours, theirs = torch.zeros(2, 1, height, width), torch.tensor([1, 0])
    ours[1] = 1
    assert paste(ours, theirs, box)[0].mean().item() == pytest.approx(box.share_of(height, width), abs=1e-6)
    assert box.share_of(height, width) <= share + 1e-9


def test_the_mix_carries_the_area_not_the_draw_defect_D13() -> None:
    images, rng = torch.zeros(4, 1, 8, 8), torch.Generator().manual_seed(0)
    for _ in range(50):
        by, box = draw_mix(images, 1.0, False, rng)
        assert by.share == box.share_of(8, 8) == (box.bottom - box.top) * (box.right - box.left) / 64


def test_alpha_zero_cuts_nothing_where_composer_cuts_most_of_the_image_defect_D13() -> None:
    images = torch.randn(4, 1, 8, 8)
    by, box = draw_mix(images, 0.0, False, torch.Generator())
    assert by.share == 0
    assert torch.equal(paste(images, by.partners, box), images)


def covered(uniform: bool) -> torch.Tensor:
    """How often each pixel of an 8x8 image lies in a box of 4x4."""
    rng, counts = torch.Generator().manual_seed(0), torch.zeros(8, 8)
    for _ in range(6000):
        box = draw_box(8, 8, 0.25, uniform, rng)
        counts[box.top : box.bottom, box.left : box.right] += 1
    return counts / 6000


def test_every_pixel_is_equally_likely_where_uniform_and_the_middle_is_likelier_as_in_the_paper() -> None:
    torch.testing.assert_close(covered(uniform=True), torch.full((8, 8), (4 / 11) ** 2), atol=0.025, rtol=0)
    paper = covered(uniform=False)
    assert paper[4, 4] == pytest.approx((4 / 8) ** 2, abs=0.03)
    assert paper[0, 0] == pytest.approx((3 / 8) ** 2, abs=0.03)  # centres 0, 1, 2 of eight reach it


def test_channels_last_images_stay_so() -> None:
    images = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    pasted = paste(images, torch.tensor([1, 0]), Box(0, 0, 4, 4))
    assert pasted.is_contiguous(memory_format=torch.channels_last)
