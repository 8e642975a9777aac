"""The vendor's own step after ONNX: how its converter is called, and calling it. Imports no torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchferry.errors import RunError
from torchferry.export.model import Exported, Port
from torchferry.vendors.offline import Conversion

CHIP = "CHIP"  # stands in a command for a name that only the user knows


def command_for(conversion: Conversion, exported: Exported, chip: str, batches: tuple[int, ...]) -> list[str]:
    """The words of the vendor's command."""
    model = Path(exported.output)
    free = [port for port in exported.inputs if any(not size.isdecimal() for size in port.shape)]
    is_batch = bool(free) and all(
        not port.shape[0].isdecimal() and all(size.isdecimal() for size in port.shape[1:]) for port in free
    )
    values = {
        "onnx": str(model),
        "output": str(model.with_suffix(conversion.suffix)),
        "chip": chip or CHIP,
        "batches": ",".join(map(str, batches)),
    }
    words = [conversion.tool]
    for word in (*conversion.command, *(conversion.dynamic if is_batch else ())):
        words += _filled(word, values, conversion, exported.inputs)
    return words


def _filled(
    word: str, values: Mapping[str, str], conversion: Conversion, inputs: tuple[Port, ...]
) -> list[str]:
    shapes = [_shape(conversion, port) for port in inputs]
    if word == "{shapes}" and conversion.shape_separator == " ":
        return shapes
    return [word.format(**values, shapes=conversion.shape_separator.join(shapes))]


def _shape(conversion: Conversion, port: Port) -> str:
    sizes = ",".join(size if size.isdecimal() else conversion.free_size for size in port.shape)
    return conversion.shape.format(name=port.name, sizes=sizes)


def lacks_chip(command: Sequence[str]) -> bool:
    """Whether the name of the chip is still to be filled in."""
    return any(word.split("=")[-1] == CHIP for word in command)


def find_tool(conversion: Conversion) -> str | None:
    """Where the converter is, on PATH or where its toolkit puts it."""
    places = os.pathsep.join((os.environ.get("PATH", ""), *conversion.folders))
    return shutil.which(conversion.tool, path=places)


def run_tool(conversion: Conversion, command: list[str]) -> None:
    """Call the converter; what it prints goes to stderr."""
    program = find_tool(conversion)
    if program is None:
        raise RunError(
            f"--run: {conversion.tool} is not here; install the vendor's toolkit, or run the command that was printed "
            "where it is"
        )
    if lacks_chip(command):
        raise RunError(f"--run: {conversion.tool} must know the chip; add --chip ({conversion.chip.en})")
    done = subprocess.run([program, *command[1:]], stdout=sys.stderr, check=False)
    if done.returncode:
        raise RunError(f"{conversion.tool} ended with exit code {done.returncode}; what it printed is above")
