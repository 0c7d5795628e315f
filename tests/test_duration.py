"""Durations: the grammar by table, arithmetic by property."""

import re
from typing import Any

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
def test_a_bare_number_or_half_a_clock_is_refused_and_not_read_as_seconds_defect_D7(text: str) -> None:
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


@pytest.mark.parametrize(
    ("result", "canonical"),
    [
        (lambda t: t("2ep") + t("0.5ep"), "2.5ep"), (lambda t: t("0.1dur") + t("0.2dur"), "0.3dur"),
        (lambda t: t("2ep") + "90ep", "92ep"), (lambda t: t("90m") - t("1h"), "1800sec"),
        (lambda t: t("0.3dur") - t("0.1dur"), "0.2dur"), (lambda t: t("3ba") - t("3ba"), "0ba"),
        (lambda t: t("7ba") % t("3ba"), "1ba"), (lambda t: t("0.7ep") % t("0.1ep"), "0ep"),
        (lambda t: t("3ba") * 2, "6ba"), (lambda t: 0.1 * t("30ba"), "3ba"), (lambda t: t("3ba") * 0.5, "2ba"),
        (lambda t: t("0.1dur") * t("200ba"), "20ba"), (lambda t: t("2ep") * t("0.25dur"), "0.5ep"),
        (lambda t: t("0.7dur") * t("10ba"), "7ba"), (lambda t: t("0.5dur") * t("0.5dur"), "0.25dur"),
        (lambda t: t("7ba") / 2, "4ba"), (lambda t: t("1ep") / 4, "0.25ep"),
        (lambda t: t("20ba") / t("200ba"), "0.1dur"), (lambda t: t("0.1dur") / t("0.4dur"), "0.25dur"),
        (lambda t: t("3sec") / "6s", "0.5dur"),
    ],
)  # fmt: skip
def test_arithmetic_is_that_of_the_decimals_as_written(result: Any, canonical: str) -> None:
    assert str(result(Time.parse)) == canonical


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda t: t("2ep") < t("500ba"), "2ep is not comparable with 500ba: ep and ba are different units"),
        (lambda t: t("2ep") + t("1dur"), "2ep cannot be added to 1dur: ep and dur are different units"),
        (lambda t: t("2ep") - t("1ba"), "2ep cannot be reduced by 1ba: ep and ba are different units"),
        (lambda t: t("2ep") % t("1ba"), "2ep cannot be divided by 1ba"),
        (lambda t: t("2ep") / t("1ba"), "2ep cannot be divided by 1ba"),
        (lambda t: t("2ep") * t("1ep"), "2ep times 1ep means nothing; one of them is a number or a share in dur"),
        (lambda t: t("2ep") - t("3ep"), "not negative, but got -1.0ep"),
        (lambda t: t("2ep") * -1, "not negative"),
        (lambda t: t("2ba") * float("nan"), "finite numbers, but got nan"),
        (lambda t: t("2ba") * True, "finite numbers, but got True"),
        (lambda t: t("2ep") < 3, "3 is not a duration"),
        (lambda t: t("2ep") + 3, "3 is not a duration"),
        (lambda t: t("2ep") + "3", "'3' is not a duration"),
        (lambda t: t("2ep") >= None, "None is not a duration"),
        (lambda t: Timestamp() < t("0.5dur"), "ask the state for its progress"),
    ],
)  # fmt: skip
def test_between_units_and_with_bare_numbers_there_is_no_arithmetic(wrong: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        wrong(Time.parse)


@pytest.mark.parametrize("divide", [lambda a, b: a / b, lambda a, b: a % b, lambda a, b: a / 0])
def test_nothing_is_divided_by_nothing(divide: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="2ep cannot be divided by nothing"):
        divide(Time.parse("2ep"), Time.parse("0ep"))


def test_spans_of_different_units_are_unequal_and_equal_ones_count_once_in_a_set() -> None:
    assert Time.parse("1ep") != Time.parse("1ba")
    assert len({Time.parse("90m"), Time.parse("1h30m"), Time.parse("5400sec")}) == 1


DECIMALS = st.decimals(0, 10**6, places=4).map(float)
WHOLE = st.integers(0, 10**9).map(float)
PAIRS = st.one_of(
    st.tuples(WHOLE, WHOLE, st.sampled_from(list(TimeUnit))),
    st.tuples(DECIMALS, DECIMALS, st.sampled_from([TimeUnit.EPOCH, TimeUnit.DURATION, TimeUnit.SECOND])),
)


@given(PAIRS)
def test_laws_of_arithmetic(pair: tuple[float, float, TimeUnit]) -> None:
    a, b = Time(pair[0], pair[2]), Time(pair[1], pair[2])
    assert a + b == b + a
    assert (a + b) - b == a
    assert (a < b, a <= b, a > b, a >= b) == (
        a.value < b.value, a.value <= b.value, a.value > b.value, a.value >= b.value)  # fmt: skip
    assert sorted([a, b]) == [Time(v, a.unit) for v in sorted([a.value, b.value])]
    assert a * 2 == a + a
    assert a * Time.parse("1dur") == a
    if b.value:
        assert a % b < b
        share = a / b
        assert share.unit is TimeUnit.DURATION
        assert (share * b).value == pytest.approx(a.value, rel=1e-12, abs=1e-9)


def test_a_moment_is_compared_by_its_counter() -> None:
    moment = Timestamp(epoch=2, batch=126, train_s=90.0)
    assert Time.parse("2ep") <= moment < Time.parse("3ep")
    assert moment >= Time.parse("126ba")
    assert not moment > Time.parse("90s")


def test_a_moment_counts_on() -> None:
    moment = Timestamp().to_next_batch(128, 0, 0.5).to_next_batch(64, 0, 0.75)
    assert (moment.batch, moment.sample, moment.batch_in_epoch, moment.train_s) == (2, 192, 2, 0.75)
    after = moment.to_next_epoch()
    assert (after.epoch, after.batch, after.batch_in_epoch, after.sample_in_epoch) == (1, 2, 0, 0)
    assert after.get(TimeUnit.SAMPLE) == 192
    with pytest.raises(ValueError, match="progress"):
        after.get(TimeUnit.DURATION)
