"""Pieces of the text format: tables of limited length, text that rich shows as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchferry.perf.model import in_words
from torchferry.perf.report import words
from torchferry.report.safe import one_line, shortened
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text as Styled

_LONGEST_CELL = 100  # names of kernels of C++ templates run to thousands of characters


class Lines(NamedTuple):
    """The language, and how many rows a table may have."""

    language: Language
    top: int

    def say(self, text: Text) -> str:
        """On one line."""
        return one_line(text.in_language(self.language))

    def shown(self, what: str | Text) -> str:
        """A name as it is, words in the reader's language."""
        return in_words(what, self.language)

    def width(self, text: Text) -> int:
        """In columns of the terminal."""
        from rich.cells import cell_len

        return cell_len(self.say(text))

    def padded(self, text: Text, width: int) -> str:
        """With blanks up to this width."""
        return self.say(text) + " " * (width - self.width(text))

    def table(self, heads: Iterable[Text], numbers: Iterable[Text] = (), more: Iterable[Text] = ()) -> Table:
        """Columns of text, of numbers, and of text."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head in heads:
            table.add_column(plain(self.say(head)), overflow="fold")
        for head in numbers:
            table.add_column(plain(self.say(head)), justify="right", no_wrap=True)
        for head in more:
            table.add_column(plain(self.say(head)), overflow="fold")
        return table

    def titled(self, title: Text, table: Table) -> list[RenderableType]:
        """With a heading."""
        return ["", plain(self.say(title), "bold"), table]


def listing(
    lines: Lines, heads: Sequence[Text], rows: Sequence[Sequence[str]], *, numbers: int
) -> list[RenderableType]:
    """A table whose last columns hold numbers; columns that are empty are left out, rows beyond the limit counted."""
    shown = rows[: lines.top]
    kept = [at for at in range(len(heads)) if any(row[at] for row in shown)]
    first = len(heads) - numbers
    table = lines.table([heads[at] for at in kept if at < first], [heads[at] for at in kept if at >= first])
    for row in shown:
        table.add_row(*(plain(shortened(row[at], _LONGEST_CELL)) for at in kept))
    left = len(rows) - len(shown)
    more: list[RenderableType] = (
        [plain(lines.say(words.AND_MORE.format(count=left)), "dim")] if left > 0 else []
    )
    return [table, *more] if shown else more


def plain(text: str, style: str = "") -> Styled:
    """Text that rich shows as it is: brackets in names are no markup."""
    from rich.text import Text as Styled

    return Styled(one_line(text), style)
