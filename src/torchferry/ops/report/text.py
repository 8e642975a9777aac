"""Readiness for the terminal: the verdicts first, then what needs attention, what can be done, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchferry import units
from torchferry.ops.readiness import Readiness, Support
from torchferry.ops.report import sentences, words
from torchferry.ops.report.tables import BEST_FIRST, OperatorRow, Overview, Problem, label
from torchferry.report.safe import one_line, visible
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text as Styled

PLAIN_WIDTH = 100
LIMIT = 20  # rows of a table
MAX_TENSORS = 4
STYLES = {
    Support.KERNEL: "green",
    Support.STRUCTURED: "green",
    Support.COMPOSITE: "green",
    Support.LIMITED: "yellow",
    Support.UNKNOWN: "magenta",
    Support.FALLBACK: "yellow",
    Support.MISSING: "red",
}


def to_text(
    readinesses: Sequence[Readiness],
    language: Language = "en",
    *,
    width: int = PLAIN_WIDTH,
    terminal: bool = False,
    limit: int | None = LIMIT,
    everything: bool = False,
) -> str:
    """The report for a terminal of this width, or without colours; no table has more rows than the limit. `everything`
    lists operators without a problem as well."""
    import io

    from rich.console import Console

    output = io.StringIO()
    console = Console(
        file=output, width=width, force_terminal=terminal, highlight=False, legacy_windows=False, emoji=False
    )
    report = _Report(Overview(readinesses), language, limit, everything, whole_code=not terminal)
    for line in report.verdicts():
        console.print(line, soft_wrap=not terminal)  # one line each, for programs that read them
    for part in report.parts():
        console.print(part, crop=terminal)
    return "\n".join(line.rstrip() for line in output.getvalue().split("\n"))


class _Report:
    def __init__(
        self, overview: Overview, language: Language, limit: int | None, everything: bool, whole_code: bool
    ) -> None:
        self._overview = overview
        self._language = language
        self._limit = limit
        self._everything = everything
        self._whole_code = whole_code  # lines may be longer than the page: broken ones can't be copied

    def _say(self, text: Text) -> str:
        return text.in_language(self._language)

    def verdicts(self) -> list[Styled]:
        """One line for each device."""
        return [self._verdict(readiness) for readiness in self._overview.readinesses]

    def parts(self) -> list[RenderableType]:
        """What to print below, from top to bottom."""
        overview = self._overview
        parts: list[RenderableType] = [
            _plain(f"{self._say(words.NOTE)}: {self._say(sentences.note(key))}", "dim")
            for key in overview.capture.notes
        ]
        if not overview.uses:
            return parts
        if self._everything:
            parts += self._matrix(words.OPERATORS, overview.operators)
        elif len(overview.readinesses) > 1:
            parts += self._matrix(words.COMPARED, [row for row in overview.operators if row.is_problem])
        for readiness in overview.readinesses:
            parts += self._problems(readiness)
        return [*parts, *self._summary()]

    def _verdict(self, readiness: Readiness) -> Styled:
        from rich.text import Text as Styled

        said = self._say(sentences.verdict(readiness))
        name = one_line(label(readiness))
        return Styled.assemble((name, "bold"), (said.removeprefix(name), _verdict_style(readiness)))

    def _matrix(self, title: Text, rows: Sequence[OperatorRow]) -> list[RenderableType]:
        """Operators against devices."""
        if not rows:
            return []
        table = self._table([words.OPERATOR], [words.CALLS, self._weight_word()])
        for name in self._overview.labels:
            table.add_column(_plain(one_line(name)), overflow="fold")
        for row in rows[: self._limit]:
            cells = [
                _plain(one_line(row.operator)),
                _plain(str(row.calls)),
                _plain(units.percent(row.share)),
            ]
            table.add_row(*cells, *map(self._support, row.supports))
        return [*self._heading(title, len(rows)), table, *self._more(len(rows))]

    def _problems(self, readiness: Readiness) -> list[RenderableType]:
        problems = self._overview.problems(readiness)
        if not problems:
            return []
        several = len(self._overview.readinesses) > 1
        title = words.PROBLEMS_OF.format(vendor=label(readiness)) if several else words.PROBLEMS
        table = self._table([words.OPERATOR, words.SUPPORT_COLUMN], [words.CALLS, self._weight_word()])
        table.add_column(_plain(self._say(words.WHERE)), overflow="fold")
        for problem in problems[: self._limit]:
            table.add_row(*self._problem(problem))
        advice = self._advice(problems[: self._limit])
        return [*self._heading(title, len(problems)), table, *self._more(len(problems)), *advice]

    def _problem(self, problem: Problem) -> list[RenderableType]:
        from rich.text import Text as Styled

        first = problem.uses[0]
        shapes = sentences.tensors(first.signature.inputs, MAX_TENSORS)
        others = len({use.signature for use in problem.uses}) - 1
        if others or any(use.varied for use in problem.uses):
            shapes += f" {self._say(words.VARIED)}"
        phases = dict.fromkeys(self._say(words.PHASE[use.site.phase]) for use in problem.uses)
        where = [
            ", ".join(phases),
            self._say(sentences.several(map(sentences.module, problem.uses))),
            self._say(sentences.several(map(sentences.place, problem.uses))),
        ]
        return [
            Styled.assemble((one_line(problem.operator), "bold"), (f"\n{shapes}" if shapes else "", "dim")),
            self._support(problem.support),
            _plain(str(problem.calls)),
            _plain(units.percent(problem.share)),
            _plain("\n".join(filter(None, where))),
        ]

    def _advice(self, problems: list[Problem]) -> list[RenderableType]:
        """The reasons, and what can be done; operators about which the same is said stand together."""
        from rich.padding import Padding
        from rich.text import Text as Styled

        said: dict[tuple[tuple[str, bool], ...], list[str]] = {}
        for problem in problems:
            said.setdefault(self._advice_lines(problem), []).append(one_line(problem.operator))
        parts: list[RenderableType] = ["", Styled(self._say(words.ADVICE), "bold")]
        for lines, operators in said.items():
            parts.append(Padding(Styled(", ".join(operators), "bold"), (0, 0, 0, 2)))
            for line, is_code in lines:
                if is_code and self._whole_code:
                    parts.append(_whole(line))
                else:
                    parts.append(Padding(Styled(line), (0, 0, 0, 4)))
        return parts

    def _advice_lines(self, problem: Problem) -> tuple[tuple[str, bool], ...]:
        """Each with whether it is code."""
        lines = [(one_line(self._say(reason)), False) for reason in problem.reasons]
        moved = sentences.moved(problem.moved_bytes, self._overview.capture)
        lines += [(self._say(moved), False)] if moved else []
        for advice in problem.advice:
            lines.append((f"→ {one_line(self._say(advice.text))}", False))
            lines += [(f"    {visible(line)}", True) for line in advice.code.splitlines()]
        return tuple(lines)

    def _summary(self) -> list[RenderableType]:
        """How many operators have which support, and their share."""
        overview = self._overview
        groups = [overview.by_support(readiness) for readiness in overview.readinesses]
        table = self._table([words.SUPPORT_COLUMN], [])
        for name in overview.labels:
            table.add_column(_plain(one_line(name)), justify="right", overflow="fold")
        table.add_column(overflow="fold", style="dim")
        for support in BEST_FIRST:
            if not any(support in group for group in groups):
                continue
            cells = []
            for readiness, group in zip(overview.readinesses, groups, strict=True):
                judgements = group.get(support, [])
                count = len({judgement.use.operator for judgement in judgements})
                share = units.percent(overview.share_on(readiness, judgements))
                cells.append(_plain(f"{count}  {share:>7}" if judgements else ""))
            table.add_row(self._support(support), *cells, _plain(self._say(words.MEANING[support])))
        return [*self._heading(words.BY_SUPPORT, len(overview.operators)), table]

    def _weight_word(self) -> Text:
        return words.TIME if self._overview.is_timed else words.SHARE

    def _table(self, left: Sequence[Text], right: Sequence[Text]) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head in left:
            table.add_column(_plain(self._say(head)), overflow="fold")
        for head in right:
            table.add_column(_plain(self._say(head)), justify="right", no_wrap=True)
        return table

    def _heading(self, title: Text, count: int) -> list[RenderableType]:
        return ["", _plain(f"{one_line(self._say(title))} ({count})", "bold")]

    def _more(self, count: int) -> list[RenderableType]:
        if self._limit is None or count <= self._limit:
            return []
        return [_plain(self._say(words.AND_MORE.format(count=count - self._limit)), "dim")]

    def _support(self, support: Support | None) -> Styled:
        return (
            _plain(self._say(words.SUPPORT[support]), STYLES[support])
            if support
            else _plain(words.ABSENT, "dim")
        )


def _verdict_style(readiness: Readiness) -> str:
    supports = {judgement.support for judgement in readiness.judgements}
    return next((STYLES[support] for support in reversed(BEST_FIRST) if support in supports), "")


def _whole(line: str) -> RenderableType:
    """On one line, however long. In a group, since a text that is printed by itself is wrapped in any case."""
    from rich.console import Group
    from rich.text import Text as Styled

    return Group(Styled(f"{'':4}{line}", no_wrap=True, overflow="ignore"))


def _plain(text: str, style: str = "") -> Styled:
    """Text that rich shows as it is: brackets in names are no markup."""
    from rich.text import Text as Styled

    return Styled(text, style)
