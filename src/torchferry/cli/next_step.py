"""The line with which a command hands over to the next one: what to type now, ready to be copied."""

from __future__ import annotations

import shlex
from pathlib import Path

from torchferry.convert.target import Target
from torchferry.report.safe import one_line
from torchferry.text import Language, Text, user_language

_NEXT = Text("next: {command}", "下一步：{command}")
_SCRIPT = "SCRIPT"  # the program that trains: which one it is, a project does not tell


def after_scan(path: Path, target: Target, language: Language | None) -> str:
    """A scan is followed by the conversion, into a folder beside this one."""
    device = "portable" if target.is_portable else target.vendor.device_type
    folder = path if path.is_dir() else path.parent
    copy = Path(f"{folder.resolve().name}_{device}")
    if Path.cwd().is_relative_to(path.resolve()):
        copy = ".." / copy
    return _line(language, "convert", str(path), "--to", target.name, "-o", str(copy))


def after_conversion(
    path: Path, output: Path, target: Target, distributed: str, language: Language | None
) -> str:
    """A conversion is followed by its proof; that of a script for several cards, which share the data, by a run.

    "" if there is no simulated device to do it on."""
    if target.is_portable or not target.vendor.plugin:
        return ""
    to = ("--to", target.name)
    script = distributed or _SCRIPT
    original, converted = (str(each / script if each.is_dir() else each) for each in (path, output))
    if distributed:
        return _line(language, "run", *to, "--converted", "--nproc", "2", converted)
    return _line(language, "prove", *to, "--original", original, "--converted", converted)


def after_mending(checkpoint: Path, language: Language | None) -> str:
    """Weights that are in order are followed by the offline model; of what, only the user knows."""
    model = ("--model", "MODULE:FACTORY", "--input", "SHAPE")
    return _line(
        language,
        "export",
        str(checkpoint),
        *model,
        "--to",
        "VENDOR",
        "-o",
        str(checkpoint.with_suffix(".onnx")),
    )


def _line(language: Language | None, *words: str) -> str:
    line = _NEXT.format(command=f"ferry {shlex.join(words)}")
    return one_line(line.in_language(language or user_language()))
