"""Exports in a process of its own, so that whatever the user's model does ends there. Imports no torch."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from torchferry.errors import ANOTHER_PLACE, FerryError, OutputError, RunError, not_writable
from torchferry.files.aside import folder_aside, remove_leftovers, write_whole
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.supervise import own_stderr, run_supervised, stop_if_told
from torchferry.onnx_export.model import Exported, ExportRequest, checked_request
from torchferry.settings import decode, encode
from torchferry.sim.build import is_built
from torchferry.text import Text

# Where an export is made, and how it comes to its place: whole or not at all.

DATA = ".data"  # after the name of the model: weights that are too large for it


def check_output(output: Path, checkpoint: Path | None, force: bool) -> None:
    """Refuse, before the work, a place where no model may be put."""
    if output.exists() and not output.is_file():
        raise OutputError(
            Text(
                f"{output}: not a regular file; choose another name", f"{output}：不是普通文件；请另选文件名"
            )
        )
    if checkpoint is not None and os.path.realpath(checkpoint) == os.path.realpath(output):
        raise OutputError(
            Text(
                f"{output}: this is the checkpoint itself; choose another name",
                f"{output}：这正是 checkpoint 本身；请另选文件名",
            )
        )
    if output.exists() and not force:
        raise OutputError(
            Text(
                f"{output}: already exists; choose another name, or add --force to replace it",
                f"{output}：已存在；请另选文件名，或加 --force 替换",
            )
        )


@contextlib.contextmanager
def work_folder(output: Path) -> Iterator[Path]:
    """A folder beside the output, gone afterwards with whatever is in it; folders on the way there are made."""
    missing = [folder for folder in (output.parent, *output.parent.parents) if not folder.exists()]
    with contextlib.ExitStack() as opened:
        opened.callback(_remove_empty, missing)
        try:
            if missing:
                output.parent.mkdir(parents=True)
            remove_leftovers(output.parent)
            aside = opened.enter_context(folder_aside(output.parent))
        except OSError as error:
            raise _unwritable(output, error) from None
        yield aside.path


def _remove_empty(folders: list[Path]) -> None:
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()


def put(made: Path, output: Path, may_replace: bool) -> None:
    """Bring the model, and its weights if they lie apart, to their place: weights first, then what names them."""
    weights, its_weights = made.with_name(made.name + DATA), output.with_name(output.name + DATA)
    if weights.exists() and its_weights.exists() and not may_replace:
        raise OutputError(
            Text(
                f"{its_weights}: already exists; choose another name, or add --force to replace it",
                f"{its_weights}：已存在；请另选文件名，或加 --force 替换",
            )
        )
    try:
        if weights.exists():
            os.replace(weights, its_weights)
        os.replace(made, output)
    except OSError as error:
        raise _unwritable(output, error) from None


def _unwritable(output: Path, error: OSError) -> OutputError:
    return not_writable(output, error, ANOTHER_PLACE)


NEEDED = ("torch", "onnx", "onnxruntime")
RESULT, ERROR = "result.json", "error.json"  # one of them is left in the folder


class ExportError(FerryError):
    """What went wrong in the other process, a line for each of its lines."""


def export(request: ExportRequest) -> Exported:
    """Make the model, export and check it; what it prints goes to stderr."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise RunError(
            Text(
                f"ferry export needs {', '.join(missing)}; pip install 'torchferry[export]'",
                f"ferry export 需要 {', '.join(missing)}；请执行 pip install 'torchferry[export]'",
            )
        )
    request = checked_request(request)
    # CUDA's names mean the CPU, for models that move their parts themselves
    environment = environment_at(Place(DeviceKind.REFERENCE if is_built() else DeviceKind.AS_IS))
    with work_folder(Path(request.output)) as folder:
        command = [sys.executable, "-m", __name__, encode(request), str(folder.resolve())]
        ending = run_supervised(command, environment, stdout=own_stderr(), is_ours=True)
        stop_if_told(ending)
        error, result = folder / ERROR, folder / RESULT
        if error.exists():
            raise ExportError.from_json(error.read_text("utf-8"))
        if not result.exists():
            raise RunError(
                Text(
                    f"the export ended with exit code {ending.exit_code}; its output is above",
                    f"导出以退出码 {ending.exit_code} 结束；其输出见上文",
                )
            )
        return decode(Exported, result.read_text("utf-8"))


# The process that makes a user's model and exports it: python -m torchferry.onnx_export.launching REQUEST FOLDER.


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
        write_whole(Path(folder) / ERROR, error.to_json().encode())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
