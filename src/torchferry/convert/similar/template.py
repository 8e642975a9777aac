"""Expressions with places for arguments: how they are read, and filled for one call."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

_TOKEN = re.compile(r"\[\[|\]\]|\{(\w+)\}")
_OPTION = re.compile(r"\[\[|\]\]")
_DOTTED = re.compile(r"(?<![\w.}\])])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
# What a place must stand between to be an argument of a call, where any expression may stand.
_OPENS_ARGUMENT = re.compile(r"(?:[(,]|[(,]\s*\w+=)\s*\Z")
_CLOSES_ARGUMENT = re.compile(r"\s*[,)]")


@dataclass(frozen=True)
class Slot:
    """A place for an argument; as the operand of something, it may need parentheses."""

    name: str
    is_operand: bool
    is_object: bool  # a dot or a bracket follows


Piece = str | Slot


@dataclass(frozen=True)
class _Segment:
    pieces: tuple[Piece, ...]
    is_optional: bool

    @property
    def names(self) -> set[str]:
        return {piece.name for piece in self.pieces if isinstance(piece, Slot)}


@cache
def _segments(use: str) -> tuple[_Segment, ...]:
    segments: list[_Segment] = []
    pieces: list[Piece] = []
    position = 0
    for match in _TOKEN.finditer(use):
        pieces.append(use[position : match.start()])
        position = match.end()
        if match[1]:
            before, after = (_OPTION.sub("", text) for text in (use[: match.start()], use[match.end() :]))
            is_argument = _OPENS_ARGUMENT.search(before) and _CLOSES_ARGUMENT.match(after)
            pieces.append(Slot(match[1], not is_argument, after.startswith((".", "[", "("))))
        else:
            segments.append(_Segment(tuple(pieces), match[0] == "]]"))
            pieces = []
    pieces.append(use[position:])
    return (*segments, _Segment(tuple(pieces), False))


def names_in(use: str) -> set[str]:
    """The arguments that a template speaks of."""
    return set().union(*(segment.names for segment in _segments(use)))


def filled(use: str, given: Collection[str], defaults: Mapping[str, str | None]) -> list[Piece]:
    """The pieces for a call that gives these arguments: optional text decided, other defaults written out."""
    found: list[Piece] = []
    for segment in _segments(use):
        if segment.is_optional and not segment.names <= set(given):
            continue
        for piece in segment.pieces:
            if isinstance(piece, Slot) and piece.name not in given:
                found.append(defaults[piece.name] or "")
            elif piece:
                found.append(piece)
    return found


def respelled(use: str, modules: Collection[str], spell: Callable[[str], str]) -> str:
    """A template with the dotted names of these modules written as they can be written in a place."""

    def replace(match: re.Match[str]) -> str:
        return spell(match[0]) if match[0].partition(".")[0] in modules else match[0]

    return _DOTTED.sub(replace, use)


def readable(use: str) -> str:
    """A template as a reader sees it: optional parts and braces written out."""
    return re.sub(r"\[\[|\]\]|[{}]", "", use)
