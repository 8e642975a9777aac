"""Scopes, bindings and units."""

from __future__ import annotations

import ast
import textwrap

import pytest

from torchferry.source.scopes import BindingKind, ModuleScopes, build_scopes, import_qualifier


def scopes(source: str) -> ModuleScopes:
    return build_scopes(ast.parse(textwrap.dedent(source)))


@pytest.mark.parametrize(
    ("source", "name", "kind"),
    [
        ("import a.b", "a", BindingKind.IMPORT),
        ("import a.b as c", "c", BindingKind.IMPORT),
        ("from a import b as c", "c", BindingKind.IMPORT),
        ("a = 1", "a", BindingKind.ASSIGN),
        ("a: int = 1", "a", BindingKind.ASSIGN),
        ("a = b = 1", "b", BindingKind.ASSIGN),
        ("a, (b, *c) = x", "c", BindingKind.OTHER),
        ("[a, b] = x", "b", BindingKind.OTHER),
        ("a += 1", "a", BindingKind.OTHER),
        ("for a in x:\n    pass", "a", BindingKind.OTHER),
        ("with x as a:\n    pass", "a", BindingKind.OTHER),
        ("try:\n    pass\nexcept E as a:\n    pass", "a", BindingKind.OTHER),
        ("match x:\n    case {'k': a}:\n        pass", "a", BindingKind.OTHER),
        ("match x:\n    case [*a]:\n        pass", "a", BindingKind.OTHER),
        ("match x:\n    case {**a}:\n        pass", "a", BindingKind.OTHER),
        ("match x:\n    case A() as a:\n        pass", "a", BindingKind.OTHER),
        ("def a():\n    pass", "a", BindingKind.DEFINITION),
        ("async def a():\n    pass", "a", BindingKind.DEFINITION),
        ("class a:\n    pass", "a", BindingKind.DEFINITION),
        ("if x:\n    import a", "a", BindingKind.IMPORT),
        ("while x:\n    a = 1\nelse:\n    pass", "a", BindingKind.ASSIGN),
        ("try:\n    pass\nfinally:\n    a = 1", "a", BindingKind.ASSIGN),
    ],
)
def test_bindings(source: str, name: str, kind: BindingKind) -> None:
    assert [binding.kind for binding in scopes(source).root.bindings[name]] == [kind]


@pytest.mark.parametrize(
    ("source", "weak"),
    [
        ("a = None", True),
        ("a = f()", False),
        ("try:\n    a = f()\nexcept E:\n    pass", False),
        ("try:\n    pass\nexcept E:\n    a = f()", True),
        ("try:\n    pass\nexcept E:\n    import a", True),
        ("try:\n    pass\nexcept E:\n    def a(): pass", True),
        ("try:\n    pass\nexcept E:\n    if x:\n        a = f()", True),
    ],
)
def test_stand_ins_are_weak(source: str, weak: bool) -> None:
    (binding,) = scopes(source).root.bindings["a"]
    assert binding.weak is weak


def test_an_annotation_alone_binds_nothing() -> None:
    assert "a" not in scopes("a: int").root.bindings


def test_owner_of() -> None:
    result = scopes(
        """\
        x = 1
        class A:
            x = 2
            def f(self, y):
                z = 3
                def g():
                    nonlocal z
                    z = 4
        """
    )
    by_name = {getattr(scope.node, "name", "module"): scope for scope in result.scopes}
    assert by_name["f"].owner_of("x") is by_name["module"]
    assert by_name["A"].owner_of("x") is by_name["A"]
    assert by_name["g"].owner_of("y") is by_name["f"]
    assert by_name["g"].owner_of("z") is by_name["f"]
    assert by_name["g"].owner_of("nothing") is None


def test_star_imports() -> None:
    assert scopes("from torch import *\nfrom .a import *\nfrom b import c").stars == ["torch", ".a"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [("from a.b import c", "a.b"), ("from . import c", "."), ("from ..a import c", "..a")],
)
def test_import_qualifier(source: str, expected: str) -> None:
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.ImportFrom)
    assert import_qualifier(node) == expected


def test_units_cover_every_expression_once() -> None:
    source = """\
        @d1(1)
        def f(a: n1, b=n2, *, c=n3, **k) -> n4:
            return n5
        @d2
        class A(n6, metaclass=n7):
            x: n8 = n9
        if n10: pass
        elif n11: pass
        for i in n12: pass
        while n13: n14
        with n15 as j, n16: pass
        try: n17
        except n18: pass
        match n19:
            case n20.x if n21: n22
        async def g():
            async for i in n23: pass
            async with n24: pass
        del n25
        assert n26
        lambda: n27
        """
    seen = [
        node.id
        for unit in scopes(source).units
        for node in ast.walk(unit.node)
        if isinstance(node, ast.Name) and node.id.startswith("n")
    ]
    assert sorted(seen, key=lambda name: int(name[1:])) == [f"n{number}" for number in range(1, 28)]
