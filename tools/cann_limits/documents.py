"""Reads what the operators' documents say of a function's arguments, for the card that is emulated (Atlas A2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace

from . import dtypes
from .tables import Table, tables

_HEADING = re.compile(r"^#{1,4} .*$", re.MULTILINE)
_FIRST_PHASE = re.compile(r"#+\s*(aclnn\w+?)GetWorkspaceSize")
_PRODUCTS_SECTION = re.compile(r"^## 产品支持情况$(.*?)^## ", re.MULTILINE | re.DOTALL)
_NOT_ON_CARD = re.compile(r"Atlas A2 训练系列产品[^|：\n]*(?:：|\|)\s*(?:不支持|×)")
_MARK = "910b"  # the card, in the comments around notes
_TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
_NOTE = re.compile(r'<!-- npu="([^"]*)"[^>]*-->(.*?)<!-- end', re.DOTALL)
_CARD_NOTE = re.compile(r"^(?=.*Atlas A2 训练系列产品).*$", re.MULTILINE)
_PRODUCTS = re.compile(r"<term>.*</term>\s*[：:]?")
_REFUSAL = re.compile(
    r"^(?P<names>.*?)(?:的?数据类型)?(?:均|都)?不支持(?P<dtypes>[^不]+?)(?:数据类型)?[。；;，,]?$"
)
_SAME = re.compile(
    r"^(?:数据类型)?[与和同]\s*`?(\w+)`?\s*(?:的?(?:数据)?类型)?(?:保持)?(?:一致|相同)。?$", re.ASCII
)
_NO_ARGUMENTS = ("workspaceSize", "executor", "opExecutor")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # Chinese stands beside names without spaces
_RANGE = re.compile(r"^(\d)\s*[-~]\s*(\d)维?$")
_CHOICES = re.compile(r"^\d(?:、\d)*维?$")
_AT_MOST = re.compile(r"^(?:不超过|小于等于|不高于|不大于|≤)(\d)维?$|^不支持(\d)维以上$")

_Change = Callable[[frozenset[str]], frozenset[str]]


@dataclass(frozen=True)
class Stated:
    """What a document states of an argument; None for what it does not, or not in a way that can be read."""

    dtypes: frozenset[str] | None = None
    dims: tuple[int, int] | None = None


@dataclass(frozen=True)
class Description:
    """What a document states of a function: the rows of its table in their order."""

    arguments: tuple[tuple[str, Stated], ...]


def descriptions(page: str) -> Iterator[tuple[str, Description]]:
    """Function -> description, for those of a page that the card has."""
    products = _PRODUCTS_SECTION.search(page)
    if products and _NOT_ON_CARD.search(products[1]):
        return
    headings = list(_HEADING.finditer(page))
    ends = [*(heading.start() for heading in headings), len(page)][1:]
    for heading, end in zip(headings, ends, strict=True):
        function = _FIRST_PHASE.match(heading.group())
        if function:
            described = _described(page[heading.end() : end])
            if described is not None:
                yield function[1], described


def _described(section: str) -> Description | None:
    for table in tables(section):
        if table and "参数名" in table[0] and "数据类型" in table[0]:
            rows = _rows(table)
            return Description(tuple(_with_notes(rows, section).items()))
    return None


def _rows(table: Table) -> dict[str, Stated]:
    cells = _cells(table)
    stated = {name: Stated(_dtypes(one.dtypes, one.usage), _dims(one.dims)) for name, one in cells.items()}
    for name, one in cells.items():
        same = _SAME.match(one.dtypes)
        if same and same[1] in stated:
            stated[name] = replace(stated[name], dtypes=stated[same[1]].dtypes)
    return stated


@dataclass(frozen=True)
class _Cells:
    """The columns of an argument that tell of its limits; "" where there is none."""

    dtypes: str
    dims: str
    usage: str


def _cells(table: Table) -> dict[str, _Cells]:
    head, *rows = table
    found: dict[str, list[list[str]]] = {}
    for row in rows:
        if len(row) != len(head):
            continue
        argument = _WORD.match(row[head.index("参数名")].strip("` "))
        if argument and argument[0] not in _NO_ARGUMENTS:
            found.setdefault(argument[0], []).append(row)
    return {
        name: _Cells(*(_column(head, of_argument, title) for title in ("数据类型", "维度", "使用说明")))
        for name, of_argument in found.items()
    }


def _column(head: list[str], rows: list[list[str]], title: str) -> str:
    """All that rows of an argument have in a column: a cell that spans several is there again in each."""
    place = next((i for i, one in enumerate(head) if one.startswith(title)), None)
    return "\n".join(dict.fromkeys(row[place].strip() for row in rows)) if place is not None else ""


def _dtypes(cell: str, usage: str) -> frozenset[str] | None:
    """What the column says, and what the remarks say beyond it: they tell of more where they differ."""
    in_column = dtypes.listed(cell)
    return None if in_column is None else in_column | dtypes.mentioned(usage)


def _dims(cell: str) -> tuple[int, int] | None:
    text = cell.strip()
    if found := _RANGE.match(text):
        return int(found[1]), int(found[2])
    if found := _AT_MOST.match(text):
        return 0, int(found[1] or found[2])
    if _CHOICES.match(text):
        numbers = [int(number) for number in re.findall(r"\d", text)]
        return min(numbers), max(numbers)
    return None


def _with_notes(stated: dict[str, Stated], section: str) -> dict[str, Stated]:
    """With what the notes below the table say of the card: dtypes that it lacks, or has as well."""
    for note in _notes(section):
        for line in note.splitlines():
            stated = _with_note(stated, line.strip().lstrip("-* "))
    return stated


def _notes(section: str) -> Iterator[str]:
    below = _TABLE.sub("", section)
    marked = [note for cards, note in _NOTE.findall(below) if _MARK in cards]
    unmarked = _NOTE.sub("", below)
    for note in [*marked, *_CARD_NOTE.findall(unmarked)]:
        yield _PRODUCTS.sub("", note)


def _with_note(stated: dict[str, Stated], line: str) -> dict[str, Stated]:
    found = dtypes.mentioned(line)
    if not found:
        return stated
    named = {word for word in _WORD.findall(line) if word in stated}
    about = named or set(stated)
    refusal = _REFUSAL.match(line)
    lacking = dtypes.listed(refusal["dtypes"]) if refusal else None
    if refusal and lacking and _names_only(refusal["names"], stated):
        return _changed(stated, about, lambda before: before - lacking)
    return _changed(stated, about, lambda before: before | found)


def _names_only(text: str, stated: dict[str, Stated]) -> bool:
    rest = re.sub(r"参数|入参|出参|输入|输出|[`、和与,，\s]", " ", text).split()
    return all(word in stated for word in rest)


def _changed(stated: dict[str, Stated], about: Container[str], change: _Change) -> dict[str, Stated]:
    return {
        name: replace(one, dtypes=change(one.dtypes)) if name in about and one.dtypes is not None else one
        for name, one in stated.items()
    }
