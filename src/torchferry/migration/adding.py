"""Adding the result of a command to a migration folder: the command runs inside `Adding`, its reports are noted on the way."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchferry.errors import FerryError
from torchferry.migration.folder import MigrationFolder
from torchferry.migration.model import BODY, DOCUMENT, KeptRun
from torchferry.report.formats import Options, Reports
from torchferry.report.json import plain
from torchferry.report.private import without_private
from torchferry.report.provenance import this_run
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, Grade
from torchferry.report.safe import shortened
from torchferry.text import Text

ENDED_WELL = Text("ended without an error", "正常结束")
ENDED_WITH = Text("ended with exit code {code}", "以退出码 {code} 结束")
_INTERRUPTED = Text("interrupted", "被中断")
_INTERRUPTS = (130, 143)
_LARGEST = 1 << 28  # bytes of a report that are kept
_LONGEST = 600  # characters of a verdict
_noting: ContextVar[list[tuple[Reports[Any], Any, Options]] | None] = ContextVar("noting", default=None)


def note_report(reports: Reports[Any], content: Any, options: Options) -> None:
    """Take note of a report that the running command has made; the last one is kept."""
    noted = _noting.get()
    if noted is not None:
        noted.append((reports, content, options))


@dataclass
class Adding:
    """A command that adds its result to a folder when it has ended, however it ends."""

    folder: MigrationFolder
    command: str
    by_hand: str = ""
    exit_code: int = 0
    added: KeptRun | None = None
    problem: Exception | None = None  # why the result could not be added
    _began: float = field(default_factory=time.monotonic)
    _started: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Around the command, which sets the exit code; errors go on to the caller."""
        noted: list[tuple[Reports[Any], Any, Options]] = []
        token = _noting.set(noted)
        said: Text | None = None
        try:
            yield
        except KeyboardInterrupt as stop:
            self.exit_code, said = int(getattr(stop, "exit_code", 130)), _INTERRUPTED
            raise
        except FerryError as error:
            self.exit_code, said = error.exit_code, error.text
            raise
        except Exception as error:
            self.exit_code, said = 1, Text(*[f"{type(error).__name__}: {error}"] * 2)
            raise
        finally:
            _noting.reset(token)
            try:
                self._add(noted[-1] if noted else None, said)
            except Exception as error:  # the command has done its work, whatever we can't keep of it
                self.problem = error

    def _add(self, noted: tuple[Reports[Any], Any, Options] | None, said: Text | None) -> None:
        files: dict[str, list[bytes]] = {}
        grade = _grade_of_ending(self.exit_code)
        if noted is not None:
            files = _files(*noted)
            grade = noted[0].grade(noted[1], noted[2]) or grade
        if said is not None:
            grade = Grade(said, QUIET if self.exit_code in _INTERRUPTS else BAD)
        verdict = Text(*(_short(without_private(each)) for each in grade.name))
        run = KeptRun(
            command=self.command,
            made=this_run(),
            started=self._started,
            seconds=round(time.monotonic() - self._began, 3),
            exit_code=self.exit_code,
            verdict=verdict,
            tone=grade.kind,
            folder=_relative(Path.cwd(), self.folder.project),
            plugins=plugins_installed(),
            by_hand=self.by_hand,
        )
        self.added = self.folder.add(run, files)


def _grade_of_ending(code: int) -> Grade:
    if code in _INTERRUPTS:
        return Grade(_INTERRUPTED, QUIET)
    return Grade(ENDED_WITH.format(code=code), DOUBT) if code else Grade(ENDED_WELL, GOOD)


def _files(reports: Reports[Any], content: Any, options: Options) -> dict[str, list[bytes]]:
    files: dict[str, list[bytes]] = {}
    if "json" in reports.names:
        document = list(reports.pieces(content, "json", options))
        if sum(map(len, document)) <= _LARGEST:
            files[DOCUMENT] = document
    if reports.body or reports.page:
        body = without_private(json.dumps(plain(reports.page_body(content, options)), ensure_ascii=False))
        data = body.encode("utf-8", "replace")
        if len(data) <= _LARGEST:
            files[BODY] = [data]
    return files


def plugins_installed() -> dict[str, str]:
    """The packages that add a device to PyTorch, and their versions."""
    from importlib.metadata import entry_points

    found = (entry.dist for entry in entry_points(group="torch.backends"))
    return {dist.name: dist.version for dist in found if dist is not None and dist.name != "torchferry"}


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST)


def _relative(folder: Path, project: Path) -> str:
    """Where a command ran, without saying where the project lies; only its name outside of the project's surroundings."""
    path = os.path.relpath(folder, project)
    return path if path.count("..") <= 2 else folder.name
