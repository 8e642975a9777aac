"""TF303: float64 and complex types that the vendor limits."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = numpy.float64(1)", id="numpy"),
        pytest.param("x = torch.float32", id="a narrow type"),
        pytest.param("# torch.float64", id="a comment"),
        pytest.param("print('torch.float64')", id="a message"),
        pytest.param("import mylib\nmylib.double()", id="a function of a module"),
        pytest.param("x.double(1)", id="a method with arguments"),
        pytest.param("double()", id="the user's own function"),
        pytest.param("def f(torch): return torch.float64", id="a parameter called torch"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF303") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place", "dtype"),
    [
        ("x = torch.zeros(1, dtype=torch.float64)", "torch.float64", "float64"),
        ("x = x.to(torch.double)", "torch.double", "float64"),
        ("x = x.double()", "x.double()", "float64"),
        ("x = torch.DoubleTensor(1)", "torch.DoubleTensor", "float64"),
        ("x = x.to(torch.complex64)", "torch.complex64", "complex64"),
        ("x = x.to(torch.complex128)", "torch.complex128", "complex128"),
        ("x = x.to(torch.cfloat)", "torch.cfloat", "complex64"),
    ],
)
def test_risk_where_the_vendor_limits_it(name: str, source: str, place: str, dtype: str) -> None:
    limits = {} if name == "portable" else vendor(name).dtypes
    limit = limits.get(dtype) or (limits.get("complex") if dtype.startswith("complex") else None)
    expected = [("TF303", "risk", place)] if limit and limit != "unknown" else []
    assert expression(source, name) == source
    assert said_of(source, name) == expected


def test_torch_by_another_name() -> None:
    assert said_of("import torch as th\ny = th.float64") == [("TF303", "risk", "th.float64")]
