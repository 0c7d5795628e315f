"""Timing: validity, noise, where the time went."""

from __future__ import annotations

from dataclasses import replace

from expkit.report.blocks import Chart, Table, Text
from expkit.sections.timing import Timing
from tests.report.example_summary import example


def test_validity_reasons_noise_and_seconds() -> None:
    text, reasons, noise, chart = Timing().blocks(example())
    assert isinstance(text, Text) and text.text == "The timing of 42 of 44 complete replicates is valid."
    assert isinstance(reasons, Table)
    assert (reasons.rows[0]["reason"].text, reasons.rows[0]["replicates"].text) == ("contention", "2")
    assert isinstance(noise, Table)
    assert (noise.rows[0]["ratio"].text, noise.rows[0]["eps"].text) == ("1.004 [0.989, 1.019]", "2.12")
    assert isinstance(chart, Chart) and [e.label for e in chart.legend] == ["train", "eval", "setup"]
    assert chart.caption.startswith("Arithmetic means over complete replicates, n = 4 to 10;")
    assert chart.caption.endswith("eval and setup are not on the training clock.")


def test_parts_of_the_training_time_add_up_to_it() -> None:
    base = example()
    trials = tuple(replace(t, train_s=4.0, parts={"forward": 1.0, "backward": 2.0}) for t in base.trials[:1])
    *_, chart = Timing().blocks(replace(base, trials=trials))
    assert isinstance(chart, Chart)
    shown = {row["part"]: row["to"] - row["from"] for row in chart.spec["data"]["values"]}
    assert (shown["forward"], shown["backward"], shown["other"]) == (1.0, 2.0, 1.0)
    assert [e.label for e in chart.legend] == ["forward", "backward", "other", "eval", "setup"]


def test_all_valid_is_one_sentence() -> None:
    base = example()
    trials = tuple(replace(t, timing_valid=True, timing_reasons=()) for t in base.trials)
    text, noise, *_ = Timing().blocks(replace(base, trials=trials))
    assert isinstance(text, Text) and isinstance(noise, Table)
    assert noise.caption == "Noise: the baseline against itself"
