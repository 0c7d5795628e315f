"""The page: one file, no network, no script, every name escaped, a table behind every chart."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest

from expkit.report.html import to_html
from expkit.report.section import make_page
from tests.report.example_summary import all_failed, empty, example, hostile, many

VOID = {"meta", "wbr", "br", "path", "line", "rect"}
DRAWN = {"svg", "g", "path", "text", "rect", "line", "defs", "clippath"}
WRITTEN = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "p", "nav", "ul", "li", "main",
    "section", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "small", "code", "pre", "wbr", "details",
    "summary", "figure", "figcaption", "footer", "span",
}  # fmt: skip


class Elements(HTMLParser):
    """All elements with their attributes, and whether they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page() -> str:
    return to_html(make_page(example()))


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return to_html(make_page(hostile()))


def test_elements_are_closed_in_order_and_are_those_of_the_template(page: str) -> None:
    elements = Elements(page)
    assert elements.open == []
    assert {tag for tag, _ in elements.found} <= WRITTEN | DRAWN


def test_policy_allows_nothing_from_outside(page: str) -> None:
    policy = next(a["content"] for tag, a in Elements(page).found if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")


def test_nothing_is_fetched_and_nothing_runs(page: str, hostile_page: str) -> None:
    for text in (page, hostile_page):
        elements = Elements(text)
        assert not {tag for tag, _ in elements.found} - (WRITTEN | DRAWN)
        for tag, attributes in elements.found:
            assert not [name for name in attributes if name.startswith("on") or name in {"src", "srcdoc", "action"}], (
                tag
            )
            assert (attributes.get("href") or "#").startswith("#")
        assert not re.search(r"@import|url\((?!#)", text)


def test_hostile_names_close_nothing_and_stay_readable(hostile_page: str) -> None:
    assert Elements(hostile_page).open == []
    assert "&lt;img src=x onerror=alert(1)&gt;" in hostile_page
    assert "<img" not in hostile_page
    assert not {"\x1b", "\u202e", "\u2066", "\x07"} & set(hostile_page)


def test_every_chart_has_a_role_an_alternative_a_caption_and_a_table(page: str) -> None:
    figures = re.findall(r"<figure>.*?</figure>", page, flags=re.S)
    assert len(figures) == 7
    for figure in figures:
        assert figure.count('role="img"') == figure.count('aria-roledescription="chart"') >= 2
        assert figure.count("<figcaption>") == figure.count("<details>") == figure.count("<table>") == 1
        assert "n = " in figure


def test_headers_carry_units(page: str) -> None:
    assert "speedup<small>×, 95 % interval</small>" in page
    assert "quality difference<small>90 % interval</small>" in page
    assert "time to target<small>s, hits</small>" in page


def test_ids_are_unique(page: str) -> None:
    ids = [a["id"] for _, a in Elements(page).found if "id" in a]
    assert len(ids) == len(set(ids))


def test_dark_print_and_phone_have_their_styles(page: str) -> None:
    for query in ("prefers-color-scheme: dark", "@media print", "max-width: 47.9rem", "overflow-x: auto"):
        assert query in page


def test_equal_summaries_give_equal_pages(page: str) -> None:
    assert to_html(make_page(example())) == page


@pytest.mark.parametrize("make", [empty, all_failed])
def test_odd_sweeps_get_a_page_of_sentences(make: object) -> None:
    text = to_html(make_page(make()))  # type: ignore[operator]
    words = re.sub(r"<style>.*?</style>|<[^>]+>", " ", text, flags=re.S)
    assert not re.search(r"\b(nan|None|null|inf)\b", words)
    assert "omplete" in words


def test_sixty_four_arms_stay_under_three_megabytes() -> None:
    assert len(to_html(make_page(many(6))).encode()) < 3_000_000


@pytest.mark.soak
def test_a_page_of_1024_arms_takes_seconds_and_not_minutes() -> None:
    """How long texts of a column are was asked again at every cell: 88 s, and 2 without it."""
    page = make_page(many(10))
    begin = time.process_time()
    to_html(page)
    assert time.process_time() - begin < 30
