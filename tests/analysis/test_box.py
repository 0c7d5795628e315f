"""The verdict box as data: it says what the headline says, part by part, and what was fixed before anybody looked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from expkit.analysis.summary import summarise, summary_to_json
from expkit.report.plain import to_plain
from expkit.report.section import make_page
from expkit.store.query import connect
from tests.store.synthetic import Method, Synthetic, make_store

NAMED = {"utc": "2026-01-02T00:00:00.000Z", "seeds": [17, 18, 19, 20, 21], "metric": "eval/accuracy", "mode": "max",
         "clock": "train_s", "non_inferiority": 0.005}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    """A sweep whose terms were named the day before."""
    made = make_store(tmp_path_factory.mktemp("box"), {"ema": Method(1.2, 0.02), "resizing": Method(0.8, -0.02)})
    made.store.write_settings("ablate", {**made.store.sweep_settings("ablate"), "named": [NAMED]})
    return made


def test_the_box_of_a_clean_sweep(made: Synthetic) -> None:
    with connect(made.root) as con:
        found = summarise(con, "ablate")
    box = found.box
    assert box.scope == "On mlp: 4 arms x 5 seeds at equal budget, all schedules ended."
    assert box.answer == found.headline[0]
    assert {m.method: m.verdict for m in box.methods} == {
        "ema": "TRADE: slower, better",
        "resizing": "TRADE: faster, worse",
    }
    assert box.methods[1].sentence.startswith("x1.2")
    assert "averaged over 2 contexts." in box.methods[1].sentence
    assert box.fixed == ("the target 0.8000", "5 seeds, eval/accuracy and its margin of 0.005")
    assert box.not_fixed == ("which of 3 arms to put forward",)
    assert box.unknown == ()
    data = json.loads(json.dumps(summary_to_json(found), allow_nan=False))["box"]
    assert data["methods"][0]["time"]["value"] == box.methods[0].time.value
    text = " ".join(to_plain(make_page(found)).split())
    assert box.scope in text
    assert (
        "Fixed in advance: the target 0.8000 and 5 seeds, eval/accuracy and its margin of 0.005; "
        "not fixed: which of 3 arms to put forward." in text
    )


def test_a_withheld_sweep_withholds_its_methods_too(tmp_path: Path) -> None:
    make_store(tmp_path, {"ema": Method()}, repeats=False, num_batches=16)
    with connect(tmp_path) as con:
        found = summarise(con, "ablate")
    assert {m.verdict for m in found.box.methods} == {"WITHHELD"}
    assert found.box.unknown == ("5 seeds, eval/accuracy and its margin of 0.005",)
    assert found.box.answer.startswith("Headline withheld: ")
