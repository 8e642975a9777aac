"""Checks of a machine or a delivery, a module each: what one says about one thing, all of them in turn, the table of it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple

from torchferry.report.page import Cell, Column, Table, lines
from torchferry.report.records import Grade
from torchferry.report.safe import in_both_languages, printable
from torchferry.text import Text


class Status(Enum):
    """The verdict on one thing, the worst first."""

    BLOCKS = "blocks"  # the device can't be used until it is put right
    MISSING = "missing"  # the zoo's guide asks for it, or what is there is wrong
    DOUBT = "doubt"  # it may fail, or fails only for some programs; a reviewer will ask
    COSTS = "costs"  # it costs speed
    COULD = "could"  # another setting may be faster: worth a try
    RECOMMENDED = "recommended"  # the guide does not ask for it, most models of the zoo have it
    UNSEEN = "unseen"  # it can't be seen from here
    INFO = "info"  # a fact, neither good nor bad
    NOTE = "note"
    FINE = "fine"


class Reach(Enum):
    """What a command changes, and so who may run it."""

    SHELL = "shell"  # this shell and what it starts
    INSTALL = "install"  # packages of this Python, or how a program is started
    PROCESSES = "processes"  # other processes of this user
    ROOT = "root"  # the machine; needs privileges


class Command(NamedTuple):
    """A line that puts something right."""

    line: str
    reach: Reach


@dataclass(frozen=True)
class CheckResult:
    """What one check says about one thing."""

    id: str  # of the check
    subject: str  # a variable, a file, a library, a requirement
    status: Status
    found: Text  # what is there
    why: Text = Text("", "")  # what it does, what it costs, what is asked for
    commands: tuple[Command, ...] = ()
    source: str = ""  # where that is known from
    place: str = ""  # train.py:57


@dataclass(frozen=True)
class Examination:
    """What all checks say, the worst first."""

    results: tuple[CheckResult, ...]

    def count(self, status: Status) -> int:
        """How many results have this status."""
        return len(self.of(status))

    def of(self, status: Status) -> tuple[CheckResult, ...]:
        """The results with this status."""
        return tuple(result for result in self.results if result.status is status)

    def counts(self, grades: Iterable[Status]) -> dict[str, int]:
        """How many results have each of these."""
        return {status.value: self.count(status) for status in grades}


_ORDER = list(Status)
_FAILED_WHY = Text(
    "the system denied access to this check, so its result is unknown",
    "系统不允许此项检查，因此情况未知",
)


def run_checks(
    folder: ModuleType, subject: object, is_wanted: Callable[[str], bool] = lambda name: True
) -> Iterator[CheckResult]:
    """What all checks of a folder say: a module that is added there is found, there is no list.

    One that the system stops, as by a file server that is gone, does not stop the others.
    """
    for found in pkgutil.iter_modules(folder.__path__):
        if not is_wanted(found.name):
            continue
        module = importlib.import_module(f"{folder.__name__}.{found.name}")
        try:
            yield from module.check(subject)
        except OSError as error:
            said = Text(str(error), str(error))
            yield CheckResult(module.ID, module.ID, Status.UNSEEN, said, _FAILED_WHY)


def worst_first(results: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """In the order of their verdicts."""
    return tuple(sorted(results, key=severity))


def severity(result: CheckResult) -> int:
    """The place of a result by its status; 0 is the worst."""
    return _ORDER.index(result.status)


_SUBJECT = Column(Text("what", "项目"), is_whole=True)
_STATUS = Column(Text("verdict", "结论"), is_whole=True)


def result_table(
    title: Text,
    found: Text,
    results: Iterable[CheckResult],
    grades: Mapping[Status, Grade],
    said: Callable[[CheckResult], Iterable[Text]],
    called: Callable[[str], Text] = lambda subject: Text(subject, subject),
) -> Table:
    """A row for each result: what it is about, its verdict, and lines of what is said of it under the heading `found`."""
    rows = (
        (
            Cell(called(result.subject), is_code=True),
            grades[result.status],
            Cell(lines(said(result))),
        )
        for result in results
    )
    return Table(title, (_SUBJECT, _STATUS, Column(found)), tuple(rows))


def result_content(result: CheckResult) -> dict[str, Any]:
    """What JSON says of one result of any examination."""
    return {
        "id": result.id,
        "subject": printable(result.subject),
        "status": result.status.value,
        "found": in_both_languages(result.found),
        "why": in_both_languages(result.why),
    }
