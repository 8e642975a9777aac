"""Reports as text, for a terminal of some width with its colours or for a file without: rich, called in one way."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchferry.report.formats import Options
from torchferry.report.page import AND_MORE
from torchferry.report.safe import one_line
from torchferry.report.streams import WIDTH_OF_FILES, Styles
from torchferry.text import Text, named

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text as Styled


class Screen:
    """What is printed, one after the other."""

    def __init__(self, options: Options, least_width: int = 0) -> None:
        from rich.console import Console

        self._output = io.StringIO()
        self._is_terminal = options.terminal
        self._console = Console(
            file=self._output,
            width=max(options.width or WIDTH_OF_FILES, least_width),
            height=1,  # else rich takes 80 columns for a terminal that calls itself dumb
            force_terminal=options.styles is not Styles.NONE,
            color_system="standard" if options.styles is not Styles.NONE else None,
            no_color=options.styles is not Styles.COLORS,
            highlight=False,
            legacy_windows=False,
            emoji=False,
        )

    def line(self, *lines: RenderableType) -> None:
        """Lines that stay whole where there is no terminal: for programs that read them, commands to be copied."""
        for line in lines:
            is_whole = not self._is_terminal or "ferry " in str(line)  # a broken command can't be copied
            self._console.print(line, soft_wrap=is_whole)

    def part(self, *parts: RenderableType) -> None:
        """Tables, and text that is wrapped."""
        for part in parts:
            is_whole = getattr(part, "no_wrap", None) is True
            self._console.print(part, crop=self._is_terminal, soft_wrap=is_whole)

    def text(self) -> str:
        """The whole text."""
        return "\n".join(line.rstrip() for line in self._output.getvalue().split("\n"))


class Words:
    """Text in the reader's language, and the pieces of reports that are made of it."""

    def __init__(self, options: Options, limit: int | None = None) -> None:
        self.language = options.language
        self.limit = limit  # rows of a table

    def say(self, text: Text | str) -> str:
        """Write a text on one line."""
        return one_line(text if isinstance(text, str) else text.in_language(self.language))

    def plain(self, text: Text | str, style: str = "") -> Styled:
        """Words without markup."""
        return plain(text if isinstance(text, str) else text.in_language(self.language), style)

    def width(self, text: Text) -> int:
        """In columns of the terminal."""
        from rich.cells import cell_len

        return cell_len(self.say(text))

    def padded(self, text: Text, width: int) -> str:
        """With blanks up to this width."""
        return self.say(text) + " " * (width - self.width(text))

    def table(
        self,
        heads: Iterable[Text | str],
        numbers: Iterable[Text | str] = (),
        more: Iterable[Text | str] = (),
    ) -> Table:
        """A table without rows: columns of text, of numbers, and of text."""
        table = empty_table()
        for head in heads:
            table.add_column(plain(self.say(head)), overflow="fold")
        for head in numbers:
            table.add_column(plain(self.say(head)), justify="right", no_wrap=True)
        for head in more:
            table.add_column(plain(self.say(head)), overflow="fold")
        return table

    def titled(
        self, title: Text, table: RenderableType, count: int | None = None, *, left_out: int | None = None
    ) -> list[RenderableType]:
        """A part of the report under its heading, with the number of what it is about, and how many rows are left out:
        those beyond the limit, unless the caller knows."""
        number = "" if count is None else f" ({count})"
        left = max((count or 0) - self.limit, 0) if left_out is None and self.limit is not None else left_out
        return ["", plain(f"{self.say(title)}{number}", "bold"), table, *self.left_out(left or 0)]

    def left_out(self, count: int) -> list[RenderableType]:
        """How many rows are not shown, if any."""
        return [self.plain(AND_MORE.format(count=count), "dim")] if count > 0 else []

    def note(self, name: Text, text: Text | str) -> Styled:
        """A remark in the background."""
        return plain(self.say(named(name, text)), "dim")


def plain(text: str, style: str = "") -> Styled:
    """Text that rich shows as it is: brackets in names are no markup, and nothing is invisible."""
    from rich.text import Text as Styled

    return Styled("\n".join(map(one_line, text.split("\n"))), style)


def assembled(*pieces: str | tuple[str, str]) -> Styled:
    """Text of pieces, each with its style."""
    from rich.text import Text as Styled

    return Styled.assemble(*pieces)


def indented(text: RenderableType, by: int) -> RenderableType:
    """Text whose further lines begin where the first one does."""
    from rich.padding import Padding

    return Padding(text, (0, 0, 0, by))


def whole_line(line: str) -> Styled:
    """On one line, however long: a broken command can't be copied."""
    from rich.text import Text as Styled

    return Styled(line, no_wrap=True)


def empty_table() -> Table:
    """The look of all tables."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
