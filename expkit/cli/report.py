"""expkit report: what a sweep says so far, on the terminal and as files. Trains nothing."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expkit.cli.completion import sweeps
from expkit.cli.options import RUNS, Json, ReadDir, say

if TYPE_CHECKING:
    from expkit.analysis.model import Summary
    from expkit.report.blocks import Page


class Face(StrEnum):
    """What goes to stdout."""

    TERMINAL = "terminal"
    MARKDOWN = "md"
    HTML = "html"
    JSON = "json"


def report(
    sweep: Annotated[
        str, typer.Argument(help="Name of a sweep in the runs folder, or its file.", autocompletion=sweeps)
    ],
    target: Annotated[float | None, typer.Option(help="Time to this quality instead; exploratory.")] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:min|max]",
            help="Judge by this metric instead, less (min) or more (max) is better; exploratory.",
        ),
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="Compare with this arm instead; exploratory.")] = None,
    face: Annotated[Face, typer.Option("--format", help="What to print.")] = Face.TERMINAL,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for the files.")] = None,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Also one zip: report, data, recipes, provenance; expkit load opens it.")
    ] = False,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Report a sweep: which arm is faster at equal quality, by how much, how sure.

    Prints the report and writes index.html, report.md and summary.json; on terms other than the sweep's own into a
    folder `exploratory` beside them. Nothing is trained.

    Example: expkit report ablate --target 0.85 --metric eval/accuracy --baseline none
    """
    from expkit import __version__
    from expkit.analysis.summary import summarise
    from expkit.report.section import make_page
    from expkit.report.write import texts_of, write_report
    from expkit.store.bundle import write_bundle
    from expkit.store.find import find_sweep
    from expkit.store.place import is_view
    from expkit.store.query import connect
    from expkit.store.store import Store

    store = Store(runs_dir)
    name = find_sweep(store, sweep)
    with connect(runs_dir, thorough=True) as con:  # what it claims must be what was measured
        summary = summarise(con, name, target=target, metric=metric, baseline=baseline)
        for unreadable in con.set_aside:
            say(f"set aside: {unreadable}")
    if summary.running:
        say(f"{name} is still running; this report uses what is complete.")
    _show(make_page(summary), summary, Face.JSON if as_json else face)
    usual = Path(f"{name}-report") if is_view(runs_dir) else store.layout.report(name)
    on_other_terms = any(asked is not None for asked in (target, metric, baseline))
    folder = output or (usual / "exploratory" if on_other_terms else usual)
    if bundle:
        say(f"bundle: {write_bundle(store, name, texts_of(summary), folder / f'{name}.zip', __version__)}")
    written = write_report(summary, folder)
    say(f"report: {written.html}")


def _show(page: Page, summary: Summary, face: Face) -> None:
    import sys

    from rich.console import Console

    from expkit.report.html import to_html
    from expkit.report.markdown import to_markdown
    from expkit.report.summary_json import to_json
    from expkit.report.terminal import to_terminal

    if face is Face.TERMINAL:
        to_terminal(page, Console(file=sys.stdout, highlight=False))
        return
    text = {Face.MARKDOWN: to_markdown, Face.HTML: to_html}[face](page) if face is not Face.JSON else to_json(summary)
    sys.stdout.write(text)
