"""`expkit launch`: start a command as several ranks on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

SETTINGS = {"allow_interspersed_args": False}
"""Everything after the first word that is no option belongs to the command."""


def launch(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A Python script with its arguments; a module or any command with -m, -c."),
    ] = None,
    nproc: Annotated[
        int | None, typer.Option("-n", "--nproc", help="Ranks here; as many as there are GPUs, or 1.")
    ] = None,
    module: Annotated[bool, typer.Option("-m", "--module-mode", "--module_mode", help="Run a module.")] = False,
    bare: Annotated[bool, typer.Option("-c", "--command-mode", "--command_mode", help="Run a command as is.")] = False,
    stdout: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Logs of ranks but the first: 'out_{rank}.log'.")
    ] = None,
    stderr: Annotated[str | None, typer.Option(metavar="FORMAT", help="The same for stderr; else with stdout.")] = None,
    world_size: Annotated[int | None, typer.Option("--world-size", "--world_size", help="Ranks on all nodes.")] = None,
    base_rank: Annotated[int | None, typer.Option("--base-rank", "--base_rank", help="First rank here.")] = None,
    node_rank: Annotated[int | None, typer.Option("--node-rank", "--node_rank", help="This node, from 0.")] = None,
    master_addr: Annotated[str | None, typer.Option("--master-addr", "--master_addr", help="Host of rank 0.")] = None,
    master_port: Annotated[int | None, typer.Option("--master-port", "--master_port", help="Port of rank 0.")] = None,
    grace: Annotated[float, typer.Option(help="Seconds between TERM and KILL.", min=0)] = 30.0,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say where each rank runs and logs.")] = False,
) -> None:
    """Start a command as several ranks, show the first, end all where one fails; exits as the first that failed.

    Example: expkit launch -n 2 train.py --epochs 3
    """
    import os

    from expkit.launch.launcher import Launch, command_of
    from expkit.launch.launcher import launch as run
    from expkit.launch.world import Asked, infer, num_gpus

    asked = Asked(nproc, world_size, base_rank, node_rank, master_addr, master_port)
    world = infer(asked, os.environ, num_gpus())
    what = Launch(command_of(command or (), module=module, bare=bare), world, stdout, stderr, grace, verbose)
    raise typer.Exit(run(what))
