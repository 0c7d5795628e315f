"""`python -m expkit.cli.launcher ...` is `expkit launch ...`."""

import sys

from expkit.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["launch"]
    main()
