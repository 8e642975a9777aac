"""Captures a model in a process of its own, so that whatever it does ends there. Imports no torch."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from pathlib import Path

from torchferry.errors import RunError
from torchferry.files.aside import temporary_folder
from torchferry.launch.environment import environment_at
from torchferry.launch.parts import UNCOMPILED
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.supervise import Ending, own_stderr, run_supervised, stop_if_told
from torchferry.readiness import capture_json
from torchferry.readiness.model import Capture
from torchferry.readiness.models import child
from torchferry.readiness.models.request import ModelRequest, checked
from torchferry.sim.build import is_built
from torchferry.units import signal_name


def capture_model(request: ModelRequest, place: Place | None = None, timeout: float | None = None) -> Capture:
    """Make the model and capture one step of it, on a device or else on the CPU; what it prints goes to stderr."""
    if place is None:
        # CUDA's names mean the CPU and autocast casts as CUDA's, if the library that does it is there
        place = Place(DeviceKind.REFERENCE if is_built() else DeviceKind.AS_IS)
    else:
        request = replace(request, device=place.device_type)
    request = checked(request)
    with temporary_folder() as folder:
        command = [sys.executable, "-m", child.__name__, request.encode(), folder]
        environment = environment_at(place, extra=UNCOMPILED)
        ending = run_supervised(command, environment, stdout=own_stderr(), seconds=timeout, is_ours=True)
        stop_if_told(ending)
        return _result(request, Path(folder), ending)


def _result(request: ModelRequest, folder: Path, ending: Ending) -> Capture:
    error, capture = folder / child.ERROR, folder / child.CAPTURE
    if error.exists():
        raise RunError(error.read_text("utf-8"))
    if not capture.exists():
        raise RunError(f"--model {request.factory}: {_how_it_ended(ending)}")
    return capture_json.load(capture.read_text("utf-8"), capture.name)


def _how_it_ended(ending: Ending) -> str:
    if ending.out_of_time:
        return "it took longer than --timeout allows"
    if ending.exit_code == 128 + signal.SIGKILL:
        return "its process was killed, most likely for want of memory; a smaller --input, or --fake"
    if ending.exit_code > 128:
        return f"its process crashed with {signal_name(ending.exit_code - 128)}"
    return f"its process ended with exit code {ending.exit_code}; what it printed is above"
