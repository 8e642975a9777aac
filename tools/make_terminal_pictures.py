"""Writes docs/images/scan.svg and scan.zh.svg: what a terminal shows of a command; `make docs` calls it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("scan", "examples/finetune", "--to", "ascend")
PICTURES = {"en": "scan.svg", "zh": "scan.zh.svg"}
WIDTH = 96  # columns
_CELL, _LINE, _MARGIN = 8.4, 19, 16  # pixels
_INK, _PAPER = "#dee3eb", "#151921"
# The eight colours of terminals, but for black and white.
_COLOURS = {1: "#f07178", 2: "#7ec97e", 3: "#f0be5c", 4: "#6ea8fe", 5: "#c792ea", 6: "#5eced6"}
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">
<rect width="100%" height="100%" rx="8" fill="{paper}"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace" font-size="14" fill="{ink}">
{lines}
</g>
</svg>
"""


def shown(command: tuple[str, ...], language: str) -> str:
    """What the command writes to a terminal, colours included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TORCHFERRY_LANG": language, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-m", "torchferry", *command],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env=environment,
        cwd=ROOT,
    )
    os.close(theirs)
    pieces = []
    while piece := _read(ours):
        pieces.append(piece)
    process.wait()
    return b"".join(pieces).decode("utf-8").replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def picture(command: tuple[str, ...], language: str) -> str:
    """An SVG of a terminal after the command."""
    text = Text.assemble(("$ ", "bold green"), (f"ferry {' '.join(command)}\n", "bold"))
    text.append_text(Text.from_ansi(shown(command, language).strip("\n")))
    console = Console(width=WIDTH, force_terminal=True)
    lines = console.render_lines(text, pad=False)
    width, height = 2 * _MARGIN + WIDTH * _CELL, 2 * _MARGIN + len(lines) * _LINE
    drawn = "\n".join(
        piece for row, line in enumerate(lines) for piece in _line(line, _MARGIN + (row + 0.75) * _LINE)
    )
    return _SVG.format(width=width, height=height, paper=_PAPER, ink=_INK, lines=drawn)


def _line(segments: list[Segment], y: float) -> Iterator[str]:
    column = 0
    for segment in segments:
        for word in re.finditer(r"\S+(?: \S+)*", segment.text):  # browsers merge several spaces
            before = cell_len(segment.text[: word.start()])
            x, width = _MARGIN + (column + before) * _CELL, cell_len(word[0]) * _CELL
            style = _style(segment.style or Style())
            yield f'<text x="{x:.1f}" y="{y:.1f}" textLength="{width:.1f}"{style}>{escape(word[0])}</text>'
        column += cell_len(segment.text)


def _style(style: Style) -> str:
    number = style.color.number if style.color else None
    colour = _COLOURS.get(number % 8) if number is not None else None
    given = [f'fill="{colour}"'] if colour else []
    given += ['font-weight="bold"'] if style.bold else []
    given += ['text-decoration="underline"'] if style.underline else []
    given += ['opacity="0.6"'] if style.dim else []
    return "".join(f" {each}" for each in given)


def main() -> int:
    """Write the pictures."""
    folder = ROOT / "docs" / "images"
    folder.mkdir(exist_ok=True)
    for language, name in PICTURES.items():
        (folder / name).write_text(picture(COMMAND, language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
