"""The line with which a command hands over to the next one: what to type now, ready to be copied."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from torchferry.conversion.discover import read_file
from torchferry.conversion.target import Target
from torchferry.report.safe import one_line
from torchferry.text import Language, Text, user_language

_NEXT = Text("next: {command}", "下一步：{command}")
_TEMPLATE = Text(
    "next, with the script that trains in place of SCRIPT: {command}",
    "下一步（请把 SCRIPT 换成训练脚本）：{command}",
)
_SCRIPT = "SCRIPT"  # the program that trains, where a project has several or none that is clear
# What a script that trains holds, and what it is called.
_TRAINS = (b".backward(", b".fit(", b".train()")
_STARTS = re.compile(rb"^if[ \t(]+(?:__name__|['\"]__main__)", re.MULTILINE)
_NAMES = ("train.py", "main.py", "run.py")
_LARGEST = 1_000_000  # bytes; beyond that it is data written as Python


def after_scan(path: Path, target: Target, language: Language | None) -> str:
    """A scan is followed by the conversion, into a folder beside this one."""
    device = "portable" if target.is_portable else target.vendor.device_type
    folder = path if path.is_dir() else path.parent
    copy = Path(f"{folder.resolve().name}_{device}")
    if Path.cwd().is_relative_to(path.resolve()):
        copy = ".." / copy
    return _line(language, "convert", str(path), "--to", target.name, "-o", str(copy))


def training_script(folder: Path, paths: Iterable[str]) -> str:
    """The one script of a project that trains, by its content and then by its name; "" if several may be it."""
    modules = sorted(path for path in paths if path.endswith(".py"))
    if len(modules) == 1:
        return modules[0]
    scripts: list[str] = []
    for path in modules:
        try:
            data = read_file(os.path.join(folder, path))
        except OSError:
            continue
        if len(data) <= _LARGEST and any(word in data for word in _TRAINS):
            scripts.append(path)
    if len(scripts) > 1:
        started = [path for path in scripts if _STARTS.search(read_file(os.path.join(folder, path)))]
        scripts = started or scripts
    for name in _NAMES:
        if len(scripts) > 1:
            scripts = [path for path in scripts if path == name] or scripts
    return scripts[0] if len(scripts) == 1 else ""


def after_conversion(
    path: Path, output: Path, target: Target, distributed: str, language: Language | None, script: str = ""
) -> str:
    """A conversion is followed by its proof; that of a script for several cards, which share the data, by a run.

    "" if there is no simulated device to do it on."""
    if target.is_portable or not target.vendor.plugin:
        return ""
    to = ("--to", target.name)
    script = distributed or script or _SCRIPT
    original, converted = (str(each / script if each.is_dir() else each) for each in (path, output))
    if distributed:
        return _line(language, "run", *to, "--converted", "--nproc", "2", converted)
    words = ("prove", *to, "--before", original, "--after", converted)
    is_template = script == _SCRIPT and path.is_dir()
    return _line(language, *words, frame=_TEMPLATE if is_template else _NEXT)


def after_mending(checkpoint: Path, language: Language | None) -> str:
    """Weights that are in order are followed by the offline model; of what, only the user knows."""
    model = ("--model", "MODULE:FACTORY", "--input", "SHAPE")
    output = str(checkpoint.with_suffix(".onnx"))
    return _line(language, "export", str(checkpoint), *model, "--to", "VENDOR", "-o", output)


def _line(language: Language | None, *words: str, frame: Text = _NEXT) -> str:
    line = frame.format(command=f"ferry {shlex.join(words)}")
    return one_line(line.in_language(language or user_language()))
