"""`expkit sweep` as a command; what it does is in tests/test_sweep.py."""

from __future__ import annotations

from typer.testing import CliRunner

from expkit.cli import app


def test_help_shows_a_line_to_paste() -> None:
    done = CliRunner().invoke(app, ["sweep", "-h"])
    assert done.exit_code == 0
    assert "Example: expkit sweep ablate.yaml" in done.stdout


def test_retry_is_one_of_four_words() -> None:
    done = CliRunner().invoke(app, ["sweep", "x.yaml", "--retry", "everything"])
    assert done.exit_code == 2
    assert "failed" in done.output
