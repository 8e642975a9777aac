"""Readiness as text: for the terminal, the verdicts first, then what needs attention and what can be done; as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchferry import units
from torchferry.readiness.model import OperatorSupport, Readiness
from torchferry.readiness.report import words
from torchferry.readiness.report.tables import OperatorSupportRow, Overview, Problem, label, worst
from torchferry.report import markdown
from torchferry.report.formats import Options
from torchferry.report.safe import one_line, visible
from torchferry.report.terminal import Screen, Words, assembled, indented, plain, whole_line
from torchferry.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text as Styled

MAX_TENSORS = 4


def to_text(readinesses: Sequence[Readiness], options: Options) -> str:
    """For a terminal, or without colours. `everything` lists operators without a problem as well."""
    screen = Screen(options)
    report = _ReadinessText(Overview(readinesses), options)
    screen.line(*report.verdicts())
    screen.part(*report.parts(options.everything))
    return screen.text()


class _ReadinessText:
    def __init__(self, overview: Overview, options: Options) -> None:
        self._overview = overview
        self._words = Words(options, options.limit)
        self._say = self._words.say
        self._whole_code = not options.terminal  # longer than the page: broken lines can't be copied

    def verdicts(self) -> list[Styled]:
        verdicts = []
        for readiness in self._overview.readinesses:
            said = self._say(words.verdict(readiness))
            name = one_line(label(readiness))
            worst_one = worst(judgement.support for judgement in readiness.judgements)
            style = words.SUPPORT[worst_one].style if worst_one else ""
            verdicts.append(assembled((name, "bold"), (said.removeprefix(name), style)))
        return verdicts

    def parts(self, everything: bool) -> list[RenderableType]:
        overview = self._overview
        parts: list[RenderableType] = [
            self._words.note(words.NOTE, words.note(key)) for key in overview.capture.notes
        ]
        if not overview.uses:
            return parts
        if everything:
            parts += self._matrix(words.OPERATORS, overview.operators)
        elif len(overview.readinesses) > 1:
            parts += self._matrix(words.COMPARED, [row for row in overview.operators if row.is_problem])
        for readiness in overview.readinesses:
            parts += self._problems(readiness)
        return [*parts, *self._summary()]

    def _matrix(self, title: Text, rows: Sequence[OperatorSupportRow]) -> list[RenderableType]:
        if not rows:
            return []
        table = self._words.table(
            [words.OPERATOR], [words.CALLS, words.weight(self._overview.is_timed)], self._overview.labels
        )
        for row in rows[: self._words.limit]:
            cells = [plain(one_line(row.operator)), plain(str(row.calls)), plain(units.percent(row.share))]
            table.add_row(*cells, *map(self._support, row.supports))
        return self._words.titled(title, table, len(rows))

    def _problems(self, readiness: Readiness) -> list[RenderableType]:
        problems = self._overview.problems(readiness)
        if not problems:
            return []
        several = len(self._overview.readinesses) > 1
        title = words.PROBLEMS_OF.format(vendor=label(readiness)) if several else words.PROBLEMS
        heads = [words.OPERATOR, words.SUPPORT_COLUMN]
        table = self._words.table(heads, [words.CALLS, words.weight(self._overview.is_timed)], [words.WHERE])
        shown = problems[: self._words.limit]
        for problem in shown:
            table.add_row(*self._problem(problem))
        return [*self._words.titled(title, table, len(problems)), *self._advice(shown)]

    def _problem(self, problem: Problem) -> list[RenderableType]:
        first = problem.uses[0]
        shapes = words.tensors(first.signature.inputs, MAX_TENSORS)
        others = len({use.signature for use in problem.uses}) - 1
        if others or any(use.varied for use in problem.uses):
            shapes += f" {self._say(words.VARIED)}"
        phases = dict.fromkeys(self._say(words.PHASE[use.site.phase]) for use in problem.uses)
        where = [
            ", ".join(phases),
            self._say(words.several(map(words.module, problem.uses))),
            self._say(words.several(map(words.place, problem.uses))),
        ]
        return [
            assembled((one_line(problem.operator), "bold"), (f"\n{shapes}" if shapes else "", "dim")),
            self._support(problem.support),
            plain(str(problem.calls)),
            plain(units.percent(problem.share)),
            plain("\n".join(filter(None, where))),
        ]

    def _advice(self, problems: list[Problem]) -> list[RenderableType]:
        """The reasons, and what can be done; operators about which the same is said stand together."""
        said: dict[tuple[tuple[str, bool], ...], list[str]] = {}  # lines, each with whether it is code
        for problem in problems:
            found = [(one_line(self._say(reason)), False) for reason in problem.reasons]
            moved = words.moved(problem.moved_bytes, self._overview.capture)
            found += [(self._say(moved), False)] if moved else []
            for advice in problem.advice:
                found.append((f"→ {one_line(self._say(advice.text))}", False))
                found += [(f"    {visible(line)}", True) for line in advice.code.splitlines()]
            said.setdefault(tuple(found), []).append(one_line(problem.operator))
        parts: list[RenderableType] = ["", self._words.plain(words.ADVICE, "bold")]
        for lines, operators in said.items():
            parts.append(indented(plain(", ".join(operators), "bold"), 2))
            for line, is_code in lines:
                whole = is_code and self._whole_code
                parts.append(whole_line(f"    {line}") if whole else indented(plain(line), 4))
        return parts

    def _summary(self) -> list[RenderableType]:
        overview = self._overview
        groups = [overview.by_support(readiness) for readiness in overview.readinesses]
        table = self._words.table([words.SUPPORT_COLUMN])
        for name in overview.labels:
            table.add_column(plain(one_line(name)), justify="right", overflow="fold")
        table.add_column(overflow="fold", style="dim")
        for support, grade in words.SUPPORT.items():
            if not any(support in group for group in groups):
                continue
            cells = []
            for readiness, group in zip(overview.readinesses, groups, strict=True):
                judgements = group.get(support, [])
                count = len({judgement.use.operator for judgement in judgements})
                share = units.percent(overview.share_on(readiness, judgements))
                cells.append(plain(f"{count}  {share:>7}" if judgements else ""))
            table.add_row(self._support(support), *cells, self._words.plain(grade.meaning))
        return self._words.titled(words.BY_SUPPORT, table, len(overview.operators), left_out=0)

    def _support(self, support: OperatorSupport | None) -> Styled:
        if support is None:
            return plain(words.ABSENT, "dim")
        return self._words.plain(words.SUPPORT[support].name, words.SUPPORT[support].style)


def to_markdown(readinesses: Sequence[Readiness], options: Options) -> str:
    """Verdicts, what needs attention, and all operators, to read or to paste into an issue."""
    return "\n".join(_markdown_lines(Overview(readinesses), options)) + "\n"


def _markdown_lines(overview: Overview, options: Options) -> Iterator[str]:
    say = options.say
    yield f"# {say(words.TITLE)}: {markdown.escape(overview.capture.program)}"
    yield ""
    for readiness in overview.readinesses:
        yield f"- {markdown.escape(say(words.verdict(readiness)))}"
    for note in overview.capture.notes:
        yield f"- {markdown.escape(say(words.note(note)))}"
    heads = (words.OPERATOR, words.SUPPORT_COLUMN, words.CALLS, words.SHARE, words.INPUTS, words.PLACE)
    for readiness in overview.readinesses:
        problems = overview.problems(readiness)
        if problems:
            title = words.PROBLEMS_OF.format(vendor=label(readiness))
            yield from ("", f"## {markdown.escape(say(title))}", "")
            columns = list(map(say, (*heads, words.REASON, words.ADVICE)))
            rows = (_markdown_problem(problem, options) for problem in problems)
            yield from markdown.table(columns, rows, (2, 3))
    if overview.operators:
        yield from ("", f"## {say(words.OPERATORS)}", "")
        columns = [say(words.OPERATOR), say(words.CALLS), say(words.SHARE)]
        rows = (
            [
                markdown.code(row.operator),
                str(row.calls),
                units.percent(row.share),
                *(say(words.SUPPORT[each].name) if each else words.ABSENT for each in row.supports),
            ]
            for row in overview.operators
        )
        yield from markdown.table([*columns, *map(markdown.escape, overview.labels)], rows, (1, 2))


def _markdown_problem(problem: Problem, options: Options) -> list[str]:
    say, escape = options.say, markdown.escape
    advice = (
        " ".join(filter(None, (escape(say(each.text)), markdown.code(each.code)))) for each in problem.advice
    )
    return [
        markdown.code(problem.operator),
        say(words.SUPPORT[problem.support].name),
        str(problem.calls),
        units.percent(problem.share),
        markdown.code(words.tensors(problem.uses[0].signature.inputs)),
        escape(say(words.several(map(words.place, problem.uses)))),
        " ".join(escape(say(reason)) for reason in problem.reasons),
        "<br>".join(advice),
    ]
