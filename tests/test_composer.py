"""docs/composer.md: every test that it names exists, and every defect has its row."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "composer.md").read_text()


def test_every_test_that_the_page_names_exists() -> None:
    defined = {
        name
        for file in ROOT.glob("tests/**/test_*.py")
        for name in re.findall(r"^ *def (test_\w+)", file.read_text(), re.M)
    }
    assert [name for name in re.findall(r"`(test_\w+)`", PAGE) if name not in defined] == []


def test_every_defect_has_a_row_with_a_test_or_a_reason() -> None:
    rows = dict(re.findall(r"^\| (D\d+) \| [^|]+ \| ([^|]+) \|$", PAGE, re.M))
    assert list(rows) == [f"D{i}" for i in range(1, 30)]
    assert all("`test_" in text or "does not apply: " in text for text in rows.values())
