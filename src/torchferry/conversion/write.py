"""Writing a converted project: all of it appears at once, or nothing does."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from torchferry.conversion.discover import (
    FINDINGS,
    PYTHON_SUFFIXES,
    copy_file,
    is_converted_copy,
    keep_owner,
    read_file,
    write_like,
    write_new,
)
from torchferry.conversion.project import ProjectOutcome
from torchferry.errors import OutputError
from torchferry.files import written
from torchferry.files.aside import (
    PREFIX,
    fill_folder,
    folder_aside,
    free_name,
    remove_leftovers,
    uninterrupted,
)
from torchferry.text import Text, user_language

Reports = Mapping[str, bytes]  # file name -> content
# Reports that every converted copy carries: the canonical one, and the page to read -> their formats.
REPORT_FILES = {FINDINGS: "json", "report.html": "html"}


class Replace(Enum):
    """What may be replaced by a new output."""

    NOTHING = "nothing"
    OURS = "ours"  # the output of an earlier run
    ANYTHING = "anything"  # the user was asked


@dataclass
class Written:
    """What became of the files besides the plain ones."""

    # Files of the project that are left out: a report has their name.
    shadowed: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)  # files of the project that went away during the run
    kept: list[Path] = field(default_factory=list)  # where things are that gave way to the output


def check_output(root: Path, out: Path, replace: Replace = Replace.NOTHING) -> Path:
    """The folder to write to, if it can be written to without harm; clears what killed runs have left there."""
    place = Path(os.path.abspath(out))
    _check_apart(root, out, place)
    if place.is_symlink():
        raise OutputError(
            Text(
                f"{out}: is a link; name the folder itself, or one that does not exist",
                f"{out}：是链接；请给出文件夹本身，或尚不存在的名称",
            )
        )
    if place.exists() and not place.is_dir():
        raise OutputError(
            Text(
                f"{out}: is a file, but the output is a folder; choose another name",
                f"{out}：是文件，而输出是文件夹；请另选名称",
            )
        )
    if not place.exists() and place.suffix in PYTHON_SUFFIXES:
        raise OutputError(
            Text(
                f"{out}: looks like a file name, but the output of a folder is a folder; choose another name",
                f"{out}：像是文件名，而文件夹的输出是文件夹；请另选名称",
            )
        )
    remove_leftovers(place.parent)
    remove_leftovers(place)
    with _errors_for(place):
        if place.exists() and any(place.iterdir()):
            _check_replaceable(out, place, replace)
    _check_writable(out, place)
    return place


def _check_apart(root: Path, out: Path, place: Path) -> None:
    source = root.resolve()
    if place.resolve() == source:
        raise OutputError(
            Text(
                f"{out}: this is the input itself; choose another name, or use --in-place",
                f"{out}：这正是输入本身；请另选名称，或使用 --in-place",
            )
        )
    if source.is_relative_to(place.resolve()):
        raise OutputError(
            Text(
                f"{out}: contains the input; choose a folder that does not",
                f"{out}：包含输入；请选择不包含输入的文件夹",
            )
        )


def _check_replaceable(out: Path, place: Path, replace: Replace) -> None:
    if replace is Replace.NOTHING:
        raise OutputError(
            Text(
                f"{out}: not empty; choose another folder, or add --force to replace it",
                f"{out}：文件夹非空；请另选文件夹，或加 --force 替换",
            )
        )
    if replace is Replace.OURS and not is_converted_copy(place):
        raise OutputError(
            Text(
                f"{out}: exists and was not made by TorchFerry; move it away, then try again",
                f"{out}：已存在，且不是 TorchFerry 生成的；请将其移走后重试",
            )
        )


def _check_writable(out: Path, place: Path) -> None:
    parent = place if place.is_dir() and not any(place.iterdir()) else place.parent
    while not os.path.lexists(parent):
        parent = parent.parent
    if not parent.is_dir():
        raise OutputError(
            Text(
                f"{out}: {parent} is not a folder; choose another place",
                f"{out}：{parent} 不是文件夹；请另选位置",
            )
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(
            Text(
                f"{out}: no permission to write in {parent}; choose another place",
                f"{out}：没有写入 {parent} 的权限；请另选位置",
            )
        )


def check_output_file(root: Path, out: Path, force: bool) -> Path:
    """The file to write a single converted module to."""
    place = Path(os.path.abspath(out))
    _check_apart(root, out, place)
    if place.is_symlink() or (place.exists() and not place.is_file()):
        raise OutputError(
            Text(
                f"{out}: exists and is not a regular file; choose another name",
                f"{out}：已存在且不是普通文件；请另选名称",
            )
        )
    if place.exists() and not force:
        raise OutputError(
            Text(
                f"{out}: already exists; choose another name, or add --force to replace it",
                f"{out}：已存在；请另选名称，或加 --force 替换",
            )
        )
    remove_leftovers(place.parent)
    _check_writable(out, place)
    return place


def write_project(outcome: ProjectOutcome, out: Path, reports: Reports, replace: Replace) -> Written:
    """Write the converted copy and its reports aside, then put them in place with one rename.

    An earlier output that holds anything that is not ours, or not as it was written, is kept beside the new one.
    """
    # A folder that can't be replaced, because it is mounted or lies in a closed one, is filled.
    is_empty = out.is_dir() and not any(out.iterdir())
    fill = is_empty and (os.path.ismount(out) or not os.access(out.parent, os.W_OK))
    done = Written()
    with _errors_for(out), _parents_of(out), folder_aside(out if fill else out.parent) as aside:
        new = aside.path / "new"
        new.mkdir()
        _write_all(outcome, new, reports, done)
        if not fill and out.exists() and any(out.iterdir()):  # it may have come up since it was checked
            _check_replaceable(out, out, replace)
        with _said_if_interrupted(out, new):
            if fill:
                fill_folder(new, out)
            else:
                may_go = replace is Replace.ANYTHING
                kept = aside.replace(new, out, lambda old: may_go or not written.foreign(old, FINDINGS))
                done.kept += [kept] if kept else []
    return done


def _write_all(outcome: ProjectOutcome, new: Path, reports: Reports, done: Written) -> None:
    """Everything that the output holds; the findings last, with a list of the others."""
    digests = _write_entries(outcome, new, reports, done)
    for path, file in outcome.added.items():
        os.makedirs(os.path.dirname(os.path.join(new, path)), exist_ok=True)
        digests[path] = write_new(os.path.join(new, path), file.data, file.executable)
    for name, data in reports.items():
        if name != FINDINGS:
            digests[name] = write_new(os.path.join(new, name), data)
    if FINDINGS in reports:
        listed = written.with_list(reports[FINDINGS], FINDINGS, digests)
        write_new(os.path.join(new, FINDINGS), listed)


def write_file(outcome: ProjectOutcome, out: Path, force: bool = False) -> Written:
    """Write a single converted module to a file of its own, and what it needs beside it."""
    source = str(outcome.root)
    data = outcome.outcomes[0].new_data if outcome.outcomes else None
    done = Written()
    with _errors_for(out), _parents_of(out), folder_aside(out.parent) as aside:
        new = aside.path / "new"
        if data is None:
            copy_file(source, str(new))
        else:
            write_like(source, str(new), data)
        added = list(_stage_added(outcome, out.parent, aside.path, force))
        with _said_if_interrupted(out, new), uninterrupted():
            # A file that nobody named, and that may be the user's, stays under another name.
            for _, target in added:
                if os.path.lexists(target):
                    done.kept.append(free_name(Path(target)))
                    os.rename(target, done.kept[-1])
            _replace_all([(str(new), str(out)), *added])
    return done


def _write_entries(outcome: ProjectOutcome, new: Path, reports: Reports, done: Written) -> dict[str, str]:
    """The files of the project; their digests, by path with forward slashes."""
    changed = {item.path: item.new_data for item in outcome.outcomes if item.new_data is not None}
    folder = outcome.folder
    digests: dict[str, str] = {}
    for entry in outcome.entries:
        source, target = os.path.join(folder, entry.path), os.path.join(new, entry.path)
        shown = entry.path.replace(os.sep, "/")
        if entry.path in reports:
            done.shadowed.append(entry.path)
        elif entry.is_folder:
            os.makedirs(target, exist_ok=True)
        elif entry.problem:  # what can't be read was reported when it was looked at
            continue
        elif not os.path.lexists(source):
            done.vanished.append(entry.path)
        elif entry.is_link:
            os.symlink(os.readlink(source), target)
            digests[shown] = written.of_link(os.readlink(target))
        elif entry.path in changed:
            digests[shown] = write_like(source, target, changed[entry.path] or b"")
        else:
            digests[shown] = copy_file(source, target)
    return digests


@contextmanager
def _parents_of(out: Path) -> Iterator[None]:
    """The folders above the output exist; those made for it go again if it does not come about."""
    made: list[Path] = []
    parent = out.parent
    while not parent.exists():
        made.append(parent)
        parent = parent.parent
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def _said_if_interrupted(out: Path, new: Path) -> Iterator[None]:
    """A Ctrl-C that came while the output was put in place finds it complete: say so."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if new.exists():
            raise
        said = Text(f"interrupted; {out} is complete", f"已中断；{out} 是完整的")
        raise type(stop)(said.in_language(user_language())) from None


def write_in_place(outcome: ProjectOutcome) -> int:
    """Replace the changed files of the project itself; all new texts are on disk before the first is replaced."""
    folder = outcome.folder
    changed = [(os.path.join(folder, item.path), item.new_data) for item in outcome.outcomes]
    remove_leftovers(folder)
    with _errors_for(outcome.root), folder_aside(folder) as private:
        aside = private.path
        staged: list[tuple[str, str]] = []
        for target, data in changed:
            if data is not None:
                place = os.path.dirname(target)
                if not os.access(place, os.W_OK | os.X_OK):
                    raise OutputError(
                        Text(
                            f"{target}: no permission to write in {place}; nothing was written",
                            f"{target}：没有写入 {place} 的权限；未写入任何内容",
                        )
                    )
                if os.stat(target).st_dev != aside.stat().st_dev:
                    raise OutputError(
                        Text(
                            f"{target}: on another file system; convert that folder separately, or use -o",
                            f"{target}：位于另一文件系统；请单独转换该文件夹，或使用 -o",
                        )
                    )
                new = os.path.join(aside, str(len(staged)))
                write_like(target, new, data)
                keep_owner(target, new)
                staged.append((new, target))
        for path in [path for path, file in outcome.added.items() if file.may_exist]:
            if os.path.exists(os.path.join(folder, path)):
                del outcome.added[path]
        staged += _stage_added(outcome, folder, aside, force=False)
        with uninterrupted():
            _replace_all(staged)
    return len(staged)


def _stage_added(
    outcome: ProjectOutcome, folder: Path, aside: Path, force: bool
) -> Iterator[tuple[str, str]]:
    """Write what the conversion adds aside; a file of the user's that lies in the way is not replaced."""
    for number, (path, file) in enumerate(outcome.added.items()):
        target = os.path.join(folder, path)
        if os.path.isfile(target) and not os.path.islink(target) and read_file(target) == file.data:
            continue
        if os.path.lexists(target) and not force:
            raise OutputError(
                Text(
                    f"{target}: already exists, but the conversion writes this file; move it away first",
                    f"{target}：已存在，而转换会写入该文件；请先将其移走",
                )
            )
        new = os.path.join(aside, f"added-{number}")
        write_new(new, file.data, file.executable)
        yield new, target


def _replace_all(staged: list[tuple[str, str]]) -> None:
    """Replace each file; if one can't be, those before it get their old content back."""
    done: list[tuple[str, str]] = []
    try:
        for new, target in staged:
            old = f"{new}-old" if os.path.lexists(target) else ""
            if old:
                try:
                    os.link(target, old)
                except OSError:  # not every file system and not every owner allows it
                    copy_file(target, old)
            os.replace(new, target)
            done.append((old, target))
    except OSError:
        for old, target in done:
            if old:
                os.replace(old, target)
            else:
                os.unlink(target)
        raise


@contextmanager
def _errors_for(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise OutputError(
                Text(f"{place}: the disk is full; nothing was written", f"{place}：磁盘已满；未写入任何内容")
            ) from None
        reason = error.strerror or error
        # The file that it is about; not one that we write aside, whose name says nothing to anybody.
        name = os.fsdecode(error.filename) if error.filename is not None else str(place)
        if any(part.startswith(PREFIX) for part in name.split(os.sep)):
            name = str(place)
        raise OutputError(
            Text(
                f"{name}: can't be used ({reason}); nothing was written",
                f"{name}：无法使用（{reason}）；未写入任何内容",
            )
        ) from None
