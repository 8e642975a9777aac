"""TF116: attributes that are asked for by name."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("getattr(args, 'is_cuda')", id="a setting"),
        pytest.param("getattr(x, 'shape')", id="another attribute"),
        pytest.param("getattr(x, name)", id="a name of something else"),
        pytest.param("setattr(x, 'is_cuda', True)", id="an attribute that is set"),
        pytest.param("print('is_cuda')", id="a message"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("getattr(x, 'is_cuda')", "getattr(x, 'is_npu')"),
        ("getattr(x, 'is_cuda', False)", "getattr(x, 'is_npu', False)"),
        ('if hasattr(x.data, "is_cuda"): pass', 'if hasattr(x.data, "is_npu"): pass'),
        ("from operator import attrgetter\nf = attrgetter('is_cuda')", None),
        ("getattr(torch.cuda, 'synchronize')()", "getattr(torch.npu, 'synchronize')()"),
    ],
)
def test_rewrites(before: str, after: str | None) -> None:
    assert expression(before) == (after or before.replace("is_cuda", "is_npu"))


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    assert expression("getattr(x, 'is_cuda')", name) == f"getattr(x, '{vendor(name).is_attribute}')"


def test_portable_code_asks_for_the_type() -> None:
    assert said_of("getattr(x, 'is_cuda')", "portable") == [("TF116", "todo", "'is_cuda'")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("getattr(torch.cuda, name)", ("TF116", "info", "name"), id="known at run time"),
        pytest.param(
            "getattr(torch.cuda, 'OutOfMemoryError')",
            ("TF116", "todo", "'OutOfMemoryError'"),
            id="in another module",
        ),
        pytest.param("getattr(torch.cuda, 'comm')", ("TF116", "unsupported", "'comm'"), id="not there"),
        pytest.param("getattr(torch.cuda, 'frobnicate')", ("TF116", "unknown", "'frobnicate'"), id="unknown"),
    ],
)
def test_members_of_the_module(source: str, expected: tuple[str, str, str]) -> None:
    assert expected in said_of(source, rule="TF116")
