"""`expkit show`: a trial as the store has it, or a recipe or sweep file as it will be used; reads only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expkit.cli.completion import trials_and_files
from expkit.cli.options import RUNS, Json, Preset, ReadDir, Replicate, Set, TrustImports, give, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expkit.store.find import Found
    from expkit.store.store import Store


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ID|FILE",
            help="First digits of a trial's id, 3f2a/r1, last or last~1; or a recipe or sweep file.",
            autocompletion=trials_and_files,
        ),
    ],
    replicate: Replicate = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="The recipe as YAML, every default filled in.")] = False,
    sets: Set = None,
    preset: Preset = None,
    trust_imports: TrustImports = None,
    runs_dir: ReadDir = RUNS,
    as_json: Json = False,
) -> None:
    """Show a trial: state, setting, clocks, final metrics, files; or a file with extends, presets and --set applied.

    Example: expkit show fashion_resnet --resolved
    """
    from expkit.spec.shown import shown_file
    from expkit.store.store import Store

    store = Store(runs_dir)
    found = which(store, what if replicate is None else f"{what} {replicate}")
    if isinstance(found, Path):
        file = shown_file(found, presets=preset or (), overrides=sets or (), trust_imports=trust_imports or ())
        give(file.resolved if resolved else file.used) if as_json else print(file.text(resolved), end="")
    elif resolved:
        _show_recipe(store, found, as_json)
    else:
        _show_trial(store, found, as_json)


def which(store: Store, what: str) -> Found | Path:
    """A trial where there is one of this name, else a file; UsageError where there is neither."""
    from expkit.cli.check import find as find_file
    from expkit.errors import SpecError, UsageError
    from expkit.store.find import NoTrial, find

    if Path(what).suffix in {".yaml", ".yml"}:
        return find_file(what)[0]
    try:
        return find(store, what)
    except NoTrial as no_trial:
        try:
            return find_file(what)[0]
        except SpecError:
            raise UsageError(f"{no_trial}; nor is there a recipe or sweep file of this name") from None


def _show_recipe(store: Store, found: Found, as_json: bool) -> None:
    from expkit.errors import UsageError

    record = store.read_trial(found.id12)
    if record is None:
        raise UsageError(f"trial {found.id12} has not been started, or its record cannot be read")
    if as_json:
        give(record.config)
    else:
        print(store.layout.recipe(found.id12).read_text(encoding="utf-8"), end="")


def _show_trial(store: Store, found: Found, as_json: bool) -> None:
    from expkit.launch.account import account, next_command

    known = account(store, found.id12, found.replicate)
    if as_json:
        give(known)
    else:
        print("\n".join(lines_of(known)))
        if known["replicates"]:
            last = known["replicates"][-1]
            say(f"next: {next_command(store, found.id12, last['replicate'], last['state'], known['sweeps'])}")
    for unreadable in store.set_aside:
        say(f"set aside: {unreadable}")


def lines_of(known: dict[str, Any]) -> list[str]:
    """The trial, then each of its replicates."""
    from expkit.report.clean import clean

    seed = "" if known["seed"] is None else f", seed {known['seed']}"
    lines = [f"trial {known['id']}: {known['arm'] or '(its record cannot be read)'}{seed}"]
    lines += [f"  {m['name']} {_words(m.get('params') or {})}".rstrip() for m in known["algorithms"]]
    lines += [f"  {s['role']} of sweep {s['sweep']}, r{s['replicate']}, block {s['block']}, number {s['position'] + 1}"
              f" of {s['of']}" for s in known["sweeps"]]  # fmt: skip
    lines += [f"  recipe: {known['recipe']}"]
    for replicate in known["replicates"]:
        lines += ["", *_replicate_lines(replicate)]
    return [clean(line) if line.strip() == line else f"  {clean(line)}" for line in lines]


def _replicate_lines(each: dict[str, Any]) -> Iterator[str]:
    cause = f" ({each['cause']})" if each.get("cause") else ""
    tried = f", attempt {each['attempts']}" if each["attempts"] > 1 else ""
    yield f"r{each['replicate']}: {each['state']}{cause}{tried}"
    if each.get("message"):
        yield f"  {each['message'].splitlines()[0]}"
    if each["state"] == "running" and each["num_batches"]:
        yield f"  batch {each['batch']} of {each['num_batches']}"
    if each.get("started_utc"):
        yield f"  time: {each['started_utc']} to {each['ended_utc'] or 'now'}"
    if each.get("setting"):
        yield f"  setting: {_words(each['setting'])}; code {each['code_sha']}{' with changes' if each['dirty'] else ''}"
    if clocks := {name: value for name, value in (each.get("clocks") or {}).items() if value}:
        yield f"  clocks: {_words({name: round(value, 3) for name, value in clocks.items()})}"
    if each.get("timing_reasons"):
        yield f"  timing not valid: {', '.join(each['timing_reasons'])}"
    if without := sorted(label for label, did in (each.get("effective") or {}).items() if not did):
        yield f"  without effect: {', '.join(without)}"
    for name, value in sorted((each.get("final") or {}).items()):
        yield f"  {name} {value:.6g}"
    for began in each["began"]:
        yield f"  {began}"
    yield f"  files: {each['folder']}"
    for path in each["checkpoints"]:
        yield f"  checkpoint: {path}"
    if each["log"]:
        yield f"  log: {each['log']}"


def _words(values: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value is not None)
