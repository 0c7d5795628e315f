"""`expkit schema`: the JSON Schema of recipe or sweep files, so that an editor completes, explains and underlines."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from expkit.cli.options import give


class Kind(StrEnum):
    """Which files."""

    RECIPE = "recipe"
    SWEEP = "sweep"


def schema(kind: Annotated[Kind, typer.Argument(help="recipe or sweep.")]) -> None:
    """Print the JSON Schema of recipes or sweeps, with the plug-ins that are installed; editors read it by a modeline.

    Example: expkit schema recipe > recipe.schema.json
    """
    from expkit.spec.schema import recipe_schema, sweep_schema

    give(recipe_schema() if kind is Kind.RECIPE else sweep_schema())
