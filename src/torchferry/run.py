"""`python -m torchferry.run`: the same as `ferry run`."""

from __future__ import annotations

import sys

from torchferry.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
