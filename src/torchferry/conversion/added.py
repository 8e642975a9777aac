"""Files that a conversion adds: where a module goes that converted files import, and the launch script."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.conversion.discover import read_file
from torchferry.conversion.file import WELL_KNOWN
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.settings import Distributed
from torchferry.conversion.target import Helper, Target
from torchferry.finding import Kind
from torchferry.outcome import FileRecord, FileStatus, Hunk

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(?:\(([^)]*)\)|([^\n#;(]*))|import[ \t]+([^\n#;]*))",
    re.MULTILINE,
)
_MAIN = re.compile(rb"^if[ \t(]+(?:__name__|['\"]__main__)", re.MULTILINE)
_NAME = re.compile(rb"[^\W\d][\w.]*")
_PACKAGING = ("setup.py", "pyproject.toml", "setup.cfg")
_LARGEST = 2_000_000  # bytes; beyond that it is data written as Python


@dataclass
class _Source:
    """What the imports of one file say."""

    path: str
    absolute: set[str] = field(default_factory=set)  # dotted names; `from a import b` gives a and a.b
    is_relative: bool = False  # it imports from its own package
    is_script: bool = False
    changes_path: bool = False  # it finds its modules by a way of its own

    @cached_property
    def folder(self) -> str:
        return posixpath.dirname(self.path)


@dataclass
class HelperPlacement:
    """By file: the folder of the module that it imports, and the package to import it from, if from one."""

    folders: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)


def place_helper(folder: Path, paths: Iterable[str]) -> HelperPlacement:
    """Look at the Python files of a project, given by their paths relative to its folder."""
    return _Project(folder, {path.replace(os.sep, "/") for path in paths}).placement()


class _Project:
    def __init__(self, folder: Path, paths: set[str]) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self.paths = paths
        self.sources = [_read(folder, path) for path in sorted(paths) if path.endswith((".py", ".pyw"))]
        self.importers: dict[str, set[str]] = {}  # file -> the folders from which others import it
        self.packages_of: dict[str, set[str]] = {}  # file -> the top packages of the project that it imports
        for source in self.sources:
            places = list(self._search_path(source))
            for name in source.absolute:
                self._note_import(source, name, places)

    @cached_property
    def _in_folders(self) -> dict[str, list[_Source]]:
        """By folder: what lies directly in it."""
        found: dict[str, list[_Source]] = {}
        for source in self.sources:
            found.setdefault(source.folder, []).append(source)
        return found

    def _note_import(self, source: _Source, name: str, places: Iterable[str]) -> None:
        path = name.replace(".", "/")
        for place in places:
            target = f"{place}/{path}" if place else path
            file = next(
                (file for file in (f"{target}.py", f"{target}/__init__.py") if file in self.paths), ""
            )
            if not file:
                continue
            self.importers.setdefault(file, set()).add(place)
            top = self._top_package(posixpath.dirname(file))
            if top is not None and posixpath.dirname(top) == place:
                self.packages_of.setdefault(source.path, set()).add(top)
            return

    def _search_path(self, source: _Source) -> Iterator[str]:
        """Where a file may find modules, nearest first; for a module of a package, not within that package."""
        folder = source.folder
        top = self._top_package(folder)
        if top is not None and not source.is_script:
            if not top:
                return
            folder = posixpath.dirname(top)
        while folder:
            yield folder
            folder = posixpath.dirname(folder)
        yield ""
        yield "src"

    def _top_package(self, folder: str) -> str | None:
        """The outermost package that a folder belongs to, "" if that is the project's folder itself."""
        top: str | None = None
        while posixpath.join(folder, "__init__.py") in self.paths:
            top = folder
            if not folder:
                break
            folder = posixpath.dirname(folder)
        return top

    def placement(self) -> HelperPlacement:
        found = HelperPlacement()
        scripts: list[_Source] = []
        for source in self.sources:
            place = self._in_package(source)
            if place is None:
                scripts.append(source)
                # A folder on the module path wherever the file is used.
                importers = self.importers.get(source.path, {source.folder})
                found.folders[source.path] = min(importers, key=lambda place: (len(place), place))
                continue
            found.folders[source.path] = place[0]
            if place[1]:
                found.packages[source.path] = place[1]
        packages = {place for path, place in found.folders.items() if path in found.packages}
        for source in scripts:
            top = next((top for top in sorted(self.packages_of.get(source.path, ())) if top in packages), "")
            # A script that imports the package anyway needs no copy of its own.
            if top and not source.changes_path and source.path not in self.importers:
                found.folders[source.path], found.packages[source.path] = top, posixpath.basename(top)
        return found

    def _in_package(self, source: _Source) -> tuple[str, str] | None:
        """Folder and package for a module of a package; None for a file that is none."""
        top = self._top_package(source.folder)
        if top is None:
            return (source.folder, ".") if source.is_relative else None
        if not source.is_relative:
            if not top and any(name.partition(".")[0] == self.name for name in source.absolute):
                return top, self.name  # it knows the project, which is a package, by the name of its folder
            # Of what lies in a package's folder not all are its modules: a script may lie there as well.
            importers = self.importers.get(source.path)
            uses_package = top in self.packages_of.get(source.path, ())
            if (
                posixpath.dirname(top) not in importers
                if importers
                else source.is_script and not uses_package
            ):
                return None
        depth = len(source.folder.split("/")) if source.folder else 0
        dots = "." * (1 + depth - (len(top.split("/")) if top else 0))
        if not top:
            return top, dots
        above = posixpath.dirname(top)
        # Scripts beside a package use it, and nobody installs it: then they all find what lies there.
        places = {above, posixpath.dirname(above)} if posixpath.basename(above) == "src" else {above}
        files = [os.path.join(self.folder, place, name) for place in places for name in _PACKAGING]
        is_used = any(top in self.packages_of.get(item.path, ()) for item in self._in_folders.get(above, ()))
        if is_used and not any(map(os.path.exists, files)):
            return above, ""
        return top, dots if source.is_relative else posixpath.basename(top)


def _read(folder: Path, path: str) -> _Source:
    source = _Source(path)
    try:
        data = read_file(os.path.join(folder, path))
    except OSError:
        return source
    if len(data) > _LARGEST:
        return source
    source.is_script = _MAIN.search(data) is not None
    source.changes_path = b"sys.path" in data
    for module, in_brackets, on_line, plain in _IMPORT.findall(data):
        if module.startswith(b"."):
            source.is_relative = True
        elif module:
            name = module.decode("ascii", "replace")
            source.absolute.add(name)
            names = _NAME.findall(re.sub(rb"\bas\s+\w+|#[^\n]*", b"", in_brackets or on_line))
            source.absolute.update(f"{name}.{leaf.decode('ascii', 'replace')}" for leaf in names)
        else:
            for part in plain.split(b","):
                source.absolute.update(name.decode("ascii", "replace") for name in _NAME.findall(part)[:1])
    return source


if TYPE_CHECKING:
    from torchferry.conversion.program.training_program import TrainingProgram
    from torchferry.conversion.project import ProjectOutcome


@dataclass(frozen=True)
class AddedFile:
    """The content of a file that was not there before."""

    data: bytes
    executable: bool = False
    may_exist: bool = False  # a file of that name in the project is one of an earlier conversion, and as good

    def record(self, path: str) -> FileRecord:
        """The file as reports list it: every line of it is new."""
        lines = tuple(("+", "", line) for line in self.data.decode("utf-8").splitlines())
        return FileRecord(path, FileStatus.ADDED, hunks=(Hunk(1, 1, lines),))


class TakenNames:
    """The paths that a project has, as file systems compare them that know no upper case."""

    def __init__(self, paths: Iterable[str], folder: str = "") -> None:
        self._folder = folder  # where to look for files that the paths leave out, "" for nowhere
        self._paths = {_key(path) for path in paths}

    def __contains__(self, path: str) -> bool:
        if _key(path) in self._paths:
            return True
        return bool(self._folder) and os.path.lexists(os.path.join(self._folder, path))

    def free(self, path: str) -> str:
        """The path itself, or with a number before its suffix the first that is not taken."""
        stem, suffix = posixpath.splitext(path)
        number, free = 1, path
        while free in self:
            number += 1
            free = f"{stem}_{number}{suffix}"
        return free


def _key(path: str) -> str:
    return path.replace(os.sep, "/").casefold()


# The script that starts a training program on all cards, written beside the converted project.

RULE_ID = "TF710"

# Characters of a file's name that would end a comment, or hide what stands in it.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

_TORCHRUN = """\
exec "$PYTHON" -m torch.distributed.run \\
    --nnodes "$NNODES" --node_rank "$NODE_RANK" --nproc_per_node "$NPROC" \\
    --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" \\
    "$here"/{script} "$@"
"""
_ITSELF = """\
exec "$PYTHON" "$here"/{script}{options} "$@"
"""
_CHOICE = """\
{cards}="${{{cards}:-${{{visible}:-}}}}"
if [[ -z "${cards}" && -n "${{NPROC:-}}" ]]; then
    {cards}="$(seq -s, 0 $((NPROC - 1)))"
fi
if [[ -n "${cards}" ]]; then
    export {visible}="${cards}"
    IFS=, read -r -a list <<<"${cards}"
    NPROC="${{NPROC:-${{#list[@]}}}}"
fi
"""
_CARDS = "#   {cards}  the cards of this node to use, as in 0,1,2,3 (default: {visible}, else all)\n"
# Options by which scripts that start their processes themselves are told of the other nodes.
_NODE_OPTIONS = {
    "--multiprocessing-distributed": "",
    "--world-size": ' "$NNODES"',
    "--rank": ' "$NODE_RANK"',
    "--dist-url": ' "tcp://$MASTER_ADDR:$MASTER_PORT"',
}


def script_name(target: Target) -> str:
    """What the launch script of a target is called."""
    return "run_distributed.sh" if target.is_portable else f"run_distributed_{target.vendor.device_type}.sh"


def add_launch_script(outcome: ProjectOutcome, settings: Distributed | None, written_to: str = "") -> None:
    """Add the launch script, if the program runs on several cards now, or did before.

    `written_to`: the name that the script gets, if it is written to a file of its own.
    """
    if settings is None:
        return
    from torchferry.conversion.distributed.training import find_sign
    from torchferry.conversion.program.training_program import TrainingProgram

    outcome.added.pop(script_name(outcome.target), None)
    program = TrainingProgram(settings.main, Neighbours(outcome.folder, WELL_KNOWN))
    is_rewritten = any(
        finding.rule == RULE_ID and finding.kind is Kind.CHANGE
        for item in outcome.outcomes
        for finding in item.findings
    )
    if is_rewritten or find_sign(program) is not None:
        text = launch_script(program, written_to or settings.main, outcome.target)
        outcome.add(script_name(outcome.target), AddedFile(text.encode("utf-8"), executable=True))


def launch_script(program: TrainingProgram, main: str, target: Target) -> str:
    """The text of the launch script."""
    from torchferry.conversion.distributed.training import ProgramStart, start_of

    starts_itself = start_of(program) is ProgramStart.ITSELF
    start = _ITSELF if starts_itself else _TORCHRUN
    visible = target.vendor.visible_devices_env
    cards = f"{target.vendor.device_type.upper()}S"
    # The variables of the vendor, as its guide sets them, and the choice of cards.
    variables = sorted(target.vendor.launch_env.items())
    exports = [f'export {name}="${{{name}:-{value}}}"' for name, value in variables]
    if visible:
        exports += ["", *(line.format(cards=cards, visible=visible) for line in _CHOICE.splitlines())]
    # The options with which the classic scripts are told what the launch script knows.
    texts = {text_of(node) for _, call in program.calls for node in call.args}
    known = _NODE_OPTIONS.items() if "--multiprocessing-distributed" in texts else ()
    options = "".join(f" {option}{value}" for option, value in known if option in texts)
    words = {
        "@HOW@": "the program starts one process per card itself."
        if starts_itself
        else "one process per card, started by torchrun.",
        "@NAME@": script_name(target),
        "@SCRIPT@": _HIDDEN.sub("?", posixpath.basename(main)),
        "@ABOUT_CARDS@\n": _CARDS.format(cards=cards, visible=visible) if visible else "",
        "@EXPORTS@": "\n".join(exports),
        "@COUNT@": _count(target, main),
        "@REMEDY@": f"{cards} or NPROC" if visible else "NPROC",
        "@START@": start.format(script=shlex.quote(main), options=options),
    }
    text = resources.files(__package__).joinpath("assets/run_distributed.sh.txt").read_text("utf-8")
    # In one pass: what is put in may look like one of them.
    pattern = re.compile("|".join(map(re.escape, words)))
    return pattern.sub(lambda found: words[found[0]], text).rstrip() + "\n"


def _count(target: Target, main: str) -> str:
    """A line of Python, as a word of the shell, that prints how many cards there are; then what it is handed."""
    if target.helper is not None:
        folder = posixpath.dirname(main)
        places = '"$here"' + (f' "$here"/{shlex.quote(folder)}' if folder else "")
        name = target.helper.name
        code = f"import sys; sys.path[:0] = sys.argv[1:]; import {name}; print(max(1, {name}.device_count()))"
        return f"'{code}' {places}"
    if target.is_portable:
        return "'import torch; print(max(1, torch.accelerator.device_count()))'"
    imports = ", ".join(name for name in ("torch", target.vendor.plugin) if name)
    return f"'import {imports}; print({target.vendor.torch_module}.device_count())'"


# The module that a conversion adds for PyTorch Lightning, which knows no device but CUDA, MPS, TPUs
# and the CPU.

NAME = "ferry_lightning"
_SIGN = b'"""Lets PyTorch Lightning train on '
_PORTABLE = (
    'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"  '
    "# whatever is there"
)
_EITHER = '"{device}" if hasattr(torch, "{device}") and torch.{device}.is_available() else "cuda"'
_OPTIONAL = """
try:
    import {plugin}  # noqa: F401 - this adds torch.{device}
except ImportError:
    pass
"""


def placed(target: Target, folder: Path, paths: Sequence[str], sources: Sequence[bytes]) -> Target:
    """The target for one project: it knows how each file imports the module, if any file speaks of Lightning."""
    if not any(b"lightning" in data for data in sources):
        return target
    placement = place_helper(folder, paths)
    imports = {path: f"from {package} import {NAME}" for path, package in placement.packages.items()}
    helper = Helper(NAME, target.vendor, helper_source(target), imports, placement.folders)
    return replace(target, lightning=helper)


def import_line(target: Target, path: str) -> str:
    """The statement by which a file imports the module."""
    return target.lightning.line(path) if target.lightning else f"import {NAME}"


def add_helper(outcome: ProjectOutcome, helper: Helper | None) -> None:
    """Add a module beside the converted files that import it, unless an earlier conversion has."""
    if helper is None:
        return
    known = {entry.path.replace(os.sep, "/") for entry in outcome.entries}
    for item in outcome.outcomes:
        if item.new_data is not None and helper.name.encode() in item.new_data:
            path = item.path.replace(os.sep, "/")
            place = posixpath.join(helper.places.get(path, posixpath.dirname(path)), f"{helper.name}.py")
            if place not in known:
                outcome.added[place] = AddedFile(helper.data, may_exist=True)


def is_helper(data: bytes) -> bool:
    """Whether a file is such a module, of this conversion or an earlier one."""
    return data.startswith(_SIGN)


def helper_source(target: Target) -> bytes:
    """The module for a target."""
    template = (
        resources.files("torchferry.conversion").joinpath("assets/ferry_lightning.py.txt").read_text("utf-8")
    )
    vendor = target.helper.vendor if target.helper else target.vendor
    device, plugin = vendor.device_type, vendor.plugin
    if target.helper:
        where, expression = f"{vendor.company} and CUDA", _EITHER.format(device=device)
        line = _OPTIONAL.format(plugin=plugin, device=device) if plugin else ""
    elif target.is_portable:
        where, expression, line, device = "the accelerator that PyTorch finds", _PORTABLE, "", "..."
    else:
        where, expression = vendor.company, f'"{device}"'
        line = f"import {plugin}  # noqa: F401 - this adds torch.{device}\n" if plugin else ""
    words = {"@WHERE@": where, "@PLUGIN@\n": f"{line}\n", "@DEVICE@": expression, "@NAME@": device}
    for word, text in words.items():
        template = template.replace(word, text)
    return template.encode("utf-8")
