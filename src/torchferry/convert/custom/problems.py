"""The mistakes of one rule file, gathered so that the user sees all of them at once, each with its line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from torchferry.errors import RuleFileError

KeyPath = tuple[str | int, ...]  # how a value is reached: ("rules", "ArgsModifyRule", 0, "arg_idx")

_MOST = 20  # lines; whoever has more mistakes has made one of them many times


class Problems:
    """What is wrong with a file."""

    def __init__(self, file: Path, lines: Mapping[KeyPath, int], counts: bool = True) -> None:
        self.file = file
        self.lines = lines
        self.counts = counts  # whether the entries of a list are told apart by their numbers
        self.found: list[tuple[int, str]] = []

    def add(self, path: KeyPath, text: str) -> None:
        """Note a mistake at a key, or at the nearest thing around it that stands in the file."""
        line = self.line(path)
        shown = self._shown(path)
        self.found.append(
            (line, f"{self.file}:{line}: {shown}: {text}" if shown else f"{self.file}:{line}: {text}")
        )

    def line(self, path: KeyPath) -> int:
        """The line of a key or an entry."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def unknown(self, path: KeyPath, allowed: Iterable[str]) -> None:
        """Note a key that does not exist."""
        names = list(allowed)
        near = difflib.get_close_matches(str(path[-1]), names, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        self.add(path, f"unknown{meant}; allowed are {', '.join(names)}")

    def _shown(self, path: KeyPath) -> str:
        text = ""
        for part in path:
            if isinstance(part, str):
                text += f".{part}" if text else part
            elif self.counts:
                text += f"[{part}]"
        return text

    def raise_if_any(self) -> None:
        """Raise all mistakes as one error, in the order of the file."""
        if not self.found:
            return
        shown = [text for _, text in sorted(self.found, key=lambda item: item[0])]
        left = len(shown) - _MOST
        raise RuleFileError(*shown[:_MOST], *([f"{self.file}: and {left} more mistakes"] if left > 0 else ()))
