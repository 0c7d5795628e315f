"""Whatever became of a sweep, each face of its report is there: a value or a sentence, never a traceback, never nan."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from expkit.analysis.model import Summary
from expkit.analysis.summary import summarise
from expkit.report.html import to_html
from expkit.report.markdown import to_markdown
from expkit.report.plain import to_plain
from expkit.report.section import make_page
from expkit.report.summary_json import to_json
from expkit.store.query import connect
from tests.store.synthetic import SETTING, Cell, Method, make_store

METHODS = {"ema": Method(1.02), "resizing": Method(0.8, -0.01)}
EQUAL = {"ema": Method(), "resizing": Method()}
Change = Callable[[Cell], Cell]


def every(**changes: Any) -> dict[str, Any]:
    """Options of make_store that change every cell."""
    return {"change": lambda cell: dataclasses.replace(cell, **changes)}


def where(condition: Callable[[Cell], bool], **changes: Any) -> dict[str, Any]:
    """Those that change some."""
    return {"change": lambda cell: dataclasses.replace(cell, **changes) if condition(cell) else cell}


OTHER = SETTING | {"host": "bench2"}
CASES: dict[str, dict[str, Any]] = {
    "nothing has run": every(state="pending"),
    "all run": every(state="running"),
    "all failed": every(state="failed", cause="exception", message="boom"),
    "all diverged": every(state="diverged"),
    "all lost": every(state="lost"),
    "it runs": where(lambda c: c.seed > 18, state="running"),
    "no baseline is complete": where(lambda c: c.arm == "none", state="failed"),
    "only the baseline": {"methods": {}},
    "one seed": {"seeds": [17]},
    "two seeds": {"seeds": [17, 18]},
    "no repeats": {"repeats": False},
    "no target": {"target": None},
    "all missed": {"target": 0.99},
    "all there at once": {"target": 0.0},
    "all equal": {"methods": EQUAL, "time_noise": 0.0, "quality_noise": 0.0},
    "nan in one arm": where(lambda c: c.arm == "ema", accuracy=math.nan),
    "nan everywhere": every(accuracy=math.nan),
    "infinite": every(accuracy=math.inf),
    "zero": {"accuracy": 0.0, "quality_noise": 0.0, "target": 0.0},
    "negative": {"accuracy": -3.0, "target": -3.1},
    "huge": {"accuracy": 1e38, "target": 1e37},
    "no seconds": every(seconds=0.0),
    "endless seconds": where(lambda c: c.arm == "ema", seconds=1e30),
    "one evaluation": {"evaluations": 1},
    "mixed hosts": where(lambda c: c.seed > 18, setting=OTHER),
    "a host for each arm": where(lambda c: c.arm == "ema", setting=OTHER),
    "mixed code": where(lambda c: c.seed > 18, code_sha="beef" * 3, dirty=True),
    "all resumed": every(timing_valid=False, timing_reasons=("resumed",)),
    "all shared the machine": every(timing_valid=False, timing_reasons=("contention",), wall_per_cpu=3.0),
    "no method did anything": {"methods": {"ema": Method(effective=False), "resizing": Method(effective=False)}},
}
SHORT = (
    "nothing has run", "all failed", "it runs", "no baseline is complete", "one seed", "all missed", "all equal",
    "nan in one arm", "huge", "endless seconds", "mixed hosts", "mixed code", "all shared the machine",
)  # fmt: skip
DRAWN = ("it runs", "nan in one arm")
"""Cases of each run, and those whose charts are drawn in it; all are in the long one."""


def summary_of(root: Path, **options: Any) -> Summary:
    make_store(root, **{"methods": METHODS, "num_batches": 16, "seeds": range(17, 20), **options})
    with connect(root) as con:
        return summarise(con, "ablate")


def looked_at(text: str) -> None:
    """No word of a machine's for what has no value; the SQL that is shown has one, quoted."""
    found = re.findall(r".{0,20}\b(?:nan|NaN|inf|Infinity|None|null|Traceback)\b.{0,20}", text)
    assert not [match for match in found if "'inf'::DOUBLE" not in match], found


def cases(short: tuple[str, ...]) -> list[Any]:
    return [pytest.param(case, marks=() if case in short else pytest.mark.soak) for case in CASES]


@pytest.mark.parametrize("case", cases(SHORT))
def test_every_face_is_there_and_has_a_value_or_a_sentence(case: str, tmp_path: Path) -> None:
    found = summary_of(tmp_path, **CASES[case])
    json.loads(to_json(found), parse_constant=pytest.fail)
    page = make_page(found)
    for text in (to_markdown(page), to_plain(page)):
        looked_at(text)
    for sentence in (*found.headline, *(a.sentence for a in found.arms), *(g.sentence for g in found.guards)):
        assert sentence.endswith("."), sentence
    assert all(a.verdict and a.sentence for a in found.arms)
    assert found.box.scope.endswith(".") and found.box.answer == found.headline[0]


@pytest.mark.parametrize("case", cases(DRAWN))
def test_the_page_is_drawn(case: str, tmp_path: Path) -> None:
    html = to_html(make_page(summary_of(tmp_path, **CASES[case])))
    looked_at(unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.S)))
    assert "NaN" not in html  # in no attribute of a drawing either


def test_a_loss_is_minimised(tmp_path: Path) -> None:
    made = make_store(tmp_path, {"ema": Method(1.0, -0.1), "resizing": Method(0.8)}, metric="eval/loss", target=None)
    made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "mode": "min"})
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
    by_label = {a.label: a for a in found.arms}
    assert (by_label["ema"].quality_difference.value or 0) > 0.05  # a lower loss is better
    assert by_label["ema"].verdict.startswith("BETTER")
    assert by_label["resizing"].verdict.startswith("FASTER")
    assert "less is better" in to_plain(make_page(found))


def test_a_baseline_that_no_trial_is_of(tmp_path: Path) -> None:
    made = make_store(tmp_path, METHODS, num_batches=16)
    made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "baseline_arm": "mixup"})
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
    assert {a.verdict for a in found.arms} == {"NO PAIRS"}
    assert "seeds" in found.withheld
    looked_at(to_plain(make_page(found)))


@pytest.mark.parametrize("num_methods", [5, pytest.param(10, marks=pytest.mark.soak)])
def test_up_to_1024_arms(num_methods: int, tmp_path: Path) -> None:
    methods = {f"m{i:02}": Method(1 - 0.02 * i, 0.001 * i) for i in range(num_methods)}
    found = summary_of(tmp_path, methods=methods, seeds=[17, 18], evaluations=4)
    assert len(found.arms) == 2**num_methods
    assert len(found.box.methods) == num_methods
    assert all(a.verdict for a in found.arms)
    assert sum(len(g.sentence) for g in found.guards) < 15_000  # no guard names a thousand arms
    looked_at(to_markdown(make_page(found)))
