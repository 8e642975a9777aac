"""Exports in a process of its own, so that whatever the user's model does ends there. Imports no torch."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from torchferry.errors import FerryError, RunError
from torchferry.export import child
from torchferry.export.model import Exported, decode
from torchferry.export.place import work_folder
from torchferry.export.request import ExportRequest, checked_request
from torchferry.launch.environment import child_environment
from torchferry.launch.supervise import own_stderr, run_supervised, stop_if_told
from torchferry.runtime.settings import REFERENCE, LayerSettings
from torchferry.sim.build import is_built

NEEDED = ("torch", "onnx", "onnxruntime")


class ExportError(FerryError):
    """What went wrong in the other process, a line for each of its lines."""

    def __init__(self, *said: str) -> None:
        super().__init__("\n".join(said))
        self.said = said

    @property
    def lines(self) -> tuple[str, ...]:
        return self.said


def export(request: ExportRequest) -> Exported:
    """Make the model, export and check it; what it prints goes to stderr."""
    _need_packages()
    request = checked_request(request)
    # CUDA's names mean the CPU, for models that move their parts themselves
    on_cpu = LayerSettings(REFERENCE) if is_built() else None
    environment = child_environment(os.environ, None, None, on_cpu)
    with work_folder(Path(request.output)) as folder:
        command = [sys.executable, "-m", child.__name__, request.encode(), str(folder.resolve())]
        ending = run_supervised(command, environment, stdout=own_stderr(), is_ours=True)
        stop_if_told(ending)
        error, result = folder / child.ERROR, folder / child.RESULT
        if error.exists():
            raise ExportError(*error.read_text("utf-8").splitlines())
        if not result.exists():
            raise RunError(f"the export ended with exit code {ending.exit_code}; what it printed is above")
        return decode(result.read_text("utf-8"))


def _need_packages() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise RunError(f"ferry export needs {', '.join(missing)}; pip install 'torchferry[export]'")
