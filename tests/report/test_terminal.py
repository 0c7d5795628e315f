"""The terminal's face: plain in a pipe, never a number cut, no escape sequence that a name brought along."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from expkit.report.plain import to_plain, width_of
from expkit.report.section import make_page
from expkit.report.terminal import to_terminal
from tests.report.example_summary import all_failed, empty, example, hostile, many


def printed(make: object, width: int, *, terminal: bool = True, colour: bool = False) -> str:
    out = io.StringIO()
    system = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=terminal, color_system=system, highlight=False)  # type: ignore[arg-type]
    to_terminal(make_page(make()), console)  # type: ignore[operator]
    return out.getvalue()


def test_a_pipe_gets_plain_aligned_text() -> None:
    text = printed(example, 60, terminal=False)
    assert text == to_plain(make_page(example()))
    assert not set("─│╭\x1b") & set(text)
    rows = [line for line in text.splitlines() if re.match(r"  (none|ema|label_smoothing\S*) .*\(\d/\d\)$", line)]
    assert len({len(row) for row in rows[:3]}) == 1


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width: int) -> None:
    text = printed(example, width)
    assert max(map(width_of, text.splitlines())) <= width
    flat = " ".join(text.split())
    for number in ("1.228 [1.201, 1.255]", "−0.0208 [−0.0230, −0.0186]", "> 3.34 s (0/5)"):
        assert number in flat


def test_left_out_columns_are_named() -> None:
    assert "Left out for want of width: 99 % of gain" in printed(example, 110)


def test_verdict_comes_first_and_folded_tables_are_only_named() -> None:
    text = printed(example, 120)
    assert text.index("No combination is faster") < text.index("Can this be trusted?")
    assert "44 of 45 replicates complete, in the order of the plan: in report.md and index.html" in text


def test_hostile_names_bring_no_escape_sequence_and_no_markup() -> None:
    plain = printed(hostile, 120)
    assert "\x1b" not in plain
    assert not {"\x07", "\u202e", "\u2066"} & set(plain)
    coloured = printed(hostile, 120, colour=True)
    assert not re.findall(r"\x1b(?!\[[0-9;]*m)", coloured)  # only rich's own colours


@pytest.mark.parametrize("make", [empty, all_failed, lambda: many(5)])
def test_odd_sweeps_print_without_nan_or_none(make: object) -> None:
    for text in (printed(make, 90), printed(make, 90, terminal=False)):
        assert not re.search(r"\b(nan|None|null|inf)\b", text)


def test_many_folded_queries_are_one_sentence() -> None:
    """A report ended with ten lines that each said only where they are not."""
    sentence = "expkit query: speedups, fastest: in report.md and index.html"
    assert sentence in printed(example, 120)
    text = printed(example, 120, terminal=False)
    assert sentence in text
    assert text.count("expkit query:") == 1
