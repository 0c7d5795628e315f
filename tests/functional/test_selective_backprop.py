from __future__ import annotations

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from expkit import plugins
from expkit.functional.losses import soft_cross_entropy
from expkit.functional.selective_backprop import is_due, losses_of, percentiles, score, select, shrink


@pytest.mark.parametrize(
    ("interrupt", "due"), [(0, [1, 1, 1, 1, 1, 1]), (1, [0] * 6), (2, [1, 0, 1, 0, 1, 0]), (3, [1, 1, 0, 1, 1, 0])]
)
def test_every_so_many_batches_one_is_whole_hand_computed(interrupt: int, due: list[int]) -> None:
    assert [is_due(0.6, batch, 0.5, 0.9, interrupt) for batch in range(6)] == due


def test_it_selects_from_start_to_before_end() -> None:
    assert [is_due(p, 0, 0.5, 0.9, 2) for p in (0.0, 0.49, 0.5, 0.89, 0.9, 1.0)] == [False, False, True, True] + [
        False
    ] * 2


def test_percentiles_hand_computed_with_ties_and_nan() -> None:
    assert percentiles(torch.tensor([3.0, 1.0, 4.0, 2.0])).tolist() == [0.625, 0.125, 0.875, 0.375]
    assert percentiles(torch.tensor([5.0, 5.0])).tolist() == [0.25, 0.75]
    assert percentiles(torch.tensor([0.0, torch.nan, torch.inf, 1e30])).tolist() == [0.375, 0.125, 0.875, 0.625]


def test_how_often_a_sample_is_chosen_follows_its_percentile_to_the_power_of_the_paper() -> None:
    losses, rng = torch.tensor([0.1, 2.0, 0.5, 9.0]), torch.Generator().manual_seed(0)
    first = torch.zeros(4)
    for _ in range(8000):
        first[select(losses, 0.25, rng)] += 1  # one of four: the chance itself, exponent 1 / keep - 1 = 3
    expected = torch.tensor([1.0, 5.0, 3.0, 7.0]) ** 3
    torch.testing.assert_close(first / 8000, expected / expected.sum(), atol=0.02, rtol=0)


@given(st.integers(1, 40), st.floats(0.01, 1))
def test_so_many_are_chosen_in_their_order_and_never_none(num_samples: int, keep: float) -> None:
    chosen = select(torch.randn(num_samples), keep, torch.Generator().manual_seed(0)).tolist()
    assert chosen == sorted(set(chosen))
    assert len(chosen) == max(1, int(num_samples * keep + 1e-9))


def test_losses_are_those_of_each_sample_alone_whatever_the_loss_takes() -> None:
    def own(outputs: Tensor, targets: Tensor) -> Tensor:
        return soft_cross_entropy(outputs, targets)

    rng = torch.Generator().manual_seed(0)
    for shape in ((6,), (6, 5)):
        outputs = torch.randn(6, 3, *shape[1:], generator=rng)
        targets = torch.randint(3, shape, generator=rng)
        alone = torch.stack([soft_cross_entropy(o, t) for o, t in zip(outputs.split(1), targets.split(1), strict=True)])
        torch.testing.assert_close(losses_of(soft_cross_entropy, outputs, targets), alone)
        torch.testing.assert_close(losses_of(own, outputs, targets), alone)


def test_scoring_leaves_statistics_modes_gradients_and_generators_as_they_were() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    model[1].eval()  # somebody froze it
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    inputs, targets = torch.randn(6, 4), torch.arange(6) % 3
    torch.set_rng_state(state)
    whole = score(model, soft_cross_entropy, inputs, targets)
    torch.testing.assert_close(score(model, soft_cross_entropy, inputs, targets, size=4), whole)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert [module.training for module in model] == [True, False, True, True]
    assert torch.equal(torch.get_rng_state(), state)
    assert not whole.requires_grad


def test_images_may_be_scored_small_and_nothing_else_may() -> None:
    images = torch.ones(2, 1, 28, 28)
    assert shrink(images, 0.5).shape == (2, 1, 14, 14)
    assert shrink(images, 0.01).shape == (2, 1, 1, 1)
    assert shrink(images, 1) is images
    with pytest.raises(ValueError, match=r"inputs are \[2, 5\]; use 1"):
        shrink(torch.zeros(2, 5), 0.5)


@pytest.mark.parametrize(("name", "inputs"), [("resnet", (4, 3, 16, 16)), ("mlp", (4, 784)), ("gpt", (4, 128))])
def test_shipped_models_give_the_losses_of_all_samples_in_one_call(name: str, inputs: tuple[int, ...]) -> None:
    module = plugins.build("models", name, {}).build()  # type: ignore[attr-defined]
    given = torch.zeros(inputs, dtype=torch.long) if name == "gpt" else torch.randn(inputs)
    outputs = module.eval()(given).detach()
    targets = torch.randint(outputs.shape[1], outputs.shape[:1] + outputs.shape[2:])
    losses = losses_of(module.loss, outputs, targets)
    assert losses.shape == (4,)
    torch.testing.assert_close(losses.mean(), module.loss(outputs, targets))
    assert "reduction" in inspect.signature(module.loss).parameters
