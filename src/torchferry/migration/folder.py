"""The migration folder on the disk: `.ferry/` beside a project, or wherever --into names one.

    migration.json   says that it is one, and of which project
    .gitignore       keeps it out of the project's repository
    runs/0001/       one folder for each run, which appears whole or not at all: run.json, report.json, page.json
    decisions.json   what was accepted and ticked off
    index.html       the page that `ferry report` makes

Runs are only ever added. Nothing in it says where the project lies or on which machine.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.errors import InputError, OutputError
from torchferry.files.aside import folder_aside, put_numbered, remove_leftovers, write_whole
from torchferry.files.user_folder import is_trusted
from torchferry.migration.model import BODY, DOCUMENT, KeptRun
from torchferry.report.json import head
from torchferry.settings import decode, encode, from_plain
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.report.bodies import PageBody

NAME = ".ferry"
INDEX = "index.html"
FORMAT = "torchferry-migration"
_MARK, _RUNS, _RUN, _DECISIONS = "migration.json", "runs", "run.json", "decisions.json"
_NOT_ONE = Text(
    "{path}: not a migration folder; name a new or empty folder, or {inside}",
    "{path}：不是迁移文件夹；请指定新文件夹、空文件夹，或 {inside}",
)
_UNWRITABLE = Text(
    "{path}: no migration folder can be made there ({reason}); name another folder with --into",
    "{path}：无法在此创建迁移文件夹（{reason}）；请用 --into 指定其他文件夹",
)
_DAMAGED = Text(
    "{path}: can't be read ({reason}); run the command again to add its result",
    "{path}：无法读取（{reason}）；请重新运行该命令以再次添加结果",
)


class MigrationFolder:
    """A migration folder that exists."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def project(self) -> Path:
        """The folder that paths in commands count from."""
        return self.path.parent if self.path.name == NAME else Path.cwd()

    @property
    def name(self) -> str:
        """The project's name."""
        return str(self._mark().get("project", ""))

    def runs(self) -> list[KeptRun]:
        """The history, the first run first; what can't be read is left out."""
        try:
            names = sorted(name for name in os.listdir(self.path / _RUNS) if name.isdecimal())
        except FileNotFoundError:
            return []
        return [run for name in sorted(names, key=int) if (run := self._run(name)) is not None]

    def run(self, number: int) -> KeptRun | None:
        """A run by its number."""
        return self._run(f"{number:04}")

    def _run(self, name: str) -> KeptRun | None:
        try:
            run = decode(KeptRun, (self.path / _RUNS / name / _RUN).read_bytes())
            return replace(run, number=int(name))
        except (OSError, ValueError, RecursionError):
            return None

    def add(self, run: KeptRun, files: Mapping[str, Iterable[bytes]]) -> KeptRun:
        """Add a run with its files to the history, under the next number."""
        runs = self.path / _RUNS
        runs.mkdir(exist_ok=True)
        remove_leftovers(runs)
        kept = replace(run, files=tuple(files))
        with folder_aside(runs) as aside:
            new = aside.path / "new"
            new.mkdir()
            for name, data in files.items():
                write_whole(new / name, data)
            write_whole(new / _RUN, encode(kept).encode())
            number = put_numbered(new, runs)
        return replace(kept, number=number)

    def document(self, run: KeptRun) -> Any:
        """The JSON document of a run's report."""
        return self._read(run, DOCUMENT)

    def body(self, run: KeptRun) -> PageBody:
        """What the page of a run's report shows."""
        from torchferry.report.bodies import PageBody

        return from_plain(PageBody, self._read(run, BODY))

    def _read(self, run: KeptRun, name: str) -> Any:
        path = self.path / _RUNS / f"{run.number:04}" / name
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(_DAMAGED.format(path=path, reason=error)) from None

    def _mark(self) -> dict[str, Any]:
        found = _json_of(self.path / _MARK)
        return found if isinstance(found, dict) else {}

    # Decisions.

    def decisions(self) -> dict[str, list[str]]:
        """What was accepted and what was ticked off: names by list."""
        found = _json_of(self.path / _DECISIONS)
        if not isinstance(found, dict):
            return {}
        return {key: [str(each) for each in value] for key, value in found.items() if isinstance(value, list)}

    def decide(self, key: str, add: Sequence[str] = (), remove: Sequence[str] = ()) -> list[str]:
        """Change one of the lists; what else changes it at the same time waits."""
        with self._locked():
            known = self.decisions()
            names = [name for name in dict.fromkeys([*known.get(key, []), *add]) if name not in remove]
            text = json.dumps({**known, key: names}, indent=1, ensure_ascii=False)
            write_whole(self.path / _DECISIONS, f"{text}\n".encode())
        return names

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.path / _MARK, "rb") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX)
            yield


def find(start: Path) -> MigrationFolder | None:
    """The migration folder of a project: in this folder or the nearest one above, as git finds a repository. One that
    others can write to is not used."""
    place = Path(os.path.abspath(start))
    for folder in (place, *place.parents):
        if is_migration_folder(folder / NAME) and is_trusted(folder / NAME):
            return MigrationFolder(folder / NAME)
    return None


def is_migration_folder(path: Path) -> bool:
    """Whether a folder is one."""
    found = _json_of(path / _MARK)
    return isinstance(found, dict) and found.get("format") == FORMAT


def open_or_make(path: Path, project: str = "") -> MigrationFolder:
    """The migration folder at this path, made if there is none; a folder with other things in it is left alone."""
    place = Path(os.path.abspath(path))
    if is_migration_folder(place):
        return MigrationFolder(place)
    try:
        if place.is_dir() and any(place.iterdir()):
            raise InputError(_NOT_ONE.format(path=path, inside=path / NAME))
        place.mkdir(parents=True, exist_ok=True)
        name = project or (place.parent if place.name == NAME else place).name
        mark = {**head(FORMAT), "project": name}
        write_whole(place / ".gitignore", b"*\n")
        write_whole(place / _MARK, f"{json.dumps(mark, indent=1, ensure_ascii=False)}\n".encode())
    except OSError as error:
        if error.errno == errno.EEXIST and is_migration_folder(place):
            return MigrationFolder(place)
        raise OutputError(_UNWRITABLE.format(path=path, reason=error.strerror or error)) from None
    return MigrationFolder(place)


def _json_of(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
