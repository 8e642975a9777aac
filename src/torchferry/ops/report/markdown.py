"""Markdown: verdicts, what needs attention, and all operators, to read or to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchferry import units
from torchferry.ops.readiness import Readiness
from torchferry.ops.report import sentences, words
from torchferry.ops.report.tables import Overview, Problem, label
from torchferry.report.markdown import code, escape
from torchferry.text import Language, Text


def to_markdown(readinesses: Sequence[Readiness], language: Language) -> str:
    """The report as Markdown."""
    return "\n".join(_Lines(Overview(readinesses), language).all()) + "\n"


class _Lines:
    def __init__(self, overview: Overview, language: Language) -> None:
        self._overview = overview
        self._language = language

    def _say(self, text: Text) -> str:
        return text.in_language(self._language)

    def all(self) -> Iterator[str]:
        """From top to bottom."""
        overview = self._overview
        yield f"# {self._say(words.TITLE)}: {escape(overview.capture.program)}"
        yield ""
        for readiness in overview.readinesses:
            yield f"- {escape(self._say(sentences.verdict(readiness)))}"
        for note in overview.capture.notes:
            yield f"- {escape(self._say(sentences.note(note)))}"
        for readiness in overview.readinesses:
            yield from self._problems(readiness)
        if overview.operators:
            yield from ("", f"## {self._say(words.OPERATORS)}", "")
            yield from self._operators()

    def _problems(self, readiness: Readiness) -> Iterator[str]:
        problems = self._overview.problems(readiness)
        if not problems:
            return
        title = words.PROBLEMS_OF.format(vendor=label(readiness))
        yield from ("", f"## {escape(self._say(title))}", "")
        heads = [words.OPERATOR, words.SUPPORT_COLUMN, words.CALLS, words.SHARE, words.INPUTS, words.PLACE]
        yield _row(map(self._say, [*heads, words.REASON, words.ADVICE]))
        yield "|---|---|---:|---:|---|---|---|---|"
        for problem in problems:
            yield _row(self._problem(problem))

    def _problem(self, problem: Problem) -> list[str]:
        places = sentences.several(map(sentences.place, problem.uses))
        return [
            code(problem.operator),
            self._say(words.SUPPORT[problem.support]),
            str(problem.calls),
            units.percent(problem.share),
            code(sentences.tensors(problem.uses[0].signature.inputs)),
            escape(self._say(places)),
            " ".join(escape(self._say(reason)) for reason in problem.reasons),
            "<br>".join(
                " ".join(filter(None, (escape(self._say(each.text)), code(each.code))))
                for each in problem.advice
            ),
        ]

    def _operators(self) -> Iterator[str]:
        heads = [self._say(words.OPERATOR), self._say(words.CALLS), self._say(words.SHARE)]
        yield _row([*heads, *map(escape, self._overview.labels)])
        yield "|---|---:|---:|" + "---|" * len(self._overview.labels)
        for row in self._overview.operators:
            supports = [self._say(words.SUPPORT[each]) if each else words.ABSENT for each in row.supports]
            yield _row([code(row.operator), str(row.calls), units.percent(row.share), *supports])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
