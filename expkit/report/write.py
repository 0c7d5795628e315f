"""The report as files: index.html, report.md, summary.json, each replaced as a whole; 2 s for 8 arms x 5 seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from expkit.analysis.model import Summary
from expkit.report.html import to_html
from expkit.report.markdown import to_markdown
from expkit.report.section import make_page
from expkit.report.summary_json import to_json
from expkit.store.atomic import write_text


@dataclass(frozen=True)
class Written:
    """Where the faces of a report lie; the page is the one to open."""

    html: Path
    markdown: Path
    json: Path


def write_report(summary: Summary, folder: Path) -> Written:
    """Write all three into a folder; they are made before the first is written, so that none is newer than another."""
    for name, text in texts_of(summary).items():
        write_text(folder / name, text)
    return Written(folder / "index.html", folder / "report.md", folder / "summary.json")


def texts_of(summary: Summary) -> dict[str, str]:
    """What `write_report` writes, by file name."""
    page = make_page(summary)
    return {"index.html": to_html(page), "report.md": to_markdown(page), "summary.json": to_json(summary)}
