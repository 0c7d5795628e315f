"""Markdown that any reader renders as the text it was: nothing becomes markup, nothing is lost."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from expkit.report.clean import clean
from expkit.report.markdown import code, escape, to_markdown
from expkit.report.section import make_page
from tests.report.example_summary import HOSTILE, all_failed, empty, example, hostile

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(markdown: str) -> str:
    """What a reader sees of one paragraph: tags gone, entities read, invisible guards dropped."""
    text = html.unescape(re.sub(r"<[^>]+>", "", READER.render(markdown)))
    return " ".join(text.replace("\u200b", "").split())


@pytest.mark.parametrize(
    "text", [*HOSTILE, "# 1 title", "- item", "1. first", "+ plus", "> quote", "= = =", "---", "&amp;"]
)
def test_escaped_text_shows_as_itself(text: str) -> None:
    assert shown(escape(clean(text))) == clean(text)


@given(st.text(alphabet="ab1 *_`~[]()<>&#!|\\-+=.:@$\"'", max_size=30))
def test_any_mixture_of_marks_shows_as_itself(text: str) -> None:
    plain = " ".join(text.split())
    rendered = READER.render(escape(plain))
    assert shown(escape(plain)) == plain
    assert set(re.findall(r"<(\w+)", rendered)) <= {"p"}


@pytest.mark.parametrize("text", ["a`b", "``", "`", "a|b", "plain_name", "*"])
def test_code_spans_hold_any_name(text: str) -> None:
    assert shown(code(text)) == text
    row = READER.render(f"| a | b |\n| --- | --- |\n| {code(text, in_table=True)} | x |\n")
    assert row.count("<td>") == 2
    assert html.unescape(re.findall(r"<code>(.*?)</code>", row)[0]) == text


def test_numbers_and_names_are_not_littered_with_backslashes() -> None:
    assert escape("1.228 in train_s (5/5), +0.0061") == "1.228 in train_s (5/5), +0.0061"


def test_nobody_is_mentioned() -> None:
    assert "@octocat" not in escape("thanks @octocat")


@pytest.mark.parametrize("make", [example, empty, all_failed, hostile])
def test_tables_have_as_many_cells_in_each_row(make: object) -> None:
    page = READER.render(to_markdown(make_page(make())))  # type: ignore[operator]
    for table in re.findall(r"<table>.*?</table>", page, flags=re.S):
        rows = re.findall(r"<tr>.*?</tr>", table, flags=re.S)
        assert len({len(re.findall(r"<t[hd]", row)) for row in rows}) == 1


def test_hostile_names_make_no_element_of_their_own() -> None:
    allowed = {"h1", "h2", "p", "strong", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "code", "pre",
               "details", "summary"}  # fmt: skip
    page = READER.render(to_markdown(make_page(hostile())))
    assert {tag.lower() for tag in re.findall(r"<(\w+)", page)} <= allowed
    assert "javascript:" not in "".join(re.findall(r'href="([^"]*)"', page))
