"""Starts a migration, or takes up one that was begun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchferry.errors import InputError
from torchferry.launch import plugin
from torchferry.launch.place import DeviceKind
from torchferry.migration.folder import NAME, find, open_or_make
from torchferry.migration.migrating import Migrating, Tell, load
from torchferry.migration.request import request_of
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

_MEANS = {DeviceKind.SIMULATED: "sim", DeviceKind.EMULATED: "emulate"}
_MARKS = (
    ".git",
    NAME,
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
)  # of a project's folder
_NO_SCRIPT = Text(
    "{path}: no such script; name the program that trains", "{path}：没有该脚本；请指定训练程序"
)
_NO_FOLDER = Text(
    "no migration folder found here; name it with --into, or start with `ferry migrate PROGRAM --to VENDOR`",
    "此处没有迁移文件夹；请用 --into 指定，或先运行 `ferry migrate PROGRAM --to VENDOR`",
)


def start(
    script: Path,
    to: str,
    tell: Tell,
    *,
    arguments: Sequence[str] = (),
    project: Path | None = None,
    copy: Path | None = None,
    into: Path | None = None,
    sim: bool = False,
    emulate: bool = False,
    steps: int = 20,
    seed: int = 0,
    nproc: int = 0,
    convert_options: Sequence[str] = (),
    vendor_path: Sequence[Path] = (),
) -> Migrating:
    """Begin the migration of a program that is started in the current folder."""
    if not script.is_file():
        raise InputError(_NO_SCRIPT.format(path=script))
    here = Path.cwd()
    root = project or project_of(script, here)
    vendor = get_vendor(to, vendor_path)
    kind = plugin.choose(vendor, sim, emulate, may_emulate=False).kind
    request = request_of(
        script,
        root,
        here,
        vendor.device_type,
        copy,
        to=vendor.name,
        arguments=tuple(arguments),
        means=_MEANS.get(kind, ""),
        steps=steps,
        seed=seed,
        nproc=nproc,
        convert_options=tuple(convert_options),
        vendor_paths=tuple(str(path.resolve()) for path in vendor_path),
    )
    folder = open_or_make(into or root / NAME, root.resolve().name)
    return Migrating(folder, request, root.resolve(), tell, resume=False)


def project_of(script: Path, here: Path) -> Path:
    """The project of a script: this folder if it looks like one, the nearest one above the script that does, or a guess."""
    place = (here / script).resolve()
    is_below = place.is_relative_to(here.resolve())
    if is_below and _is_project(here):
        return here
    found = next((folder for folder in place.parents if _is_project(folder)), None)
    if found is not None:
        return found
    return here if is_below and here.resolve() not in (Path.home(), Path("/")) else place.parent


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in _MARKS)


def resume(tell: Tell, into: Path | None = None) -> Migrating:
    """Take up the migration of this folder's project."""
    folder = open_or_make(into) if into is not None else find(Path.cwd())
    if folder is None:
        raise InputError(_NO_FOLDER)
    earlier = load(folder)
    return Migrating(folder, earlier.request, (folder.path / earlier.root).resolve(), tell, resume=True)
