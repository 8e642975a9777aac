"""A comparison for the terminal: the verdict first, what to do next, then the calls that need attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchferry import units
from torchferry.accuracy.compare.model import Comparison, Pair
from torchferry.accuracy.judge.model import Verdict
from torchferry.accuracy.report import sentences, words
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text as Styled

PLAIN_WIDTH = 120
LIMIT = 15  # rows of a table
STYLES = {
    Verdict.EQUAL: "green",
    Verdict.NORMAL: "green",
    Verdict.INHERITED: "cyan",
    Verdict.REDUCED: "blue",
    Verdict.UNKNOWN: "magenta",
    Verdict.UNEXPLAINED: "magenta",
    Verdict.SUSPICIOUS: "yellow",
    Verdict.FAULT: "red",
    Verdict.PROGRAM: "red",
}


def to_text(
    comparisons: Sequence[Comparison],
    language: Language = "en",
    *,
    width: int = PLAIN_WIDTH,
    terminal: bool = False,
    limit: int | None = LIMIT,
    everything: bool = False,
) -> str:
    """The report for a terminal of this width, or without colours. `everything` lists all calls."""
    import io

    from rich.console import Console

    output = io.StringIO()
    console = Console(
        file=output, width=width, force_terminal=terminal, highlight=False, legacy_windows=False, emoji=False
    )
    for comparison in comparisons:
        part = _Part(comparison, sentences.label(comparison, comparisons), language, limit, everything)
        for line in part.verdict():
            console.print(line, soft_wrap=not terminal)  # whole lines can be copied
        for each in part.tables():
            console.print(each, crop=terminal)
    return "\n".join(line.rstrip() for line in output.getvalue().split("\n"))


class _Part:
    """One rank."""

    def __init__(
        self,
        comparison: Comparison,
        label: Text | None,
        language: Language,
        limit: int | None,
        everything: bool,
    ) -> None:
        self._comparison = comparison
        self._label = label
        self._language = language
        self._limit = limit
        self._everything = everything

    def _say(self, text: Text) -> str:
        return one_line(text.in_language(self._language))

    def verdict(self) -> list[Styled]:
        """The verdict, what is known of the culprit, and what to do."""
        comparison = self._comparison
        label = f"{self._say(self._label)}: " if self._label else ""
        lines = [_plain(label + self._say(sentences.headline(comparison)), f"bold {self._style()}")]
        named = sentences.details(comparison)
        column = max((_width(self._say(name)) for name, _ in named), default=0) + 2
        lines += [_plain(f"  {_padded(self._say(name), column)}{self._say(text)}") for name, text in named]
        for what, commands in sentences.next_commands(comparison):
            lines += [_plain(f"  → {self._say(what)}:")]
            lines += [_plain(f"      {command}", "bold") for command in commands]
        lines += [_plain(self._say(text)) for text in sentences.network(comparison)]
        grown = sentences.grown(comparison)
        lines += [_plain(self._say(grown))] if grown else []
        lines += [_plain(f"{self._say(words.NOTE)}: {self._say(note)}", "dim") for note in comparison.notes]
        return lines

    def _style(self) -> str:
        culprit = self._comparison.culprit
        return "green" if culprit is None else STYLES[self._comparison.pairs[culprit].judgement.verdict]

    def tables(self) -> list[RenderableType]:
        """The calls that need attention, or all; those without a counterpart; how many have which verdict."""
        pairs = self._comparison.pairs
        if self._everything:
            parts = self._calls(words.ALL_CALLS, [pair for pair in pairs if pair.mine is not None])
            if self._comparison.golden:
                lonely = [pair for pair in pairs if pair.mine is None or pair.golden is None]
                parts += self._calls(words.LONELY, lonely)
        else:
            parts = self._attention(sentences.attention(self._comparison))
        return [*parts, *self._counts()]

    def _attention(self, pairs: Sequence[Pair]) -> list[RenderableType]:
        """Calls of one operator that go wrong in one way stand together, in the place of the first."""
        alike: dict[tuple[object, ...], list[Pair]] = {}
        for pair in pairs:
            key = (sentences.call_of(pair).operator, pair.judgement.verdict, pair.judgement.sort)
            alike.setdefault(key, []).append(pair)
        first = [each[0] for each in alike.values()]
        return self._calls(words.WORST, first, [len(each) for each in alike.values()])

    def _calls(self, title: Text, pairs: Sequence[Pair], counts: Sequence[int] = ()) -> list[RenderableType]:
        if not pairs:
            return []
        table = self._table([words.NUMBER, words.OPERATOR, words.VERDICT_COLUMN])
        for head in (words.OWN_ERROR, words.GOLDEN_ERROR, words.LIMIT):
            table.add_column(_plain(self._say(head)), justify="right", no_wrap=True)
        for head in (words.WHERE_COLUMN, words.HOW_COLUMN):
            table.add_column(_plain(self._say(head)), overflow="fold")
        shown = pairs[: self._limit]
        for pair, count in zip(shown, counts[: self._limit] or [1] * len(shown), strict=True):
            table.add_row(*self._row(pair, count))
        left = len(pairs) - self._limit if self._limit is not None else 0
        more = [_plain(self._say(words.AND_MORE.format(count=left)), "dim")] if left > 0 else []
        total = sum(counts) if counts else len(pairs)
        return ["", _plain(f"{self._say(title)} ({total})", "bold"), table, *more]

    def _row(self, pair: Pair, count: int) -> list[RenderableType]:
        call, judgement = sentences.call_of(pair), pair.judgement
        sort = words.SORT[judgement.sort]
        figures = (judgement.own_error, judgement.golden_error, judgement.limit)
        phase = words.PHASE.get(call.phase, Text(call.phase, call.phase))
        place = [f"{call.step} {self._say(phase)}", sentences.module_of(call), one_line(call.place)]
        verdict = _plain(self._say(words.VERDICT[judgement.verdict]), STYLES[judgement.verdict])
        if sort.en:
            verdict.append(f"\n{self._say(sort)}", "dim")
        named = _plain(_named(pair))
        if count > 1:
            named.append(f"\n× {count}", "bold")
        return [
            _plain(str(call.number)),
            named,
            verdict if sentences.is_judged(pair) else _plain(""),
            *(_plain(units.short_number(each) if each is not None else "") for each in figures),
            _plain("\n".join(filter(None, place))),
            _plain(self._say(words.HOW[pair.how]) if self._comparison.golden else ""),
        ]

    def _counts(self) -> list[RenderableType]:
        counts = sentences.verdict_counts(self._comparison)
        table = self._table([words.VERDICT_COLUMN])
        table.add_column(_plain(self._say(words.COUNT)), justify="right", no_wrap=True)
        table.add_column(_plain(self._say(words.MEANS)), overflow="fold", style="dim")
        for verdict in sentences.WORST_FIRST:
            if counts[verdict]:
                name = _plain(self._say(words.VERDICT[verdict]), STYLES[verdict])
                table.add_row(name, f"{counts[verdict]:,}", self._say(words.MEANING[verdict]))
        return ["", _plain(self._say(words.BY_VERDICT), "bold"), table]

    def _table(self, heads: Sequence[Text]) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head in heads:
            table.add_column(_plain(self._say(head)), overflow="fold")
        return table


def _named(pair: Pair) -> str:
    """The operator; golden's too, where it has another name."""
    call = sentences.call_of(pair)
    if pair.mine and pair.golden and pair.mine.operator != pair.golden.operator:
        return f"{one_line(pair.mine.operator)}\n= {one_line(pair.golden.operator)}"
    return one_line(call.operator)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _plain(text: str, style: str = "") -> Styled:
    """Text that rich shows as it is: brackets in names are no markup."""
    from rich.text import Text as Styled

    return Styled(text, style)
