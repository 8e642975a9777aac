"""What PyTorch calls at the end of `import torch`: makes this process take part in what the environment asks for."""

from __future__ import annotations

import os

from torchferry import variables

_OFF = "0"


def autoload() -> None:
    """Do nothing, at once, unless a variable of ours is set, to anything but 0. Doing it again does nothing."""
    if all(os.environ.get(name, _OFF) == _OFF for name in variables.ALL):
        return
    import sys

    from torchferry.errors import FerryError
    from torchferry.launch.process import take_part

    try:
        take_part(os.environ)
    except FerryError as error:
        print(f"torchferry: {error.shown}", file=sys.stderr, flush=True)
        # PyTorch would wrap an Exception in one of its own, with a traceback that hides this line.
        raise SystemExit(error.exit_code) from None
