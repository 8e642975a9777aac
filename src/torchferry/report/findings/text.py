"""The terminal report: the work list, the worst first, and the whole of it in one line at the end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from torchferry.finding import Finding, Severity
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.work_list import OPEN, WorkItem, WorkList, headline, work_list
from torchferry.report.formats import Options
from torchferry.report.safe import one_line, shortened
from torchferry.report.streams import WIDEST, WIDTH_OF_FILES
from torchferry.report.terminal import Screen, assembled, plain
from torchferry.text import named

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text as Styled

MAX_LINES = 21  # the commands add a few: where the result is, and what to type next
_FRAME_LINES = 5  # the title, the last line, what is left out, and the empty lines between
_LINES_EACH = 2
MAX_CODE = 200
_FILES_NAMED = 2
_INDENT = "      "


def render(report: Report, options: Options) -> str:
    """For a terminal; elsewhere without colours."""
    screen = Screen(options)
    printer = _Printer(report, options)
    screen.part(*(printer.everything() if options.everything else printer.short()))
    return screen.text()


class _Printer:
    """One report in one language for one width."""

    def __init__(self, report: Report, options: Options) -> None:
        self.report = report
        self.work = work_list(report)
        self.say = options.say
        self.width = min(options.width or WIDTH_OF_FILES, WIDEST)

    def short(self) -> Iterator[RenderableType]:
        """What fits on a screen: a few lines for each of the worst causes."""
        yield from (self._title(), "")
        chosen = _fitting(self.work)
        for severity, items in groupby(chosen, key=lambda item: item.severity):
            yield self._heading(severity)
            for item in items:
                yield from (self._line(item), self._where(item))
        left = self.work.of(*OPEN)[len(chosen) :]
        if left:
            yield self._left_out(left)
        if chosen:
            yield ""
        yield self._headline()

    def everything(self) -> Iterator[RenderableType]:
        """All causes with why, what to do and each of their places."""
        yield from (self._title(), "")
        for severity, items in groupby(self.work.items, key=lambda item: item.severity):
            yield self._heading(severity)
            for item in items:
                yield from self._whole(item)
        yield from self._failed()
        yield self._headline()

    def _title(self) -> Styled:
        project, vendor = shortened(self.report.project, 40), one_line(self.report.vendor)
        files = self.say(
            words.FILES_READ[self.report.files_seen != 1].format(count=f"{self.report.files_seen:,}")
        )
        name = (f"TorchFerry {self.report.command}: {project} → {vendor}", "bold")
        return assembled(name, (f"  {files}", "dim"))

    def _heading(self, severity: Severity) -> Styled:
        return plain(self.say(words.SEVERITY_HEADING[severity]), f"{words.SEVERITY[severity].style} bold")

    def _headline(self) -> Styled:
        if not self.report.findings:
            return plain(self.say(words.NOTHING_FOUND), "green")
        return plain(self.say(headline(self.work, self.report.command)), "bold")

    def _line(self, item: WorkItem) -> Styled:
        """How often, what, which rule, how much work."""
        from rich.cells import cell_len

        count = f"{len(item.findings):>4,} × "
        effort = f"~ {self.say(words.work_time(item.minutes))}" if item.minutes else ""
        end = f"  {shortened(item.rule, 8)}  {effort}".rstrip()
        room = self.width - cell_len(count) - cell_len(end)
        title = _cut(_code_free(self.say(item.title)), room)
        gap = " " * max(room - cell_len(title), 0)
        return _unbroken(assembled((count, "dim"), title, gap, (end, "dim")))

    def _where(self, item: WorkItem) -> Styled:
        """The first places, and the first sentence of what to do."""
        from rich.cells import cell_len

        places = self._places(item)
        room = self.width - len(_INDENT) - cell_len(places) - 3
        recipe = _first_sentence(_code_free(self.say(item.first.do)))
        advice = f" → {_cut(recipe, room)}" if recipe and room > 20 else ""
        return _unbroken(plain(_INDENT + _cut(places, self.width - len(_INDENT)) + advice, "dim"))

    def _places(self, item: WorkItem) -> str:
        named = [f"{one_line(each.path)}:{each.line}" for each in item.findings]
        named = list(dict.fromkeys(named))
        shown = ", ".join(shortened(name, 40) for name in named[:_FILES_NAMED])
        rest = len(named) - _FILES_NAMED
        if rest <= 0:
            return shown
        counts = {"rest": f"{rest:,}", "count": f"{len(named):,}"}
        return self.say(words.AND_MORE_PLACES.format(places=shown, **counts))

    def _left_out(self, left: list[WorkItem]) -> Styled:
        counts = [
            (severity, sum(len(item.findings) for item in left if item.severity is severity))
            for severity in OPEN
        ]
        said = [words.counted(severity, count) for severity, count in counts if count]
        what = words.listed(said)
        return plain(self.say(words.MORE_CAUSES.format(what=what, count=f"{len(left):,}")), "dim")

    def _whole(self, item: WorkItem) -> Iterator[RenderableType]:
        from rich.padding import Padding

        yield self._line(item)
        for label, text in ((words.WHY, item.first.why), (words.DO, item.first.do)):
            if text.en:
                said = assembled((self.say(named(label, "")), "bold"), one_line(self.say(text)))
                yield Padding(said, (0, 0, 0, len(_INDENT)))
        if item.first.url:
            yield _unbroken(plain(f"{_INDENT}{one_line(item.first.url)}", "dim"))
        for finding in item.findings:
            yield self._place(finding)
        yield ""

    def _place(self, finding: Finding) -> Styled:
        place = f"{_INDENT}{one_line(finding.path)}:{finding.line}:{finding.col}"
        code = shortened(finding.source or finding.before, MAX_CODE)
        if finding.after:
            code = f"{shortened(finding.before, MAX_CODE)} → {shortened(finding.after, MAX_CODE)}"
        return _unbroken(assembled(place, (f"  {code}", "dim")))

    def _failed(self) -> Iterator[RenderableType]:
        failed = [record for record in self.report.files if record.status is FileStatus.FAILED]
        if not failed:
            return
        yield plain(self.say(words.FILES_FAILED), "bold")
        for record in failed:
            yield assembled("  ", (one_line(record.path), "bold"), ": ", one_line(record.reason))
        yield ""


def _fitting(work: WorkList) -> list[WorkItem]:
    """The worst causes that fit on a screen, with a heading for each severity."""
    room = MAX_LINES - _FRAME_LINES
    chosen: list[WorkItem] = []
    for item in work.of(*OPEN):
        is_new = not chosen or chosen[-1].severity is not item.severity
        room -= _LINES_EACH + is_new
        if room < 0:
            break
        chosen.append(item)
    return chosen


def _cut(text: str, width: int) -> str:
    """At most so many columns."""
    from rich.cells import cell_len, set_cell_size

    text = one_line(text)
    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 1)).rstrip() + "…"


def _code_free(text: str) -> str:
    return one_line(text).replace("`", "")


def _first_sentence(text: str) -> str:
    for mark in (". ", "。"):
        text = text.partition(mark)[0]
    return text.rstrip(".")


def _unbroken(line: Styled) -> Styled:
    line.no_wrap = True
    return line
