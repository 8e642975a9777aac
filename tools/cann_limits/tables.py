"""Reads the HTML tables of a page: each a list of rows of cells, those that span rows and columns repeated."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

Table = list[list[str]]
_NEW_LINES = ("br", "li", "p")


@dataclass
class _Cell:
    rows: int
    columns: int
    text: list[str] = field(default_factory=list)


def tables(page: str) -> list[Table]:
    """All tables of a page."""
    reader = _Reader()
    reader.feed(page)
    return [_spread(rows) for rows in reader.found]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[list[list[_Cell]]] = []
        self._cell: _Cell | None = None
        self._is_footnote = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.found.append([])
        elif tag == "tr" and self.found:
            self.found[-1].append([])
        elif tag in ("td", "th") and self.found and self.found[-1]:
            given = dict(attrs)
            self._cell = _Cell(int(given.get("rowspan") or 1), int(given.get("colspan") or 1))
            self.found[-1][-1].append(self._cell)
        elif tag == "sup":
            self._is_footnote = True
        elif tag in _NEW_LINES:
            self.handle_data("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "table"):
            self._cell = None
        elif tag == "sup":
            self._is_footnote = False

    def handle_data(self, data: str) -> None:
        if self._cell is not None and not self._is_footnote:
            self._cell.text.append(data)


def _spread(rows: list[list[_Cell]]) -> Table:
    spread: Table = []
    from_above: dict[int, tuple[int, str]] = {}  # column -> rows that are left, text
    for row in rows:
        line: list[str] = []
        for cell in row:
            _fill(line, from_above)
            text = "".join(cell.text).strip()
            for _ in range(cell.columns):
                from_above[len(line)] = (cell.rows - 1, text)
                line.append(text)
        _fill(line, from_above)
        spread.append(line)
    return spread


def _fill(line: list[str], from_above: dict[int, tuple[int, str]]) -> None:
    """Append the cells that reach down from the rows above to where the line ends."""
    while from_above.get(len(line), (0, ""))[0] > 0:
        left, text = from_above[len(line)]
        from_above[len(line)] = (left - 1, text)
        line.append(text)
