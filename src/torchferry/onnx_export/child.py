"""The process that makes a user's model and exports it: python -m torchferry.onnx_export.child REQUEST FOLDER."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from torchferry.errors import FerryError
from torchferry.files.aside import write_whole
from torchferry.onnx_export.model import ExportRequest
from torchferry.settings import decode, encode

RESULT, ERROR = "result.json", "error.txt"  # one of them is left in the folder


def main(request: str, folder: str) -> int:
    """Export as the request says; an error is left for the process that asked, a line for each of its lines."""
    if os.getcwd() not in sys.path:  # Python leaves it out where it is told to be safe
        sys.path.insert(0, os.getcwd())
    try:
        from torchferry.observe import torchvision_operators
        from torchferry.onnx_export.exporting import export_here

        torchvision_operators.install()
        exported = export_here(decode(ExportRequest, request), Path(folder))
        write_whole(Path(folder) / RESULT, encode(exported).encode())
    except FerryError as error:
        write_whole(Path(folder) / ERROR, "\n".join(error.lines).encode("utf-8", "backslashreplace"))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
