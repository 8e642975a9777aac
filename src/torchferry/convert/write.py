"""Writing a converted project: all of it appears at once, or nothing does."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torchferry.convert.filesystem import copy_file, write_like
from torchferry.convert.project import ProjectOutcome
from torchferry.errors import OutputError

_TEMPORARY = ".ferry-"
WriteReports = Callable[[Path], None]


def check_output(root: Path, out: Path, force: bool) -> Path:
    """The place to write to, if it can be written to without harm."""
    source, target = root.resolve(), Path(os.path.abspath(out))
    if target.resolve() == source:
        raise OutputError(f"{out}: is the input itself; choose another folder, or use --in-place")
    if source.is_relative_to(target.resolve()):
        raise OutputError(f"{out}: holds the input; choose a folder that does not")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise OutputError(f"{out}: is in the way and no folder; remove it or choose another name")
    if target.exists() and any(target.iterdir()) and not force:
        raise OutputError(f"{out}: is not empty; choose another folder, or say --force to replace it")
    if target.exists() and force and any(target.iterdir()) and not _is_our_output(target):
        raise OutputError(
            f"{out}: was not made by this tool, so --force won't replace it; remove it yourself"
        )
    parent = _existing_parent(target)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(f"{out}: no permission to write in {parent}")
    return target


def _is_our_output(folder: Path) -> bool:
    try:
        with open(folder / "findings.json", "rb") as file:
            return bool(json.load(file).get("format") == "torchferry-findings")
    except (OSError, ValueError, AttributeError):
        return False


def _existing_parent(path: Path) -> Path:
    parent = path.parent
    while not parent.exists():
        parent = parent.parent
    return parent


def write_project(outcome: ProjectOutcome, out: Path, reports: WriteReports) -> None:
    """Write the converted copy and its reports aside, then put them in place with one rename."""
    with _errors_for(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(out)
        aside = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{os.getpid()}-", dir=out.parent))
        try:
            _write_entries(outcome, aside)
            reports(aside)
            aside.chmod(0o777 & ~_umask())
            _put_in_place(aside, out)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise


def _write_entries(outcome: ProjectOutcome, aside: Path) -> None:
    new_data = {item.path: item.new_data for item in outcome.outcomes if item.new_data is not None}
    folder = outcome.root.parent if outcome.root.is_file() else outcome.root
    for entry in outcome.entries:
        source, target = os.path.join(folder, entry.path), os.path.join(aside, entry.path)
        if entry.is_folder:
            os.makedirs(target, exist_ok=True)
        elif entry.is_link:
            os.symlink(os.readlink(source), target)
        elif entry.path in new_data:
            write_like(source, target, new_data[entry.path] or b"")
        elif not entry.problem:
            _copy(source, target)


def _copy(source: str, target: str) -> None:
    try:
        copy_file(source, target)
    except PermissionError as error:
        if error.filename != source:  # what can't be read was reported when it was looked at
            raise


def _put_in_place(aside: Path, out: Path) -> None:
    if not out.exists():
        os.rename(aside, out)
        return
    if not any(out.iterdir()):
        out.rmdir()
        os.rename(aside, out)
        return
    old = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{os.getpid()}-old-", dir=out.parent))
    os.rename(out, old / "old")
    os.rename(aside, out)
    shutil.rmtree(old, ignore_errors=True)


def _remove_leftovers(out: Path) -> None:
    """What runs that were killed have left: folders named after processes that are no more."""
    for path in out.parent.glob(f"{_TEMPORARY}*"):
        process = path.name[len(_TEMPORARY) :].partition("-")[0]
        if process.isdigit() and not os.path.exists(f"/proc/{process}") and os.path.isdir("/proc/self"):
            kept = path / "old"
            if kept.exists() and not out.exists():
                os.rename(kept, out)  # killed between the two renames: the earlier output comes back
            shutil.rmtree(path, ignore_errors=True)


def write_in_place(outcome: ProjectOutcome) -> int:
    """Replace the changed files of the project itself; all new texts are on disk before the first is replaced."""
    folder = outcome.root.parent if outcome.root.is_file() else outcome.root
    staged: list[tuple[str, str]] = []
    with _errors_for(outcome.root):
        try:
            for item in outcome.outcomes:
                if item.new_data is not None:
                    target = os.path.join(folder, item.path)
                    aside = f"{target}{_TEMPORARY}{os.getpid()}"
                    staged.append((aside, target))
                    write_like(target, aside, item.new_data)
            for aside, target in staged:
                os.replace(aside, target)
        finally:
            for aside, _ in staged:
                if os.path.exists(aside):
                    os.unlink(aside)
    return len(staged)


def check_in_place(root: Path, force: bool) -> None:
    """Editing in place needs a way back: a clean git tree, or the user's word."""
    if force:
        return
    folder = root.parent if root.is_file() else root
    try:
        result = subprocess.run(
            ["git", "status", "--porcelain", "--", str(root.resolve())],
            cwd=folder,
            capture_output=True,
            text=True,
        )
    except OSError:
        raise OutputError(
            "--in-place needs git to see that nothing is lost; say --force to do without"
        ) from None
    if result.returncode:
        raise OutputError(
            f"{root}: --in-place needs a git repository; commit your work first, or say --force"
        )
    if result.stdout.strip():
        raise OutputError(f"{root}: has changes that are not committed; commit them first, or say --force")


@contextmanager
def _errors_for(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or place
        if error.errno == errno.ENOSPC:
            raise OutputError(f"{place}: the disk is full; nothing was written") from None
        raise OutputError(
            f"{where}: can't be written ({error.strerror or error}); nothing was written"
        ) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
