"""Durations: the grammar by table, arithmetic by property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expkit.duration import Time, Timestamp, TimeUnit


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2ep", "2ep"), ("0.125ep", "0.125ep"), ("500ba", "500ba"), ("3e4tok", "30000tok"), ("0.10dur", "0.1dur"),
        ("90m", "5400sec"), ("1h30m", "5400sec"), ("25h", "90000sec"), ("45s", "45sec"), ("2h5s", "7205sec"),
        ("0ba", "0ba"), ("1iter", "1iter"), ("1.5sec", "1.5sec"),
    ],
)  # fmt: skip
def test_each_form_has_one_canonical_spelling(text: str, canonical: str) -> None:
    assert str(Time.parse(text)) == canonical
    assert Time.parse(canonical) == Time.parse(text)


@pytest.mark.parametrize("text", ["", "5", "10m5", "2h5", "h", "1.5ba", "-1ep", "1 ep", "1_000ba", "nanep", "1ep2ba"])
def test_a_bare_number_or_half_a_clock_is_refused_and_not_read_as_seconds(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|whole numbers"):
        Time.parse(text)


@given(st.integers(0, 10**9), st.sampled_from(list(TimeUnit)))
def test_writing_and_reading_agree(value: int, unit: TimeUnit) -> None:
    assert Time.parse(str(Time(float(value), unit))) == Time(float(value), unit)


@given(st.floats(0.01, 1e6), st.sampled_from([TimeUnit.EPOCH, TimeUnit.DURATION, TimeUnit.SECOND]))
def test_fractions_survive_writing(value: float, unit: TimeUnit) -> None:
    assert Time.parse(str(Time(value, unit))) == Time(value, unit)


def test_the_schedule_ratio_scales_counts_to_at_least_one_and_leaves_shares_alone() -> None:
    assert str(Time.parse("12ba").scaled(0.25)) == "3ba"
    assert str(Time.parse("1ba").scaled(0.25)) == "1ba"
    assert str(Time.parse("0ba").scaled(2)) == "0ba"
    assert str(Time.parse("2ep").scaled(0.25)) == "0.5ep"
    assert str(Time.parse("0.3dur").scaled(0.25)) == "0.3dur"


def test_a_moment_counts_on() -> None:
    moment = Timestamp().to_next_batch(128, 0, 0.5).to_next_batch(64, 0, 0.75)
    assert (moment.batch, moment.sample, moment.batch_in_epoch, moment.train_s) == (2, 192, 2, 0.75)
    after = moment.to_next_epoch()
    assert (after.epoch, after.batch, after.batch_in_epoch, after.sample_in_epoch) == (1, 2, 0, 0)
    assert after.get(TimeUnit.SAMPLE) == 192
    with pytest.raises(ValueError, match="progress"):
        after.get(TimeUnit.DURATION)
