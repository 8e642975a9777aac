"""A comparison for the terminal: the verdict first, what to do next, then the calls that need attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchferry import units
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.judge.model import CallPair
from torchferry.accuracy.report import sentences, words
from torchferry.report.formats import Options
from torchferry.report.safe import one_line
from torchferry.report.terminal import Screen, Words, plain
from torchferry.text import Text, named

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text as Styled

LIMIT = 15  # rows of a table


def to_text(comparisons: Sequence[RankComparison], options: Options) -> str:
    """For a terminal, or without colours; each rank by itself."""
    screen = Screen(options)
    limit = LIMIT if options.limit is None and not options.everything else options.limit
    for comparison in comparisons:
        part = _RankRows(comparison, sentences.label(comparison, comparisons), Words(options, limit))
        screen.line(*part.verdict())
        screen.part(*part.tables(options.everything))
    return screen.text()


class _RankRows:
    def __init__(self, comparison: RankComparison, label: Text | None, words: Words) -> None:
        self._comparison, self._label = comparison, label
        self._words, self._say = words, words.say

    def verdict(self) -> list[Styled]:
        """The verdict, what is known of the culprit, and what to do."""
        comparison = self._comparison
        headline = sentences.headline(comparison)
        said = named(self._label, headline) if self._label else headline
        style = "green" if comparison.culprit is None else _style(comparison.pairs[comparison.culprit])
        lines = [self._words.plain(said, f"bold {style}")]
        details = sentences.details(comparison)
        column = max((self._words.width(name) for name, _ in details), default=0) + 2
        lines += [plain(f"  {self._words.padded(name, column)}{self._say(text)}") for name, text in details]
        for what, commands in sentences.next_commands(comparison):
            lines += [plain(f"  → {self._say(named(what, '')).rstrip()}")]
            lines += [plain(f"      {command}", "bold") for command in commands]
        lines += [self._words.plain(text) for text in sentences.network(comparison)]
        grown = sentences.grown(comparison)
        lines += [self._words.plain(grown)] if grown else []
        return lines + [self._words.note(words.NOTE, note) for note in comparison.notes]

    def tables(self, everything: bool) -> list[RenderableType]:
        """The calls that need attention, or all; those without a counterpart; how many have which verdict."""
        pairs = self._comparison.pairs
        if everything:
            parts = self._calls(words.ALL_CALLS, [pair for pair in pairs if pair.mine is not None])
            if self._comparison.golden:
                lonely = [pair for pair in pairs if pair.mine is None or pair.golden is None]
                parts += self._calls(words.LONELY, lonely)
        else:
            # calls of one operator that go wrong in one way stand together, in the place of the first
            alike: dict[tuple[object, ...], list[CallPair]] = {}
            for pair in sentences.attention(self._comparison):
                key = (sentences.call_of(pair).operator, pair.judgement.verdict, pair.judgement.sort)
                alike.setdefault(key, []).append(pair)
            first = [each[0] for each in alike.values()]
            parts = self._calls(words.WORST, first, [len(each) for each in alike.values()])
        return [*parts, *self._counts()]

    def _calls(
        self, title: Text, pairs: Sequence[CallPair], counts: Sequence[int] = ()
    ) -> list[RenderableType]:
        if not pairs:
            return []
        table = self._words.table(
            [words.NUMBER, words.OPERATOR, words.VERDICT_COLUMN],
            [words.OWN_ERROR, words.GOLDEN_ERROR, words.LIMIT],
            [words.WHERE_COLUMN, words.HOW_COLUMN],
        )
        shown = pairs[: self._words.limit]
        for pair, count in zip(shown, counts[: self._words.limit] or [1] * len(shown), strict=True):
            table.add_row(*self._row(pair, count))
        total = sum(counts) if counts else len(pairs)
        return self._words.titled(title, table, total, left_out=len(pairs) - len(shown))

    def _row(self, pair: CallPair, count: int) -> list[RenderableType]:
        call, judgement = sentences.call_of(pair), pair.judgement
        sort = words.SORT[judgement.sort]
        phase = self._say(words.phase(call.phase))
        place = [f"{call.step} {phase}", sentences.module_of(call), one_line(call.place)]
        verdict = self._words.plain(words.VERDICT[judgement.verdict].name, _style(pair))
        if sort.en:
            verdict.append(f"\n{self._say(sort)}", "dim")
        operator = plain(one_line(call.operator))
        if pair.mine and pair.golden and pair.mine.operator != pair.golden.operator:
            operator.append(f"\n= {one_line(pair.golden.operator)}")
        if count > 1:
            operator.append(f"\n× {count}", "bold")
        return [
            plain(str(call.number)),
            operator,
            verdict if sentences.is_judged(pair) else "",
            *(plain(units.short_number(each) if each is not None else "") for each in judgement.errors),
            plain("\n".join(filter(None, place))),
            self._words.plain(words.HOW[pair.how]) if self._comparison.golden else "",
        ]

    def _counts(self) -> list[RenderableType]:
        counts = sentences.verdict_counts(self._comparison)
        table = self._words.table([words.VERDICT_COLUMN], [words.COUNT], [words.MEANS])
        for verdict, grade in words.VERDICT.items():
            if counts[verdict]:
                name = self._words.plain(grade.name, grade.style)
                table.add_row(name, f"{counts[verdict]:,}", self._words.plain(grade.meaning, "dim"))
        return self._words.titled(words.BY_VERDICT, table)


def _style(pair: CallPair) -> str:
    return words.VERDICT[pair.judgement.verdict].style
