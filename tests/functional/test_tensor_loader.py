from __future__ import annotations

import pytest
import torch

from expkit.functional.tensor_loader import TensorLoader


def loader(num_samples: int, batch_size: int, **settings: object) -> TensorLoader:
    samples = torch.arange(num_samples)
    return TensorLoader(samples.float(), samples, batch_size, **settings)  # type: ignore[arg-type]


def backwards(epoch: int) -> torch.Tensor:
    return torch.arange(9, -1, -1).roll(epoch)


def test_batches_in_the_order_of_their_epoch() -> None:
    batches = loader(10, 4, order=backwards)
    batches.set_epoch(1)
    assert [b[1].tolist() for b in batches] == [[0, 9, 8, 7], [6, 5, 4, 3], [2, 1]]
    assert len(batches) == 3 and batches.num_samples == 10 and batches.batch_size == 4
    assert [b[1].tolist() for b in loader(10, 4, drop_last=True)] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("num_samples", [8, 9, 10, 13])
@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_together_see_each_sample_once_and_step_by_step_what_one_rank_sees(
    num_samples: int, world_size: int, drop_last: bool
) -> None:
    def order(epoch: int) -> torch.Tensor:
        return torch.randperm(num_samples, generator=torch.Generator().manual_seed(epoch))

    whole = [b[1].tolist() for b in loader(num_samples, 4, order=order, drop_last=drop_last)]
    ranks = [
        loader(num_samples, 4, order=order, drop_last=drop_last, rank=r, world_size=world_size)
        for r in range(world_size)
    ]
    for step, parts in enumerate(zip(*ranks, strict=True)):
        assert sorted(i for part in parts for i in part[1].tolist()) == sorted(whole[step])
        sizes = [len(part[1]) for part in parts]
        assert max(sizes) - min(sizes) <= 1
    assert sum(rank.num_samples for rank in ranks) == sum(map(len, whole))
    assert {len(rank) for rank in ranks} == {len(whole)}


def test_a_batch_that_does_not_divide_is_shared_as_evenly_as_it_can_be() -> None:
    ranks = [loader(10, 5, rank=rank, world_size=2) for rank in range(2)]
    assert [rank.batch_size for rank in ranks] == [3, 2]
    assert [[b[1].tolist() for b in rank] for rank in ranks] == [[[0, 2, 4], [5, 7, 9]], [[1, 3], [6, 8]]]


def test_an_order_may_choose_some_of_the_samples() -> None:
    some = TensorLoader(
        torch.arange(10), torch.arange(10), 4, order=lambda epoch: torch.tensor([7, 1, 4, 9, 0]), num_samples=5
    )
    assert [b[1].tolist() for b in some] == [[7, 1, 4, 9], [0]] and some.num_samples == 5 and len(some) == 2


def test_tokens_are_counted_where_inputs_are_sequences_of_ids() -> None:
    ids = torch.zeros(10, 3, dtype=torch.int64)
    assert TensorLoader(ids, ids, 4, rank=1, world_size=2).num_tokens == 5 * 3
    assert TensorLoader(ids.float(), ids, 4).num_tokens == 0
    assert loader(10, 4).num_tokens == 0
