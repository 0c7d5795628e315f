"""expkit report on a store made without training: faces, files, terms asked for afterwards, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expkit.cli import main
from tests.store.synthetic import Cell, Method, make_store

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    make_store(root, {"ema": Method(0.8, 0.01)}, seeds=range(17, 20), evaluations=8, num_batches=16)
    make_store(root, {"ema": Method(0.8)}, seeds=[1, 2], sweep="other", evaluations=4, num_batches=8)
    return root


@pytest.fixture
def run(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str, root: Path = runs) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["expkit", "report", *arguments, "--runs-dir", str(root)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return call


def test_prints_the_report_and_names_the_page_last(run: Run, runs: Path) -> None:
    code, out, err = run("ablate")
    assert code == 0
    assert out.startswith("Report of sweep ablate\n2 arms · 9 of 9 replicates complete")
    page = runs / "sweeps/ablate/report/index.html"
    assert err.splitlines()[-1] == f"report: {page}"
    assert sorted(p.name for p in page.parent.iterdir() if p.is_file()) == ["index.html", "report.md", "summary.json"]


@pytest.mark.parametrize("name", ["ablate.yaml", "sweeps/ablate.yaml", "elsewhere/ablate.yml"])
def test_a_sweep_is_found_by_its_file_too(run: Run, name: str) -> None:
    assert run(name)[1].startswith("Report of sweep ablate")


def test_a_sweep_named_unlike_its_file_is_found_by_the_recorded_path(run: Run, runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "unlike.yaml"
    file.write_text("version: 1\nname: other\n")
    store = make_store(tmp_path / "runs", {"ema": Method()}, seeds=[1], sweep="other", evaluations=2).store
    store.write_plan("other", file.read_text(), store.read_plan("other"), file=str(file))
    assert run(str(file), root=tmp_path / "runs")[1].startswith("Report of sweep other")


def test_unknown_sweep_is_bad_input_and_names_the_nearest(run: Run) -> None:
    code, out, err = run("ablat")
    assert (code, out) == (2, "")
    assert "unknown sweep 'ablat'; did you mean 'ablate'? there are: ablate, other" in err


def test_no_runs_folder_is_bad_input_and_makes_none(run: Run, tmp_path: Path) -> None:
    code, _, err = run("ablate", root=tmp_path / "nowhere")
    assert code == 2
    assert "there are: none" in err
    assert not (tmp_path / "nowhere").exists()


def test_json_is_one_document_and_the_same_as_the_file(run: Run, runs: Path) -> None:
    code, out, _ = run("ablate", "--json")
    data = json.loads(out)
    assert code == 0
    assert data == json.loads((runs / "sweeps/ablate/report/summary.json").read_text())
    assert [a["label"] for a in data["arms"]] == ["none", "ema"]


@pytest.mark.parametrize(("face", "file"), [("md", "report.md"), ("html", "index.html"), ("json", "summary.json")])
def test_other_faces_on_stdout_are_what_the_files_hold(run: Run, tmp_path: Path, face: str, file: str) -> None:
    _, out, _ = run("ablate", "--format", face, "-o", str(tmp_path))
    assert out == (tmp_path / file).read_text()


def test_another_target_is_recomputed_and_exploratory(run: Run, tmp_path: Path) -> None:
    def asked(*arguments: str) -> dict[str, Any]:
        return json.loads(run("ablate", "--json", "-o", str(tmp_path), *arguments)[1])  # type: ignore[no-any-return]

    usual, other = asked(), asked("--target", "0.7")
    assert (usual["target"]["value"], usual["target"]["exploratory"]) == (0.8, False)
    assert (other["target"]["value"], other["target"]["exploratory"]) == (0.7, True)
    assert usual["arms"][1]["speedup"] == other["arms"][1]["speedup"]


def test_a_report_on_other_terms_leaves_the_usual_one_alone(run: Run, runs: Path) -> None:
    run("ablate")
    page = runs / "sweeps/ablate/report/index.html"
    before = page.read_bytes()
    _, _, err = run("ablate", "--target", "0.7")
    assert err.splitlines()[-1] == f"report: {page.parent / 'exploratory' / 'index.html'}"
    assert page.read_bytes() == before


def test_another_baseline_turns_the_ratio_over(run: Run, tmp_path: Path) -> None:
    out = json.loads(run("ablate", "--json", "-o", str(tmp_path), "--baseline", "ema")[1])
    usual = json.loads(run("ablate", "--json", "-o", str(tmp_path))[1])
    ratio = {a["label"]: a["speedup"]["value"] for a in out["arms"]}["none"]
    assert ratio == pytest.approx(1 / {a["label"]: a["speedup"]["value"] for a in usual["arms"]}["ema"], rel=0.02)


@pytest.mark.parametrize("option", [("--metric", "eval/acuracy"), ("--baseline", "emma")])
def test_a_metric_or_baseline_that_is_not_there_is_bad_input(run: Run, option: tuple[str, str]) -> None:
    code, out, err = run("ablate", *option)
    assert (code, out) == (2, "")
    assert option[1] in err
    assert "Traceback" not in err


def test_help_shows_a_line_to_paste(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert "Example: expkit report ablate" in out


def failed(cell: Cell) -> Cell:
    return replace(cell, state="failed", cause="exception", message="ValueError: boom\n  line 2")


def pending(cell: Cell) -> Cell:
    return replace(cell, state="pending")


def half(cell: Cell) -> Cell:
    return cell if cell.seed == 1 else replace(cell, state="pending")


@pytest.mark.parametrize("change", [failed, pending, half])
def test_sweeps_without_results_get_sentences(run: Run, tmp_path: Path, change: Callable[[Cell], Cell]) -> None:
    make_store(tmp_path, {"ema": Method()}, seeds=[1, 2], change=change, target=None, evaluations=2, num_batches=4)
    code, out, err = run("ablate", root=tmp_path)
    assert code == 0
    words = set(out.replace(",", " ").split())
    assert not words & {"nan", "None", "null", "inf"}
    assert "Traceback" not in err
    assert (tmp_path / "sweeps/ablate/report/index.html").stat().st_size > 5_000


def test_a_folder_that_cannot_be_written_is_one_sentence_and_exit_3(run: Run, tmp_path: Path) -> None:
    """A full disk and a read-only folder ended in a traceback, with the report above it."""
    (tmp_path / "file").touch()
    code, out, err = run("ablate", "-o", str(tmp_path / "file" / "report"))
    assert code == 3
    assert out.startswith("Report of sweep ablate")
    assert err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in err


def test_help_says_that_a_metric_may_bring_its_mode(run: Run) -> None:
    assert "NAME[:min|max]" in run("--help")[1]


def test_a_plan_that_is_gone_is_said_on_stderr_and_in_the_verdict(run: Run, tmp_path: Path) -> None:
    make_store(tmp_path, {"ema": Method()}, seeds=[1], evaluations=2, num_batches=4)
    (tmp_path / "sweeps/ablate/plan.parquet").unlink()
    code, out, err = run("ablate", root=tmp_path)
    assert code == 0
    assert "plan.parquet: is gone" in err
    assert "Headline withheld: The plan of this sweep cannot be read" in out
