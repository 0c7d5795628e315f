"""Ranges of a recipe hold when the file is read, not when its trial fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.errors import SpecError
from expkit.spec.files import load_recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "fashion_resnet.yaml"


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("trainer.max_duration=0ep", "must be positive, in ep, ba, sp, tok or sec, but got 0ep"),
        ("trainer.max_duration=1dur", "must be positive, in ep, ba, sp, tok or sec, but got 1dur"),
        ("trainer.eval_interval=0ba", "must be positive, but got 0ba"),
        ("trainer.ssr=.inf", "trainer.ssr"),
        ("optimizer.sgd.lr=.inf", "optimizer.sgd.lr"),
        ("optimizer.sgd.lr=.nan", "optimizer.sgd.lr"),
    ],
)
def test_a_value_that_no_training_can_have_is_refused_at_its_line(override: str, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        load_recipe(RECIPE, overrides=[override])
    assert sentence in str(refused.value)
    assert str(refused.value).startswith("--set:1:")
