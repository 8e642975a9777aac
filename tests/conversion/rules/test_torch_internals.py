"""TF110: CUDA names inside torch that belong to no public module."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("torch._C._get_tracing_state()", id="an internal name without CUDA"),
        pytest.param("mylib._C._cuda_init()", id="another library's"),
        pytest.param("_C.cuda_forward(x)", id="the user's own extension"),
        pytest.param("print('torch._C._cuda_init')", id="a message"),
        pytest.param("# torch._C._cuda_init()", id="a comment"),
        pytest.param("def f(torch): torch._C._cuda_init()", id="a parameter called torch"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF110") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("n = torch._C._cuda_getDeviceCount()", "torch._C._cuda_getDeviceCount"),
        ("ok = hasattr(torch._C, 'x') and torch._C._cuda_init()", "torch._C._cuda_init"),
        ("with torch.autograd.profiler.emit_nvtx(): pass", "torch.autograd.profiler.emit_nvtx"),
    ],
)
def test_reported(name: str, source: str, place: str) -> None:
    assert expression(source, name) == source
    assert said_of(source, name, "TF110") == [("TF110", "todo", place)]
