"""Maps the text of an original file onto the converted one: which characters survived, which lines are new."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from .text import Lines

PIECE = re.compile(r"\w+|\s+|[^\w\s]")
MOST_PAIRS = 4000
Opcode = tuple[str, int, int, int, int]


@dataclass
class Alignment:
    """What became of each character of the original."""

    old: Lines
    new: Lines
    kept: list[tuple[int, int]] = field(default_factory=list)
    replaced: list[tuple[int, int, str]] = field(default_factory=list)
    changed_lines: list[int] = field(default_factory=list)
    inserted: list[tuple[int, str]] = field(default_factory=list)
    """Lines that have no counterpart: (line number in the converted file, text)."""

    def same(self, start: int, end: int) -> bool:
        """Whether the characters from start to end of the original are in the result, side by side."""
        at = bisect_right(self.kept, (start, 1 << 60)) - 1
        return at >= 0 and self.kept[at][0] <= start and end <= self.kept[at][1]

    def instead(self, start: int, end: int) -> str:
        """The text that stands in the result where the original had start to end."""
        return " ".join(
            text for first, last, text in self.replaced if first < end and start < max(last, first + 1)
        )


def align(old_text: str, new_text: str) -> Alignment:
    """Aligns two versions of a file, by lines first, then by words within lines that differ."""
    result = Alignment(Lines(old_text), Lines(new_text))
    old, new = result.old.lines, result.new.lines
    for tag, a0, a1, b0, b1 in _opcodes(old, new):
        if tag == "equal":
            result.kept.append((result.old.starts[a0], result.old.starts[a1]))
        elif tag == "insert":
            result.inserted += [(number + 1, new[number]) for number in range(b0, b1)]
        elif a1 - a0 == b1 - b0:
            for a, b in zip(range(a0, a1), range(b0, b1), strict=True):
                _words(result, (a, a + 1), (b, b + 1))
        elif (a1 - a0) * (b1 - b0) > MOST_PAIRS:
            _words(result, (a0, a1), (b0, b1))
        else:
            _pairs(result, (a0, a1), (b0, b1))
    result.kept = list(_merged(sorted(result.kept)))
    return result


def _opcodes(old: list[str], new: list[str]) -> Iterator[Opcode]:
    """Line opcodes, with the equal head and tail cut off first: files are long and edits few."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head:
        yield "equal", 0, head, 0, head
    middle = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    for tag, a0, a1, b0, b1 in middle.get_opcodes():
        yield tag, a0 + head, a1 + head, b0 + head, b1 + head
    if tail:
        yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)


def _pairs(result: Alignment, a: tuple[int, int], b: tuple[int, int]) -> None:
    """Aligns blocks of unequal length: pairs the most similar lines in order, the others are gone or new."""
    old, new = result.old.lines[a[0] : a[1]], result.new.lines[b[0] : b[1]]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    score = [[_alike(one, other) for other in new] for one in old]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + score[i][j])
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and score[i][j] and best[i][j] == best[i + 1][j + 1] + score[i][j]:
            _words(result, (a[0] + i, a[0] + i + 1), (b[0] + j, b[0] + j + 1))
            i, j = i + 1, j + 1
        elif j < len(new) and (i == len(old) or best[i][j] == best[i][j + 1]):
            result.inserted.append((b[0] + j + 1, new[j]))
            j += 1
        else:
            result.changed_lines.append(a[0] + i + 1)
            i += 1


def _alike(one: str, other: str) -> float:
    ratio = SequenceMatcher(
        None, PIECE.findall(one.strip()), PIECE.findall(other.strip()), autojunk=False
    ).ratio()
    return ratio if ratio > 0.4 else 0.0


def _words(result: Alignment, a: tuple[int, int], b: tuple[int, int]) -> None:
    old = PIECE.findall("".join(result.old.lines[a[0] : a[1]]))
    new = PIECE.findall("".join(result.new.lines[b[0] : b[1]]))
    starts = [result.old.starts[a[0]]]
    for piece in old:
        starts.append(starts[-1] + len(piece))
    lines: set[int] = set()
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            result.kept.append((starts[a0], starts[a1]))
            continue
        result.replaced.append((starts[a0], starts[a1], "".join(new[b0:b1])))
        first, _ = result.old.position(starts[a0])
        last, _ = result.old.position(max(starts[a0], starts[a1] - 1))
        lines.update(range(first, last + 1))
    result.changed_lines += sorted(lines)


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current is not None and start == current[1]:
            current = (current[0], end)
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current
