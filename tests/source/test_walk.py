"""The walk over lines of interest."""

from __future__ import annotations

import ast

import pytest

from torchferry.source.decode import DecodedText
from torchferry.source.module import PythonModule
from torchferry.source.walk import WalkState, walk_all, walk_lines

_SOURCE = """\
a = f(
    one,
    two,
)
def g(x=three):
    return [four for y in five]
six
"""


def names_on(lines: list[int], source: str = _SOURCE) -> list[str]:
    module = PythonModule(DecodedText(source, "utf-8"))
    found: list[str] = []

    def visit(node: ast.AST, place: WalkState) -> None:
        assert isinstance(node, ast.Name)
        found.append(node.id)

    walk_lines(module, lines, {ast.Name: visit})
    return found


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        ([1], ["a", "f"]),
        ([2], ["one"]),
        ([3], ["two"]),
        ([5], ["three"]),
        ([6], ["four", "y", "five"]),
        ([2, 7], ["one", "six"]),
        ([99], []),
    ],
)
def test_only_what_touches_the_lines(lines: list[int], expected: list[str]) -> None:
    assert names_on(lines) == expected


def test_all_lines_visit_every_name_once() -> None:
    every = [node.id for node in ast.walk(ast.parse(_SOURCE)) if isinstance(node, ast.Name)]
    assert sorted(names_on(list(range(1, 8)))) == sorted(every)


def places(source: str) -> dict[str, WalkState]:
    module = PythonModule(DecodedText(source, "utf-8"))
    found: dict[str, WalkState] = {}

    def visit(node: ast.AST, place: WalkState) -> None:
        assert isinstance(node, ast.Name)
        found[node.id] = place

    walk_lines(module, list(range(1, source.count("\n") + 2)), {ast.Name: visit})
    return found


@pytest.mark.parametrize(
    ("source", "shadowed"),
    [
        ("HERE", set()),
        ("lambda x: HERE", {"x"}),
        ("lambda x, /, y, *a, z=1, **k: HERE", {"x", "y", "a", "z", "k"}),
        ("[HERE for x, (y, z) in q]", {"x", "y", "z"}),
        ("{k: HERE for k in q}", {"k"}),
        ("[lambda b: HERE for a in q]", {"a", "b"}),
        ("(x for x in q), HERE", set()),
    ],
)
def test_shadowed_names(source: str, shadowed: set[str]) -> None:
    assert places(source)["HERE"].shadowed == shadowed


def test_ancestors_lead_from_the_unit_to_the_parent() -> None:
    place = places("x = f(a.b[HERE])")["HERE"]
    kinds = [type(node) for node in place.ancestors]
    assert kinds == [ast.Assign, ast.Call, ast.Subscript]
    assert isinstance(place.statement, ast.Assign)


def test_walk_all_ignores_lines() -> None:
    module = PythonModule(DecodedText("f(\n a,\n b)", "utf-8"))
    found: list[str] = []
    walk_all(module.scopes.units[0], lambda node, place: found.append(type(node).__name__))
    assert found.count("Name") == 3
