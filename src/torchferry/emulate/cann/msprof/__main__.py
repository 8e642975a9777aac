"""Runs it where the package is not on the path: `python -I .../msprof/__main__.py --export=on --output=PROF_...`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
    from torchferry.emulate.cann.msprof.command import main

    sys.exit(main(sys.argv[1:]))
