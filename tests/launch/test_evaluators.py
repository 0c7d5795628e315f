"""Several evaluators in a recipe, from the file to the report: their series, rhythms and shares of data by label."""

from __future__ import annotations

import pytest

from tests.launch.lab import CODE, RECIPE, Lab

TWO = """\
  eval:
    same: {"py:own:Points": {}}
    other: {"py:own:make_evaluator": {seed: 99}}
"""
OWN = '''

class Samples:
    """How many there were."""
    def reset(self):
        self.count = 0
    def update(self, outputs, targets):
        self.count += len(targets)
    def compute(self):
        return self.count

def make_evaluator(seed):
    from expkit.trainer.evaluator import Evaluator
    return Evaluator("?", Points(seed), {"samples": Samples(), "accuracy": "accuracy"})
'''


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    made = Lab(tmp_path_factory.mktemp("lab"))
    (made.folder / "own.py").write_text(CODE + OWN)
    text = RECIPE.replace("PAUSE", "0.0").replace('  eval: {"py:own:Points": {}}\n', TWO)
    text = text.replace(
        "eval_interval: 4ba", "eval_interval: {same: 3ba, other: 8ba}, eval_subset_num_batches: {other: 2}"
    )
    (made.folder / "recipes" / "tiny.yaml").write_text(text.replace("eval/accuracy", "same/accuracy"))
    made.sweep("two", "{ema: {half_life: 4ba}}", seeds=1, timing="shared")
    return made


@pytest.fixture(scope="module")
def swept(lab: Lab) -> Lab:
    assert "3 to run" in lab.call("plan", "two").stdout
    done = lab.call("sweep", "two")
    assert (done.returncode, done.stderr.count("complete, same/accuracy 0.")) == (0, 3)
    return lab


def series(lab: Lab) -> dict[str, list[int]]:
    rows = lab.json("query", "SELECT DISTINCT name, batch FROM metrics WHERE name NOT LIKE 'train/%' ORDER BY ALL")
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row["name"], []).append(row["batch"])
    return found


def test_each_has_its_series_its_interval_and_its_metrics(swept: Lab) -> None:
    assert series(swept) == {"other/accuracy": [8], "other/samples": [8], "same/accuracy": [3, 6, 8],
                             "same/cross_entropy": [3, 6, 8]}  # fmt: skip
    [row] = swept.json("query", "SELECT DISTINCT last FROM final WHERE name = 'other/samples'")
    assert row["last"] == 16


def test_a_report_is_by_the_primary_or_by_any_other(swept: Lab) -> None:
    own, other = (swept.call("report", "two", *more, "--format", "md").stdout
                  for more in ((), ("--metric", "other/accuracy")))  # fmt: skip
    assert "same/accuracy" in own and "other/accuracy" not in own
    assert "other/accuracy" in other
    id12 = swept.store.read_plan("two")[0].id
    shown = swept.call("show", id12).stdout
    assert all(f"  {name} " in shown for name in series(swept))


def test_nothing_is_missing_and_an_evaluator_that_is_added_makes_other_trials(swept: Lab) -> None:
    assert "3 done, 0 running, 0 failed, 0 to run" in swept.call("plan", "two").stdout
    more = swept.call("plan", "two", "--set", 'data.eval.more={"py:own:Points": {seed: 5}}').stdout
    assert "0 done, 0 running, 0 failed, 3 to run" in more


def test_check_names_an_unknown_label_at_its_line(lab: Lab) -> None:
    text = (lab.folder / "recipes" / "tiny.yaml").read_text().replace("same/accuracy", "some/accuracy")
    (lab.folder / "recipes" / "wrong.yaml").write_text(text)
    said = lab.call("check", "recipes/wrong.yaml")
    assert said.returncode == 2
    assert ("recipes/wrong.yaml:12:27: metrics.primary.name: some/accuracy: unknown evaluator 'some'; did you mean "
            "'same'? there are: other, same") in said.stderr  # fmt: skip
