"""`python -m expkit.cli` is `expkit`."""

from expkit.cli import main

main()
