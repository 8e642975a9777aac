"""TF109: getattr(torch, 'cuda')."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("getattr(args, 'cuda')", id="a flag"),
        pytest.param("hasattr(model, 'cuda')", id="a method of an object"),
        pytest.param("getattr(torch, 'cudnn')", id="another attribute"),
        pytest.param("getattr(torch, name)", id="not a literal"),
        pytest.param("def f(torch): return getattr(torch, 'cuda')", id="a parameter called torch"),
        pytest.param("setattr(args, 'cuda', True)", id="a flag that is set"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize("name", VENDORS)
def test_rewrites(name: str) -> None:
    word = vendor(name).torch_module.removeprefix("torch.")
    assert expression("ok = hasattr(torch, 'cuda')", name) == f"ok = hasattr(torch, '{word}')"
    assert expression('m = getattr(torch, "cuda", None)', name) == f'm = getattr(torch, "{word}", None)'
