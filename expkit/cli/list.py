"""`expkit list`: which plug-ins there are, of one kind or of all."""

from __future__ import annotations

from typing import Annotated

import typer

from expkit.cli.completion import kinds
from expkit.cli.options import Json, give

ALSO = {"methods": "algorithms", "data": "datasets", "nets": "models"}
"""Other words for a kind."""


def list(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="algorithms, models, datasets, optimizers, ...; all kinds if left out.", autocompletion=kinds
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List plug-ins by name, each with its first sentence.

    Example: expkit list algorithms
    """
    from expkit import plugins

    asked = [ALSO.get(kind, kind)] if kind else plugins.KINDS
    rows = [(k, name, plugins.summary(k, name)) for k in asked for name in plugins.names(k)]
    if as_json:
        give([{"kind": k, "name": name, "summary": text} for k, name, text in rows])
        return
    width = max((len(name) for _, name, _ in rows), default=0)
    for k, name, text in rows:
        print(f"{name:<{width}}  {text}" if kind else f"{k:<11} {name:<{width}}  {text}")
