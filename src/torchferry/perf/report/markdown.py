"""Markdown, to read or to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchferry import units
from torchferry.perf.compare.model import Comparison, OperatorPair
from torchferry.perf.model import Analysis, Diagnosis, Part, in_words
from torchferry.perf.report import sentences, words
from torchferry.perf.report.sentences import Report
from torchferry.perf.report.text import cost, names, shapes
from torchferry.report.formats import Options
from torchferry.report.markdown import code, escape, prose, table
from torchferry.report.safe import shortened
from torchferry.report.terminal import AND_MORE
from torchferry.text import Text

_LONGEST_NAME = 100


def to_markdown(report: Report, options: Options) -> str:
    """The report as Markdown."""
    return "\n".join(_Lines(report, options).all()) + "\n"


class _Lines:
    def __init__(self, report: Report, options: Options) -> None:
        self._report = report
        self._language = options.language

    def _say(self, text: Text) -> str:
        """Commands stay code; everything else is what it is."""
        return prose(text.in_language(self._language))

    def all(self) -> Iterator[str]:
        """From top to bottom."""
        analyses = self._report.analyses
        shown = analyses[sentences.slowest(analyses)]
        head, *rest = sentences.verdict(shown)
        yield f"# {self._say(head)}"
        yield ""
        said = [*rest, *([sentences.ranks(analyses)] if len(analyses) > 1 else [])]
        about = [text for text in (sentences.steps(shown), sentences.device(shown)) if text and text.en]
        yield from (f"- {self._say(text)}" for text in [*said, *about])
        yield from (f"- {code(source)}" for source in shown.sources)
        for each in self._report.comparisons:
            yield from self._comparison(each)
        if len(analyses) > 1:
            yield from self._ranks(analyses)
        yield from self._parts(shown)
        for number, diagnosis in enumerate(shown.diagnoses, 1):
            yield from self._diagnosis(number, diagnosis)
        yield from self._operators(shown)
        yield from self._kernels(shown)
        yield from self._end(shown)

    def _table(self, heads: Sequence[Text], rows: Sequence[Sequence[str]], numbers: int) -> Iterator[str]:
        """The last columns are numbers."""
        top = self._report.top
        right = range(len(heads) - numbers, len(heads))
        yield from ("", *table(list(map(self._say, heads)), rows[:top], right))
        if len(rows) > top:
            yield from ("", self._say(AND_MORE.format(count=len(rows) - top)))

    def _ranks(self, analyses: Sequence[Analysis]) -> Iterator[str]:
        present = [part for part in Part if any(each.parts.get(part) for each in analyses)]
        rows = [
            [
                sentences.rank_name(each, position),
                self._say(each.diagnoses[0].title) if each.diagnoses else "",
                units.duration(sentences.step_seconds(each)),
                units.duration(sentences.own_seconds(each)),
                *(units.percent(each.share(part)) for part in present),
            ]
            for position, each in enumerate(analyses)
        ]
        yield from ("", f"## {self._say(words.RANKS)}")
        names = words.PART_OF_HOST if all(each.is_host_only for each in analyses) else words.PART
        heads = [
            words.RANK,
            words.MAIN_FINDING,
            words.STEP,
            words.WORKS,
            *(names[part] for part in present),
        ]
        yield from self._table(heads, rows, 2 + len(present))

    def _parts(self, analysis: Analysis) -> Iterator[str]:
        rows = [
            [self._say(name), units.percent(share), units.duration(seconds)]
            for _, name, seconds, share in sentences.parts(analysis)
        ]
        if rows:
            title = words.WHERE_TIME_GOES if analysis.steps else words.WHERE_ALL_TIME_GOES
            yield from ("", f"## {self._say(title)}")
            yield from self._table([words.WHAT, words.SHARE, words.TIME], rows, 2)

    def _diagnosis(self, number: int, diagnosis: Diagnosis) -> Iterator[str]:
        severity = self._say(words.SEVERITY[diagnosis.severity].name)
        yield from ("", f"## {number}. {self._say(diagnosis.title)} ({severity}, {code(diagnosis.id)})")
        yield from ("", self._say(diagnosis.summary))
        rows = [
            [
                code(each.what) if isinstance(each.what, str) else self._say(each.what),
                escape(in_words(each.detail, self._language)),
                code(sentences.place(each.place)),
                f"{each.count:,}" if each.count else "",
                units.duration(each.seconds) if each.seconds else "",
                units.percent(each.share) if each.share else "",
            ]
            for each in diagnosis.evidence
        ]
        if rows:
            heads = [words.WHAT, words.DETAIL, words.PLACE, words.COUNT, words.TIME, words.SHARE]
            yield from self._table(heads, rows, 3)
        yield ""
        yield from (f"- {self._say(words.REMEDY)}: {self._say(remedy)}" for remedy in diagnosis.remedies)
        gain = sentences.gain(diagnosis)
        if gain:
            yield f"- {self._say(words.GAIN)}: {self._say(gain)}"

    def _operators(self, analysis: Analysis) -> Iterator[str]:
        rows = [
            [
                code(each.operator),
                escape(each.shapes),
                escape(each.dtypes),
                code(sentences.place(each.place)),
                f"{each.calls:,}",
                units.duration(each.host_seconds),
                *([] if analysis.is_host_only else [units.duration(each.device_seconds)]),
            ]
            for each in analysis.operators
        ]
        if rows:
            yield from ("", f"## {self._say(words.OPERATORS)}")
            heads = [words.OPERATOR, words.SHAPES, words.DTYPES, words.PLACE]
            figures = [words.CALLS, words.HOST_TIME, *([] if analysis.is_host_only else [words.DEVICE_TIME])]
            yield from self._table([*heads, *figures], rows, len(figures))

    def _kernels(self, analysis: Analysis) -> Iterator[str]:
        rows = [
            [
                code(shortened(each.name, _LONGEST_NAME)),
                self._say(words.SPAN_KIND[each.kind]),
                code(each.operator) if each.operator else "",
                f"{each.calls:,}",
                units.duration(each.seconds),
            ]
            for each in analysis.kernels
        ]
        if rows:
            yield from ("", f"## {self._say(words.KERNELS)}")
            heads = [words.KERNEL, words.KIND, words.LAUNCHED_BY, words.CALLS, words.TIME]
            yield from self._table(heads, rows, 2)

    def _comparison(self, comparison: Comparison) -> Iterator[str]:
        yield from ("", f"## {self._say(words.COMPARISON)}", "")
        yield from (f"- {self._say(text)}" for text in [*sentences.comparison(comparison), *comparison.notes])
        rows = [
            [
                self._say(sentences.part_names(comparison)[part]),
                units.duration(other),
                units.duration(mine),
                units.signed_duration(mine - other),
            ]
            for part, other, mine in sentences.part_rows(comparison)
        ]
        if rows:
            yield from self._table([words.PER_STEP, words.BASELINE, words.COMPARED, words.MORE], rows, 3)
        for title, pairs in (
            (words.PAIRS, comparison.pairs),
            (words.ONLY_COMPARED, comparison.only_compared),
            (words.ONLY_BASELINE, comparison.only_baseline),
        ):
            if pairs:
                yield from ("", f"### {self._say(title)}")
                heads = [words.OPERATOR, words.SHAPES, words.HOW]
                heads += [words.BASELINE, words.COMPARED, words.MORE, words.RATIO]
                yield from self._table(heads, list(map(self._pair, pairs)), 4)

    def _pair(self, pair: OperatorPair) -> list[str]:
        in_both = pair.baseline is not None and pair.compared is not None
        return [
            code(names(pair)),
            escape(shapes(pair)),
            self._say(words.MATCH[pair.match]) if in_both else "",
            cost(pair.baseline),
            cost(pair.compared),
            units.signed_duration(pair.more) if in_both else "",
            f"{pair.ratio:.2f}" if pair.ratio is not None else "",
        ]

    def _end(self, analysis: Analysis) -> Iterator[str]:
        missing = [
            f"- {self._say(words.NOT_CHECKED)}: {code(name)} ({self._say(why)})"
            for name, why in sentences.unchecked_by_reason(analysis)
        ]
        notes = [f"- {self._say(words.NOTE)}: {self._say(note)}" for note in analysis.notes]
        if missing or notes:
            yield from ("", *missing, *notes)
