"""Exports in the process of the tests."""

from __future__ import annotations

from pathlib import Path

from torchferry.onnx_export.exporting import export_here
from torchferry.onnx_export.launching import work_folder
from torchferry.onnx_export.model import Exported, ExportRequest, checked_request


def exported_here(request: ExportRequest) -> Exported:
    """As `ferry export` does it."""
    request = checked_request(request)
    with work_folder(Path(request.output)) as folder:
        return export_here(request, folder)
