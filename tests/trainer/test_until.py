"""How long to train: `duration` is so much more, `until` is a place that is reached once."""

from __future__ import annotations

import re

import pytest
import torch

from expkit.errors import UsageError
from tests.trainer.doubles import Memory, batches, net, recorder, trainer, weights


@pytest.mark.parametrize("until", ["3ep", "12ba", "72sp"])
def test_until_is_counted_from_the_start_of_training(until: str) -> None:
    t = trainer(max_duration="1.5ep")
    t.fit()
    t.fit(until=until)
    assert t.state.timestamp.batch == 12


@pytest.mark.parametrize("until", ["2ep", "8ba", "3ba", "1ep", "48sp", "0.001sec"])
def test_until_again_does_nothing_and_says_so(until: str) -> None:
    """composer#3357: fit(duration=...) of a run that was resumed trained the whole duration again."""
    listener = recorder()
    t = trainer(max_duration="2ep", callbacks=[listener])
    t.fit()
    before, seen, end = weights(t), list(listener.seen), t.state.max_duration
    with pytest.warns(UserWarning, match=rf"fit\(until={until}\) does nothing: .* epoch 2, batch 8"):
        t.fit(until=until)
    assert torch.equal(weights(t), before)
    assert listener.seen == seen
    assert t.state.max_duration == end


def test_until_is_the_max_duration_of_schedules_too() -> None:
    def rates(t) -> list[float]:
        return [t.lr_at(k) for k in range(12)]

    class Linear:
        def __call__(self, step: int) -> float:
            return 1 - step / 20

    whole = trainer(max_duration="3ep", schedulers=Linear())
    whole.fit()
    parts = trainer(max_duration="1ba", schedulers=Linear())
    parts.fit()
    parts.fit(until="5ba")
    parts.fit(until="3ep")
    assert rates(parts) == rates(whole)
    assert torch.equal(weights(parts), weights(whole))
    assert parts.state.progress == 1.0


def test_until_scales_as_max_duration_does() -> None:
    t = trainer(max_duration="2ep", ssr=0.5)
    t.fit()
    t.fit(until="4ep")
    assert t.state.timestamp.batch == 8


def test_duration_and_until_together_are_refused() -> None:
    with pytest.raises(UsageError, match="duration or until, but not both: duration=1ep, until=2ep"):
        trainer().fit("1ep", until="2ep")


@pytest.mark.parametrize(
    ("until", "says"), [("0ep", "until must be positive"), ("1dur", "got 1dur"), ("5", "until: '5'")]
)
def test_what_is_no_length_is_refused(until: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        trainer().fit(until=until)


@pytest.mark.parametrize(("subset", "steps"), [(1, 2), (3, 6), (4, 8), (9, 8)])
def test_an_epoch_may_be_a_subset_of_the_loader(subset: int, steps: int) -> None:
    memory = Memory()
    t = trainer(train_dataloader=batches(4, last=3), train_subset_num_batches=subset, loggers=[memory])
    t.fit()
    assert (t.state.timestamp.batch, t.state.timestamp.epoch) == (steps, 2)
    assert t.state.timestamp.sample == 2 * (21 if subset >= 4 else 6 * subset)
    assert t.state.steps_per_epoch == min(subset, 4)


@pytest.mark.parametrize(("duration", "steps"), [("12sp", 2), ("13sp", 3), ("18sp", 3), ("30sp", 5)])
def test_samples_are_those_of_the_subset(duration: str, steps: int) -> None:
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*batches(1, 40)[0]), 6)
    t = trainer(train_dataloader=data, train_subset_num_batches=3, max_duration=duration)
    t.fit()
    assert t.state.timestamp.batch == steps


def test_a_shuffled_loader_gives_other_batches_each_epoch_and_the_first_of_each() -> None:
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*batches(1, 24)[0]), 6, shuffle=True)
    whole, part = trainer(net(), train_dataloader=data, max_duration="2ba"), trainer(
        net(), train_dataloader=data, train_subset_num_batches=2, max_duration="1ep"
    )  # fmt: skip
    whole.fit()
    part.fit()
    assert torch.equal(weights(whole), weights(part))


def test_a_loader_without_a_length_needs_a_subset() -> None:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            inputs, targets = batches(1, 1000)[0]
            return iter(list(zip(inputs, targets, strict=True)))

    data = torch.utils.data.DataLoader(Stream(), 6)
    with pytest.raises(UsageError, match=r"needs a length.*train_subset_num_batches"):
        trainer(train_dataloader=data)
    t = trainer(train_dataloader=data, train_subset_num_batches=5)
    t.fit()
    assert (t.state.timestamp.batch, t.state.timestamp.sample) == (10, 60)


@pytest.mark.parametrize("subset", [0, -1])
def test_a_subset_of_nothing_is_refused(subset: int) -> None:
    with pytest.raises(UsageError, match=re.escape(f"at least 1, or None for all, but got {subset}")):
        trainer(train_subset_num_batches=subset)


@pytest.mark.parametrize(
    ("given", "says"),
    [(0, "must be positive"), ("0s", "must be positive"), ("5ba", "in seconds or as 90s"), ("5", "not a duration"),
     (-1, "must be positive")],
)  # fmt: skip
def test_a_timeout_that_is_none_is_refused(given: float | str, says: str) -> None:
    with pytest.raises(UsageError, match=f"dist_timeout.*{says}"):
        trainer(dist_timeout=given)


@pytest.mark.parametrize("given", [1, 0.5, "5m", "90s", "1h30m"])
def test_a_timeout_is_a_number_of_seconds_or_a_clock_time(given: float | str) -> None:
    trainer(dist_timeout=given, max_duration="1ba").fit()
