"""N sequences, T places, C characters."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from expkit.functional.gpt import GPT, init_weights
from expkit.functional.label_smoothing import smooth
from expkit.functional.losses import one_hot
from expkit.functional.metrics import CrossEntropy


def made(dropout: float = 0.0) -> GPT:
    module = GPT(vocab_size=11, context_length=6, layers=2, heads=2, width=8, dropout=dropout)
    init_weights(module, torch.Generator().manual_seed(1))
    return module


def some_ids(length: int = 6) -> Tensor:
    return torch.randint(11, (3, length), generator=torch.Generator().manual_seed(2))


def test_no_place_sees_what_comes_after_it() -> None:
    module, ids_NT = made(), some_ids()
    changed_NT = ids_NT.clone()
    changed_NT[:, 4] = (changed_NT[:, 4] + 1) % 11
    before_NCT, after_NCT = module(ids_NT), module(changed_NT)
    torch.testing.assert_close(before_NCT[..., :4], after_NCT[..., :4])
    assert not torch.allclose(before_NCT[..., 4], after_NCT[..., 4])
    assert not torch.allclose(before_NCT[..., 5], after_NCT[..., 5])  # and every place sees those before it


def test_a_shorter_sequence_is_answered_as_the_beginning_of_a_longer_one() -> None:
    module, ids_NT = made(), some_ids()
    for length in (1, 3, 5):
        torch.testing.assert_close(module(ids_NT[:, :length]), module(ids_NT)[..., :length])
    with pytest.raises(ValueError, match="up to 6 places, but these have 7"):
        module(some_ids(7))


def test_untrained_it_guesses_and_the_loss_is_the_log_of_the_vocabulary() -> None:
    module, ids_NT = made(), some_ids()
    assert module.loss(module(ids_NT), ids_NT.roll(1)).item() == pytest.approx(math.log(11), abs=0.3)


def test_the_loss_is_a_mean_over_tokens_for_ids_and_for_smoothed_targets() -> None:
    module, ids_NT = made(), some_ids()
    targets_NT = ids_NT.roll(-1, dims=1)
    logits_NCT = 5 * module(ids_NT)
    by_hand = [-logits_NCT[n].log_softmax(0)[targets_NT[n, t], t] for n in range(3) for t in range(6)]
    expected = torch.stack(by_hand).mean()
    torch.testing.assert_close(module.loss(logits_NCT, targets_NT), expected)
    torch.testing.assert_close(module.loss(logits_NCT, targets_NT, "none").flatten(), torch.stack(by_hand))
    torch.testing.assert_close(module.loss(logits_NCT, one_hot(targets_NT, 11)), expected)
    uniform = -logits_NCT.log_softmax(1).mean()
    smoothed = smooth(logits_NCT, targets_NT, 0.2)
    torch.testing.assert_close(module.loss(logits_NCT, smoothed), 0.8 * expected + 0.2 * uniform)


def test_metrics_weigh_tokens_whatever_the_length_of_their_sequences() -> None:
    module, ids_NT = made(), some_ids()
    metrics = module.metrics()
    assert isinstance(metrics["cross_entropy"], CrossEntropy)
    for length in (6, 1):
        for metric in metrics.values():
            metric.update(module(ids_NT[:, :length]).detach(), ids_NT[:, :length])
    whole, first = (module.loss(module(ids_NT[:, :n]), ids_NT[:, :n]).item() for n in (6, 1))
    assert metrics["cross_entropy"].compute() == pytest.approx((18 * whole + 3 * first) / 21)
    hits = sum(int((module(ids_NT[:, :n]).argmax(1) == ids_NT[:, :n]).sum()) for n in (6, 1))
    assert metrics["accuracy"].compute() == pytest.approx(hits / 21)


def test_input_and_output_share_their_weights_and_init_draws_from_the_generator_only() -> None:
    assert {"tokens.weight", "places.weight"} <= dict(made().named_parameters()).keys()
    assert not any("head" in name for name, _ in made().named_parameters())

    def weights(global_seed: int) -> Tensor:
        torch.manual_seed(global_seed)
        return torch.cat([p.detach().flatten() for p in made().parameters()])

    assert torch.equal(weights(1), weights(2))


def test_dropout_drops_in_training_only() -> None:
    module, ids_NT = made(dropout=0.5), some_ids()
    assert not torch.equal(module(ids_NT), module(ids_NT))
    module.eval()
    torch.testing.assert_close(module(ids_NT), made()(ids_NT))
