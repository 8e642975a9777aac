"""The line with which a command hands over to the next one: what to type now, ready to be copied."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from torchferry.conversion.discover import read_file
from torchferry.conversion.target import Target
from torchferry.report.commands import NEXT, ferry_command, in_folder, next_step, vendor_path_words
from torchferry.text import Text

_ONE_OF = Text("next, one of these:", "下一步（选择其一）：")
_SEVERAL_CARDS = Text("next, on several cards: {command}", "下一步，使用多卡：{command}")
_SHOWN = 3  # scripts, where a project has several that train
# What a script that trains holds, and what it is called.
_TRAINS = (b".backward(", b".fit(", b".train()")
_STARTS = re.compile(rb"^if[ \t(]+(?:__name__|['\"]__main__)", re.MULTILINE)
_NAMES = ("train.py", "main.py", "run.py")
_LARGEST = 1_000_000  # bytes; beyond that it is data written as Python


def after_scan(path: Path, target: Target, paths: Sequence[Path] = ()) -> Text:
    """A scan is followed by the conversion, into a folder beside this one."""
    copy = copy_of(path, "portable" if target.is_portable else target.vendor.device_type)
    words = ["convert", str(path), "--to", target.name, *vendor_path_words(paths), "-o", str(copy)]
    return next_step(*words)


def copy_of(path: Path, name: str) -> Path:
    """The folder for a converted copy: beside the project, also where the user stands in it; one that is not there yet."""
    folder = (path if path.is_dir() else path.parent).resolve()
    beside = Path("..") if Path.cwd().is_relative_to(folder) else Path()
    stem = f"{folder.name}_{name}"
    places = (beside / (f"{stem}{number}" if number else stem) for number in itertools.count())
    return next(place for place in places if not place.exists())


def training_scripts(folder: Path, paths: Iterable[str]) -> list[str]:
    """The scripts of a project that train, by their content and then by their names: one, if that is clear."""
    modules = sorted(path for path in paths if path.endswith(".py"))
    if len(modules) == 1:
        return modules
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
    return scripts


def after_conversion(
    path: Path,
    output: Path,
    target: Target,
    distributed: str,
    scripts: Sequence[str],
    paths: Sequence[Path] = (),
) -> list[Text]:
    """A conversion is followed by its proof; that of a script for several cards, which share the data, by a run.

    Nothing if there is no simulated device to do it on, or no script that trains."""
    if target.is_portable or not target.vendor.plugin:
        return []
    to = ("--to", target.name, *vendor_path_words(paths))
    if distributed:  # in its folder, as its launch script does: it may open files by relative paths
        own = ("--to", target.name, *vendor_path_words([each.absolute() for each in paths]))
        folder = output if output.is_dir() else output.parent
        script = distributed if output.is_dir() else output.name
        command = ferry_command("run", *own, "--converted", "--nproc", "2", script)
        return [NEXT.format(command=in_folder(folder, command))]
    proofs = [
        ("prove", *to, "--before", _in(path, script), "--after", _in(output, script))
        for script in scripts[:_SHOWN]
    ]
    if len(proofs) == 1:
        return [next_step(*proofs[0])]
    commands = [f"  {ferry_command(*words)}" for words in proofs]
    return [_ONE_OF, *(Text(line, line) for line in commands)] if commands else []


def _in(project: Path, script: str) -> str:
    return str(project / script if project.is_dir() else project)


def after_proof(original: Path, converted: Path, vendor: str, paths: Sequence[Path] = ()) -> list[Text]:
    """A program that is proved on one card is followed by its form for several; nothing if it has one already."""
    project = _common_project(original, converted)
    if project is None or any(map(_is_for_several_cards, project.rglob("*.py"))):
        return []
    script = str(original.resolve().relative_to(project.resolve()))
    to = ("--to", vendor, *vendor_path_words(paths))
    copy = str(copy_of(project, "distributed"))
    words = ("convert", str(project), *to, "-o", copy, "--distributed", "--main", script)
    return [_SEVERAL_CARDS.format(command=ferry_command(*words))]


def _common_project(original: Path, converted: Path) -> Path | None:
    """The folder of the original, from where both sides' paths are the same; None: there is no such folder."""
    mine, theirs = original.resolve(), converted.resolve()
    while mine.name == theirs.name and mine != theirs and mine.name:
        mine, theirs = mine.parent, theirs.parent
    if mine == original.resolve() or mine == theirs or not (theirs / "findings.json").is_file():
        return None
    return Path(os.path.relpath(mine))


def _is_for_several_cards(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return b"init_process_group" in data or b"accelerate" in data or b"lightning" in data


def after_mending(checkpoint: Path) -> Text:
    """What is inside the copy now."""
    return next_step("checkpoint", "info", checkpoint)
