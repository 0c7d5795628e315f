"""expkit list trials: chosen, sorted, with the columns that somebody asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from expkit.store import notes
from expkit.store.listing import USUAL
from tests.cli.conftest import Expkit, as_json
from tests.store.synthetic import Method, Synthetic, make_store


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Synthetic:
    root = tmp_path_factory.mktemp("lab") / "runs"
    made = make_store(root, {"ema": Method(quality=0.05), "mixup": Method(0.5)}, seeds=(17, 18), time_noise=0.001)
    notes.tag(made.store, made.ids["ema", 17], ["keep"])
    return made


@pytest.fixture
def listed(expkit: Expkit, lab: Synthetic, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EXPKIT_RUNS", str(lab.root))
    return lambda *arguments: as_json(expkit("list", "trials", *arguments, "--json"))


def test_all_trials_or_those_of_a_sweep_with_its_metric(listed, expkit: Expkit, made: Synthetic, monkeypatch) -> None:
    assert len(listed()) == 10 and list(listed()[0]) == [*USUAL]
    rows = listed("ablate")
    assert [row["label"] for row in rows[:3]] == ["none", "none", "ema"] and rows[0]["eval/accuracy"] > 0.8
    monkeypatch.setenv("EXPKIT_RUNS", str(made.root))
    states = [row["status"] for row in listed("ablate.yaml")]
    assert {"pending", "failed", "lost", "diverged", "complete"} == set(states)


def test_where_knows_views_keys_and_metrics(listed, lab: Synthetic) -> None:
    assert {row["label"] for row in listed("--where", "size = 1 AND train_s < 8")} == {"mixup"}
    assert {row["label"] for row in listed("--where", '"eval/accuracy" > 0.87')} == {"ema", "ema+mixup"}
    assert len(listed("--where", "optimizer.sgd.lr = 0.1 AND lr < 1")) == 10
    assert len(listed("--where", "algorithms.ema.strength IS NULL")) == 6
    assert [row["id"] for row in listed("--where", "list_contains(tags, 'keep') -- those")] == [lab.ids["ema", 17]]
    assert len(listed("ablate", "--where", "role = 'repeat'")) == 2


def test_order_columns_and_limit(listed) -> None:
    best = listed("--sort=-eval/accuracy,seed", "--cols", 'id, "eval/accuracy", sgd.nesterov, algorithms', "-n", "3")
    assert [list(row) for row in best] == [["id", "eval/accuracy", "sgd.nesterov", "algorithms"]] * 3
    values = [row["eval/accuracy"] for row in best]
    assert values == sorted(values, reverse=True) and best[0]["sgd.nesterov"] == "true"
    assert [row["train_s"] for row in listed("--sort", "train_s")] == sorted(row["train_s"] for row in listed())


def test_changed_shows_what_differs_and_nothing_else(listed) -> None:
    (first, *_) = listed("ablate", "--changed", "--where", "seed = 17")
    assert list(first) == ["id", "replicate", "label", "algorithms.ema.strength", "algorithms.mixup.strength",
                           "eval/accuracy"]  # fmt: skip
    assert list(listed("--changed", "--cols", "seed", "--where", "label = 'ema'")[0]) == ["seed"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--where", "lrr > 1"), "unknown column 'lrr'; did you mean 'lr'?"),
        (("--cols", "trian_s"), "did you mean 'train_s'?"),
        (("--cols", "strength"), "algorithms.ema.strength, algorithms.mixup.strength; write more of it"),
        (("--where", "train_s >"), "--where train_s >: syntax error"),
        (("--where", "1); DROP VIEW trials; --"), "syntax error"),
        (("abl",), "did you mean 'ablate'?"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    expkit: Expkit, lab: Synthetic, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.setenv("EXPKIT_RUNS", str(lab.root))
    code, out, err = expkit("list", "trials", *arguments)
    assert code == 2 and out == "" and says in err


def test_text_is_short_and_an_empty_list_is_a_sentence(expkit: Expkit, lab: Synthetic, monkeypatch) -> None:
    monkeypatch.setenv("EXPKIT_RUNS", str(lab.root))
    _, out, _ = expkit("list", "trials", "--where", f"id = '{lab.ids['ema', 17]}'")
    assert out.splitlines()[-1].split()[-1] == "keep" and len(out.splitlines()) == 3
    code, out, err = expkit("list", "runs", "--where", "seed = 99")
    assert (code, out) == (0, "") and "no trial in" in err
    assert "for trials" in expkit("list", "algorithms", "--changed")[2]


def test_metrics_whose_names_differ_in_case_alone_are_not_taken_for_each_other(
    tmp_path: Path, expkit: Expkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL has one name for both, and `eval/Acc` was shown under `eval/acc` too."""
    for sweep, metric, seed in (("a", "eval/Acc", 1), ("b", "eval/acc", 2), ("c", "Label", 3)):
        make_store(tmp_path, {}, seeds=(seed,), sweep=sweep, metric=metric, repeats=False)
    monkeypatch.setenv("EXPKIT_RUNS", str(tmp_path))
    rows = as_json(expkit("list", "trials", "--cols", "label,eval/Acc,Label,eval/acc", "--sort", "seed", "--json"))
    there = [{key: value is not None for key, value in row.items()} for row in rows]
    names = ("label", "eval/Acc", "Label", "eval/acc")
    assert there == [dict(zip(names, found, strict=True)) for found in (
        (True, True, False, False), (True, False, False, True), (True, False, True, False),
    )]  # fmt: skip
    chosen = as_json(expkit("list", "trials", "--where", '"eval/acc" > 0.5 AND "eval/Acc" IS NULL', "--json"))
    assert [row["seed"] for row in chosen] == [2]
