"""The process that makes a user's model and captures it: python -m torchferry.readiness.models.child REQUEST FOLDER."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from torchferry.errors import FerryError
from torchferry.files.aside import write_whole
from torchferry.readiness import capture_json
from torchferry.readiness.models.request import decode

CAPTURE, ERROR = "capture.json", "error.txt"  # one of them is left in the folder


def main(request: str, folder: str) -> int:
    """Capture as the request says; an error is one line for the process that asked."""
    if os.getcwd() not in sys.path:  # Python leaves it out where it is told to be safe
        sys.path.insert(0, os.getcwd())
    try:
        from torchferry.readiness.models.step import capture_here

        write_whole(Path(folder, CAPTURE), capture_json.dump(capture_here(decode(request))).encode())
    except FerryError as error:
        write_whole(Path(folder, ERROR), str(error).encode("utf-8", "backslashreplace"))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
