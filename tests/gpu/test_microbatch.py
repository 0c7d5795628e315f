"""Microbatches on a device: a batch in parts is the batch in one, but for rounding."""

from __future__ import annotations

import pytest
import torch

from tests.gpu.test_trainer import trained
from tests.trainer.doubles import batches, weights


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_batch_in_parts_is_the_batch_in_one(size: int, device: str) -> None:
    data = batches(4, 6, last=5)
    whole, parts = (trained(device, train_dataloader=data, device_train_microbatch_size=s) for s in (None, size))
    assert torch.allclose(weights(whole), weights(parts), atol=1e-6)
    assert whole.state.train_loss == pytest.approx(parts.state.train_loss, rel=1e-5)


def test_auto_changes_nothing_where_everything_fits(device: str) -> None:
    whole, auto = (trained(device, deterministic_mode=True, device_train_microbatch_size=s) for s in (None, "auto"))
    assert auto.microbatch_size_found is None
    assert torch.equal(weights(whole), weights(auto))
