"""What several changes insert at one place has one order, whoever asks first."""

from __future__ import annotations

import ast
from itertools import permutations

import pytest

from torchferry.conversion.program.changes import ModuleChanges, Rank
from torchferry.source.decode import decode
from torchferry.source.edits import Edit, apply_edits
from torchferry.source.module import PythonModule
from torchferry.text import Text

WHY = Text("why", "为何")


def changes_of(source: str) -> ModuleChanges:
    return ModuleChanges(PythonModule(decode(source.encode())))


def result(changes: ModuleChanges) -> str:
    edits = [edit for proposal in changes.proposals() for edit in proposal.edits]
    return apply_edits(changes.module.data, edits).decode()


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_order_of_ranks_is_kept_whoever_asks_first(order: tuple[int, ...]) -> None:
    changes = changes_of("a = 1\nb = 2\n")
    a, b = changes.module.tree.body
    asked = [
        lambda: changes.add_below(a, "below = a", WHY),
        lambda: changes.at(b, WHY).edits.append(changes.above(b, "above = b")),
        lambda: changes.at(b, WHY).edits.append((Rank.BLOCK, Edit(6, 6, "if c: "))),
        lambda: changes.at(b, WHY, Edit(6, 6, "(b) = ")),
    ]
    for number in order:
        asked[number]()
    assert result(changes) == "a = 1\nbelow = a\nabove = b\nif c: (b) = b = 2\n"


def test_the_end_of_an_expression_comes_before_a_statement_that_is_put_behind_it() -> None:
    changes = changes_of("a = b; c = d\n")
    first = changes.module.tree.body[0]
    assert isinstance(first, ast.Assign)
    changes.add_below(first, "x = y", WHY)
    changes.at(first.value, WHY, Edit(5, 5, ".module"))
    assert result(changes) == "a = b.module; x = y; c = d\n"


def test_a_line_that_two_changes_ask_for_is_there_once() -> None:
    changes = changes_of("a = 1\nb = 2\n")
    for _ in range(2):
        changes.add_below(changes.module.tree.body[0], "c = 3", WHY)
    assert result(changes) == "a = 1\nc = 3\nb = 2\n"


def test_two_blocks_indent_twice_and_one_change_made_twice_is_one() -> None:
    changes = changes_of("b = 2\n")
    (statement,) = changes.module.tree.body
    for message in (WHY, Text("also", "亦"), WHY):
        changes.at(statement, message).edits.append((Rank.BLOCK, Edit(0, 0, "    ")))
    assert result(changes) == "        b = 2\n"


def test_each_change_shows_what_is_inserted_at_its_place() -> None:
    changes = changes_of("a = 1\nb = 2\n")
    for line in ("c = 3", "d = 4"):
        changes.add_below(changes.module.tree.body[0], line, WHY)
    texts = [[edit.text for edit in proposal.edits] for proposal in changes.proposals()]
    assert texts == [["c = 3\nd = 4\n"]] * 2
