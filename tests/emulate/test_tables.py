"""The tables of the emulated CANN's operators: what they call is there, with the arguments that they give it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from tests.emulate.running import answer
from torchferry.emulate import build, plugins
from torchferry.emulate.cann.entries import SOURCES, TABLES, implemented
from torchferry.vendors.registry import get_vendor

_TABLES = sorted(TABLES.glob("*.ops"))


def definitions(table: Path) -> Iterator[ast.FunctionDef]:
    """The functions of a table."""
    tree = ast.parse(table.read_text("utf-8"), str(table))
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


@cache
def own_names() -> frozenset[str]:
    """What tables call that is no operator of ATen's."""
    helpers = {one.name for table in _TABLES for one in definitions(table)}
    headers = (header.read_text("utf-8") for header in SOURCES.glob("builtins*.h"))
    return frozenset(
        helpers | {name for text in headers for name in re.findall(r"^IValue (\w+)\(", text, re.M)}
    )


@cache
def operators() -> dict[tuple[str, str], torch.FunctionSchema]:
    """All of ATen's, by name and overload."""
    return {(one.name, one.overload_name): one for one in torch._C._jit_get_all_schemas()}


def operator_calls(table: Path) -> Iterator[tuple[ast.Call, str, str]]:
    """The calls of ATen's operators in a table: name and overload."""
    for definition in definitions(table):
        for node in ast.walk(definition):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert isinstance(node.func.value, ast.Name)
                yield node, node.func.value.id, node.func.attr
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id not in own_names() | {"zip"}:
                    yield node, node.func.id, ""


def wrong_with(call: ast.Call, name: str, overload: str) -> str:
    """What is wrong with a call; "" where nothing is."""
    schema = operators().get((f"aten::{name}", overload))
    if schema is None:
        return f"line {call.lineno}: there is no operator {name}.{overload}"
    arguments = [one.name for one in schema.arguments]
    given = [*arguments[: len(call.args)], *(one.arg for one in call.keywords)]
    lacking = [one.name for one in schema.arguments if one.name not in given and not one.has_default_value()]
    strange = [one.arg for one in call.keywords if one.arg not in arguments]
    if lacking or strange or len(call.args) > len(arguments):
        return f"line {call.lineno}: {name}.{overload} lacks {lacking}, does not know {strange}: {schema}"
    return ""


@pytest.mark.parametrize("table", _TABLES, ids=lambda table: table.stem)
def test_operators_exist_and_take_what_they_are_given(table: Path) -> None:
    wrong = [wrong_with(*call) for call in operator_calls(table)]
    assert [one for one in wrong if one] == []


def test_no_function_is_written_twice() -> None:
    names = [one.name for table in _TABLES for one in definitions(table)]
    in_cpp = [
        name
        for source in SOURCES.glob("*.cpp")
        for name in re.findall(r"^OPERATOR\((\w+)\)", source.read_text("utf-8"), re.M)
    ]
    assert sorted(names + in_cpp) == sorted({*names, *in_cpp})


EXPORTED = """\
import ctypes, json, sys, torch
from torchferry.emulate.cann.entries import INTERFACES, implemented, read_interfaces

library = ctypes.CDLL(sys.argv[1])
names = {*read_interfaces(INTERFACES.read_text("utf-8")), *implemented()}
print(json.dumps([name for name in sorted(names) if hasattr(library, name + "GetWorkspaceSize")]))
"""


@pytest.mark.long
@pytest.mark.usefixtures("emulation")
def test_what_is_not_computed_is_not_there_to_be_called() -> None:
    """So that the plugin says its name, where a stub would give numbers that nobody computed."""
    vendor = get_vendor("ascend")
    folder = build.built_folder(vendor, plugins.needed(vendor).folder)
    assert folder is not None
    assert set(answer(EXPORTED, str(folder / "libopapi.so"))) == implemented()
