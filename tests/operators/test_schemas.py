"""The arguments of operators, and the choice of an overload by them."""

from __future__ import annotations

import pytest
import torch

from torchferry.operators.native_functions import (
    SHIPPED_RELEASE,
    ArgumentKind,
    choose_overload,
    installed_list_file,
    installed_release,
    read_schemas,
    schemas,
)

T, A, S, L, G, N = (
    ArgumentKind.TENSOR,
    ArgumentKind.TENSORS,
    ArgumentKind.SCALAR,
    ArgumentKind.SCALARS,
    ArgumentKind.LIST,
    ArgumentKind.NOTHING,
)


@pytest.mark.parametrize(
    ("name", "recorded", "overload"),
    [
        ("add", [T, T, S], "add.Tensor"),
        ("add", [T, S, S], "add.Scalar"),
        ("add", [T, T, S, T], "add.out"),
        ("sum", [T, N], "sum"),
        ("sum", [T, L, S, N], "sum.dim_IntList"),
        ("sum", [T, G, S, N], "sum.dim_IntList"),
        ("max", [T, T], "max.other"),
        ("split", [T, L, S], "split.sizes"),
        ("_foreach_add_", [A, L], "_foreach_add_.ScalarList"),
        ("relu", None, "relu"),
        ("empty_like", None, "empty_like"),
    ],
)
def test_arguments_tell_the_overload(name: str, recorded: list[ArgumentKind] | None, overload: str) -> None:
    chosen = choose_overload(name, recorded)
    assert chosen is not None
    assert chosen.name == overload


@pytest.mark.parametrize(
    ("name", "recorded"), [("add", None), ("add", [T]), ("no_such_operator", [T]), ("std", [T, N, N, S])]
)
def test_in_doubt_there_is_no_overload(name: str, recorded: list[ArgumentKind] | None) -> None:
    assert choose_overload(name, recorded) is None


def test_the_table_says_what_pytorch_says() -> None:
    if installed_release() != SHIPPED_RELEASE:
        pytest.skip("the table is of another release")
    wrong = []
    for overloads in schemas().values():
        for schema in overloads:
            base, _, overload = schema.name.partition(".")
            described = getattr(getattr(torch.ops.aten, base), overload or "default")._schema
            aliases = [result.alias_info for result in described.returns]
            is_view = any(alias is not None and not alias.is_write for alias in aliases)
            arguments = tuple(argument.name for argument in described.arguments)
            if (arguments, is_view) != (schema.arguments, schema.is_view):
                wrong.append(schema.name)
    assert not wrong


def test_the_table_is_fresh() -> None:
    file = installed_list_file()
    if file is None or installed_release() != SHIPPED_RELEASE:
        pytest.skip("the table is of another release")
    shipped = {schema for overloads in schemas().values() for schema in overloads}
    assert shipped == set(read_schemas(file.read_text("utf-8")))
