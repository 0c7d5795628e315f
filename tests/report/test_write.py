"""The report's files: all three, replaced as a whole, quick, and the same in what they say."""

from __future__ import annotations

import json
import math
import re
import time
from html import unescape
from pathlib import Path

import pytest

from expkit.report.markdown import to_markdown
from expkit.report.numbers import fixed, interval
from expkit.report.plain import to_plain
from expkit.report.section import make_page
from expkit.report.summary_json import to_json
from expkit.report.write import write_report
from tests.report.example_summary import all_failed, empty, example, hostile


def test_three_files_and_nothing_else_within_five_seconds(tmp_path: Path) -> None:
    begun = time.process_time()
    written = write_report(example(), tmp_path / "report")
    assert time.process_time() - begun < 5
    assert sorted(p.name for p in (tmp_path / "report").iterdir()) == ["index.html", "report.md", "summary.json"]
    before = [p.read_bytes() for p in (written.html, written.markdown, written.json)]
    write_report(example(), tmp_path / "report")
    assert [p.read_bytes() for p in (written.html, written.markdown, written.json)] == before


@pytest.mark.parametrize("make", [example, empty, all_failed, hostile])
def test_json_is_strict_and_ascii(make: object) -> None:
    text = to_json(make())  # type: ignore[operator]
    assert json.loads(text, parse_constant=pytest.fail)["schema_version"] == 1
    assert text.isascii()
    assert not {c for c in text if ord(c) < 32 and c != "\n"}


def test_verdicts_and_numbers_are_the_same_on_every_face(tmp_path: Path) -> None:
    summary = example()
    written = write_report(summary, tmp_path)
    data = json.loads(written.json.read_text())
    faces = {
        "html": seen(written.html.read_text()),
        "md": unmarked(written.markdown.read_text()),
        "terminal": flat(to_plain(make_page(summary))),
    }
    for arm, recorded in zip(summary.arms, data["arms"], strict=True):
        assert (recorded["label"], recorded["verdict"]) == (arm.label, arm.verdict)
        assert recorded["speedup"]["value"] == arm.speedup.value
        wanted = [interval(arm.quality, 4)]
        if not arm.baseline:
            wanted += [arm.verdict, interval(arm.speedup, 3), interval(arm.quality_difference, 4, signed=True)]
        wanted += [t.text for t in arm.target_times if t.rule == "interpolated"]
        for name, face in faces.items():
            assert not [w for w in wanted if w not in face], name
    for effect in summary.effects:
        for name, face in faces.items():
            assert interval(effect.time, 3) in face, name
            assert interval(effect.quality, 4, signed=True) in face, name
    for sentence in (*summary.headline, *(g.sentence for g in summary.guards)):
        for name, face in faces.items():
            assert flat(sentence) in face, name
    for noise in summary.noise:
        for name, face in faces.items():
            assert fixed(100 * math.expm1(noise.eps or 0), 2) in face, name


def test_markdown_and_page_are_made_of_the_same_blocks() -> None:
    page = make_page(example())
    assert all(part.title in to_markdown(page) for part in page.parts)


def seen(html: str) -> str:
    return flat(unescape(re.sub(r"<wbr>", "", re.sub(r"<style>.*?</style>|<(?!wbr)[^>]+>", " ", html, flags=re.S))))


def unmarked(markdown: str) -> str:
    return flat(re.sub(r"\\([^\w\s])", r"\1", markdown.replace("&lt;", "<")))


def flat(text: str) -> str:
    return " ".join(text.split())
