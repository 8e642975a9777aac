"""Reads from the sources of the operator functions which dtypes and numbers of dimensions they check for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import dtypes

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FIRST_PHASE = re.compile(r"aclnnStatus\s+(aclnn\w+?)GetWorkspaceSize\s*\(")
_LIST = re.compile(r"(?:initializer_list|vector)<\s*(?:\w+::)*DataType\s*>\s+(\w+)\s*(?:=\s*)?\{([^{}]*)\}")
_NAMED = re.compile(r"\b(\w+)\s*=\s*([^;={}]+);")
_BODY = re.compile(r"^[^\n;#]*\b(\w+)\s*\([^;{}]*\)\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?:const|constexpr)\s+[\w:]+\s+(\w+)\s*=\s*(\d+)\s*;")
_DTYPE_CHECK = re.compile(
    r"OP_CHECK_DTYPE_NOT_SUPPORT\w*\(\s*([\w.>-]+)\s*,\s*(\w+|\{[^}]*\}|\w+\([^)]*\))\s*,"
    r"|\bCheckType\(\s*([\w.>-]+?)->GetDataType\(\)\s*,\s*(\w+|\{[^}]*\}|\w+\([^)]*\))\s*\)"
)
_SAME_CHECK = re.compile(
    r"OP_CHECK_DTYPE_NOT_(?:MATCH|SAME)\(\s*([\w.>-]+?)\s*,\s*([\w.>-]+?)(?:->GetDataType\(\))?\s*,"
)
_CAST_CHECK = re.compile(r"OP_CHECK_RESULT_DTYPE_CAST_FAILED\(([^;]*);")
_ARGUMENT = re.compile(r"([\w.>-]+?)->GetDataType\(\)")
_DIM_CHECK = re.compile(r"OP_CHECK_(MAX_DIM|MIN_DIM|WRONG_DIMENSION)\(\s*([\w.>-]+)\s*,\s*(\w+)\s*,")
# Lists for cards of later generations only.
_OTHER_CARDS = re.compile(r"95|REGBASE|3510|A5")
_WELL_KNOWN = {"MAX_SUPPORT_DIMS_NUMS": 8}


@dataclass(frozen=True)
class Checked:
    """What a source checks of arguments, by their names."""

    dtypes: dict[str, frozenset[str]] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)  # must be of the dtype of another argument
    cast: frozenset[str] = frozenset()  # of any dtype that can be cast to or from
    every: frozenset[str] = frozenset()  # all dtypes that the source lists for anything
    at_least: dict[str, int] = field(default_factory=dict)
    at_most: dict[str, int] = field(default_factory=dict)


def functions(source: str) -> list[str]:
    """The operator functions that a source defines."""
    return _FIRST_PHASE.findall(source)


def checks(source: str) -> Checked:
    """What is checked somewhere in a source; where it may be this list or that, both."""
    text = _COMMENT.sub("", source)
    lists = _Lists(text)
    at_least, at_most = _dims(text, lists)
    return Checked(
        _dtypes(text, lists),
        {_last(one): _last(other) for one, other in _SAME_CHECK.findall(text)},
        frozenset(_last(word) for found in _CAST_CHECK.findall(text) for word in _ARGUMENT.findall(found)),
        lists.every(),
        at_least,
        at_most,
    )


def _dtypes(text: str, lists: _Lists) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for first, named, second, also_named in _DTYPE_CHECK.findall(text):
        argument = _last(first or second)
        found[argument] = found.get(argument, frozenset()) | lists.of(named or also_named)
    return found


def _dims(text: str, lists: _Lists) -> tuple[dict[str, int], dict[str, int]]:
    at_least: dict[str, int] = {}
    at_most: dict[str, int] = {}
    for kind, argument, number in _DIM_CHECK.findall(text):
        value, name = lists.number(number), _last(argument)
        if value is not None and kind != "MAX_DIM":
            at_least[name] = min(value, at_least.get(name, value))
        if value is not None and kind != "MIN_DIM":
            at_most[name] = max(value, at_most.get(name, value))
    return at_least, at_most


def _last(argument: str) -> str:
    return re.split(r"\.|->", argument)[-1]


class _Lists:
    """The lists of dtypes that a source has, and what leads to them."""

    def __init__(self, text: str) -> None:
        named = [(name, dtypes.mentioned(body)) for name, body in _LIST.findall(text)]
        self._lists = {name: found for name, found in named if not _OTHER_CARDS.search(name.upper())}
        self._ways = [*_NAMED.findall(text), *((name, body) for name, body in _BODY.findall(text))]
        self._numbers = {name: int(value) for name, value in _NUMBER.findall(text)} | _WELL_KNOWN

    def number(self, word: str) -> int | None:
        """The value of a number or of a constant."""
        return int(word) if word.isdigit() else self._numbers.get(word)

    def every(self) -> frozenset[str]:
        """The dtypes of all lists."""
        return frozenset().union(*self._lists.values())

    def of(self, given: str) -> frozenset[str]:
        """All dtypes that a list may have; those of all lists where it can't be told."""
        if given.startswith("{"):
            return dtypes.mentioned(given)
        found = frozenset().union(*self._reached(given.split("(")[0], set()))
        return found or self.every()

    def _reached(self, name: str, seen: set[str]) -> Iterator[frozenset[str]]:
        if name in seen:
            return
        seen.add(name)
        if name in self._lists:
            yield self._lists[name]
        for way, text in self._ways:
            if way == name:
                for word in re.findall(r"\w+", text):
                    yield from self._reached(word, seen)
