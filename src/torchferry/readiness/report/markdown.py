"""Markdown: verdicts, what needs attention, and all operators, to read or to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchferry import units
from torchferry.readiness.model import Readiness
from torchferry.readiness.report import sentences, words
from torchferry.readiness.report.tables import Overview, Problem, label
from torchferry.report.formats import Options
from torchferry.report.markdown import code, escape, table


def to_markdown(readinesses: Sequence[Readiness], options: Options) -> str:
    """The report as Markdown."""
    return "\n".join(_lines(Overview(readinesses), options)) + "\n"


def _lines(overview: Overview, options: Options) -> Iterator[str]:
    say = options.say
    yield f"# {say(words.TITLE)}: {escape(overview.capture.program)}"
    yield ""
    for readiness in overview.readinesses:
        yield f"- {escape(say(sentences.verdict(readiness)))}"
    for note in overview.capture.notes:
        yield f"- {escape(say(sentences.note(note)))}"
    for readiness in overview.readinesses:
        problems = overview.problems(readiness)
        if problems:
            title = words.PROBLEMS_OF.format(vendor=label(readiness))
            yield from ("", f"## {escape(say(title))}", "")
            heads = [
                words.OPERATOR,
                words.SUPPORT_COLUMN,
                words.CALLS,
                words.SHARE,
                words.INPUTS,
                words.PLACE,
            ]
            heads += [words.REASON, words.ADVICE]
            yield from table(
                list(map(say, heads)), (_problem(problem, options) for problem in problems), (2, 3)
            )
    if overview.operators:
        yield from ("", f"## {say(words.OPERATORS)}", "")
        yield from _operators(overview, options)


def _problem(problem: Problem, options: Options) -> list[str]:
    say = options.say
    places = sentences.several(map(sentences.place, problem.uses))
    advice = (" ".join(filter(None, (escape(say(each.text)), code(each.code)))) for each in problem.advice)
    return [
        code(problem.operator),
        say(words.SUPPORT[problem.support].name),
        str(problem.calls),
        units.percent(problem.share),
        code(sentences.tensors(problem.uses[0].signature.inputs)),
        escape(say(places)),
        " ".join(escape(say(reason)) for reason in problem.reasons),
        "<br>".join(advice),
    ]


def _operators(overview: Overview, options: Options) -> Iterator[str]:
    heads = [*map(options.say, (words.OPERATOR, words.CALLS, words.SHARE)), *map(escape, overview.labels)]
    rows = (
        [
            code(row.operator),
            str(row.calls),
            units.percent(row.share),
            *(options.say(words.SUPPORT[each].name) if each else words.ABSENT for each in row.supports),
        ]
        for row in overview.operators
    )
    yield from table(heads, rows, (1, 2))
