"""Runs a user's program or model as a process of its own and gathers the operators that it calls. Imports no torch.

The process of a model is `python -m torchferry.readiness.runs REQUEST FOLDER`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchferry.errors import FerryError, RunError
from torchferry.files.aside import temporary_folder, write_whole
from torchferry.launch.environment import environment_at
from torchferry.launch.parts import UNCOMPILED
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.program import Program
from torchferry.launch.supervise import Ending, own_stderr, run_supervised, stop_if_told
from torchferry.readiness import capture_json
from torchferry.readiness.capture.settings import SUFFIX, CaptureSettings
from torchferry.readiness.model import Capture, OperatorSite, Signature, Use
from torchferry.readiness.models.request import ModelRequest, checked
from torchferry.settings import decode, encode
from torchferry.sim.build import is_built
from torchferry.text import Text
from torchferry.units import signal_name

CAPTURE, ERROR = "capture.json", "error.json"  # one of them is left in the folder by the process of a model
ENDED_ILL = "ended_ill"
NO_STEP = "no_step"


def merged(captures: Sequence[Capture]) -> Capture:
    """The processes that trained, added up; helpers that called an operator or two only where nobody trained."""
    trained = [capture for capture in captures if capture.steps] or list(captures)
    return replace(
        trained[0],
        steps=max(capture.steps for capture in trained),
        seconds=max(capture.seconds for capture in trained),
        processes=len(trained),
        uses=_added(trained),
        modules=tuple(dict.fromkeys(module for capture in trained for module in capture.modules)),
        notes=tuple(dict.fromkeys(note for capture in trained for note in capture.notes)),
    )


def _added(captures: Sequence[Capture]) -> tuple[Use, ...]:
    if len(captures) == 1:
        return captures[0].uses
    found: dict[tuple[Signature, OperatorSite], Use] = {}
    for use in (use for capture in captures for use in capture.uses):
        one = found.get((use.signature, use.site))
        if one is not None:
            calls, seconds = one.calls + use.calls, one.seconds + use.seconds
            use = replace(one, calls=calls, seconds=seconds, varied=one.varied or use.varied)
        found[use.signature, use.site] = use
    return tuple(found.values())


_NO_OPERATOR = Text(
    "{program}: ended without calling a PyTorch operator; is it the training program?",
    "{program}：没有调用任何 PyTorch 算子就已结束；请确认这是训练程序",
)
_TOO_SLOW = Text(
    "{program}: exceeded --timeout before it called an operator; allow more time",
    "{program}：在调用算子之前就超过了 --timeout；请延长时限",
)
_ENDED = Text(
    "{program}: ended with exit code {code} before it called an operator; its output is above",
    "{program}：在调用算子之前就以退出码 {code} 结束；其输出见上文",
)
_MODEL_ENDED = Text(
    "--model {model}: its process ended with exit code {code}; its output is above",
    "--model {model}：其进程以退出码 {code} 结束；输出见上文",
)
_MODEL_TOO_SLOW = Text(
    "--model {model}: exceeded --timeout; allow more time", "--model {model}：超过了 --timeout；请延长时限"
)
_MODEL_KILLED = Text(
    "--model {model}: its process was killed, probably out of memory; give a smaller --input, or --fake",
    "--model {model}：其进程被终止，很可能是内存不足；请减小 --input，或使用 --fake",
)


def _without_capture(ending: Ending) -> Text:
    """Why the process of a model has left nothing."""
    if ending.out_of_time:
        return _MODEL_TOO_SLOW
    if ending.exit_code == 128 + signal.SIGKILL:
        return _MODEL_KILLED
    if ending.exit_code > 128:
        name = signal_name(ending.exit_code - 128)
        return Text(
            f"--model {{model}}: its process crashed with {name}", f"--model {{model}}：其进程因 {name} 崩溃"
        )
    return _MODEL_ENDED


def capture_program(
    program: Program,
    place: Place,
    steps: int | None = 1,
    timeout: float | None = None,
    quiet: bool = False,
) -> Capture:
    """Run it for so many steps; what it prints goes to stderr, or nowhere if that is to be quiet."""
    # a capture chooses by itself as a device would where the CPU stands for one
    device = "" if place.kind is DeviceKind.REFERENCE else place.device_type
    with temporary_folder() as folder:
        settings = CaptureSettings(folder, program.shown(), steps, device)
        environment = environment_at(place, settings)
        stdout = subprocess.DEVNULL if quiet else own_stderr()
        ending = run_supervised(program.command(), environment, stdout=stdout, seconds=timeout)
        stop_if_told(ending)
        files = sorted(Path(folder).glob(f"*{SUFFIX}"))
        captures = [capture_json.load(file.read_text("utf-8"), file.name) for file in files]
    if not captures:
        how = _NO_OPERATOR
        if ending.out_of_time:
            how = _TOO_SLOW
        elif ending.exit_code:
            how = _ENDED
        raise RunError(how.format(program=program.target, code=ending.exit_code))
    capture = merged(captures)
    notes = [*capture.notes]
    if not capture.steps:
        notes.append(NO_STEP)
    # what the early end of a process does to the program is not its fault
    if ending.exit_code and (steps is None or capture.steps < steps):
        notes.append(ENDED_ILL)
    return replace(capture, notes=tuple(notes))


def capture_model(request: ModelRequest, place: Place | None = None, timeout: float | None = None) -> Capture:
    """Make the model and capture one step of it, on a device or else on the CPU; what it prints goes to stderr."""
    if place is None:
        # CUDA's names mean the CPU and autocast casts as CUDA's, if the library that does it is there
        place = Place(DeviceKind.REFERENCE if is_built() else DeviceKind.AS_IS)
    else:
        request = replace(request, device=place.device_type)
    request = checked(request)
    with temporary_folder() as folder:
        command = [sys.executable, "-m", __name__, encode(request), folder]
        environment = environment_at(place, extra=UNCOMPILED)
        ending = run_supervised(command, environment, stdout=own_stderr(), seconds=timeout, is_ours=True)
        stop_if_told(ending)
        error, capture = Path(folder, ERROR), Path(folder, CAPTURE)
        if error.exists():
            raise RunError.from_json(error.read_text("utf-8"))
        if not capture.exists():
            raise RunError(_without_capture(ending).format(model=request.factory, code=ending.exit_code))
        return capture_json.load(capture.read_text("utf-8"), capture.name)


def main(request: str, folder: str) -> int:
    """In the process of a model: capture as the request says; an error is one line for the process that asked."""
    if os.getcwd() not in sys.path:  # Python leaves it out where it is told to be safe
        sys.path.insert(0, os.getcwd())
    try:
        from torchferry.readiness.models.step import capture_here

        capture = capture_here(decode(ModelRequest, request))
        write_whole(Path(folder, CAPTURE), capture_json.dump(capture).encode())
    except FerryError as error:
        write_whole(Path(folder, ERROR), error.to_json().encode())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
