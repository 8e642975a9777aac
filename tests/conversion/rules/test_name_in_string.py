"""TF106: names of tensor types in strings."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_of, vendor
from torchferry.vendors.model import Support


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("'torch.cuda.FloatTensor'", id="text on its own"),
        pytest.param("print('needs torch.cuda.FloatTensor here')", id="a message"),
        pytest.param("# 'torch.cuda.FloatTensor'", id="a comment"),
        pytest.param("x = 'torch.FloatTensor'", id="a CPU type"),
        pytest.param("x = 'mytorch.cuda.FloatTensor'", id="another library"),
        pytest.param("x = 'torch.cuda.FloatTensor.foo'", id="longer"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.set_default_tensor_type('torch.cuda.FloatTensor')",
            "torch.set_default_tensor_type('torch.npu.FloatTensor')",
        ),
        ('x.type("torch.cuda.LongTensor")', 'x.type("torch.npu.LongTensor")'),
        ("ok = x.type() == 'torch.cuda.HalfTensor'", "ok = x.type() == 'torch.npu.HalfTensor'"),
        ("def f(x: 'torch.cuda.FloatTensor'): pass", "def f(x: 'torch.npu.FloatTensor'): pass"),
        (
            "t = 'torch.cuda.FloatTensor' if ok else 'torch.FloatTensor'",
            "t = 'torch.npu.FloatTensor' if ok else 'torch.FloatTensor'",
        ),
        ("T = {'torch.cuda.ByteTensor': 1}", "T = {'torch.npu.ByteTensor': 1}"),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before) == after


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("t = 'torch.cuda.%sTensor' % kind", id="percent"),
        pytest.param("t = f'torch.cuda.{kind}Tensor'", id="f-string"),
        pytest.param("t = 'torch.cuda.{}Tensor'.format(kind)", id="format"),
        pytest.param("t = 'torch.cuda.' + kind", id="concatenation"),
    ],
)
def test_templates_are_never_silent(source: str) -> None:
    changed = expression(source) == source.replace("torch.cuda", "torch.npu")
    assert changed or [kind for _, kind, _ in said_of(source)] == ["todo"]


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("kind", ["FloatTensor", "HalfTensor", "BFloat16Storage"])
def test_every_vendor(name: str, kind: str) -> None:
    api = vendor(name).api(f"torch.cuda.{kind}")
    source = f"x.type('torch.cuda.{kind}')"
    if api.support is Support.UNSUPPORTED:
        assert expression(source, name) == source
        assert said_of(source, name) == [("TF106", "unsupported", f"'torch.cuda.{kind}'")]
    else:
        assert expression(source, name) == f"x.type('{api.name}')"


def test_portable_has_no_such_types() -> None:
    source = "x.type('torch.cuda.FloatTensor')"
    assert expression(source, "portable") == source
    assert said_of(source, "portable") == [("TF106", "unsupported", "'torch.cuda.FloatTensor'")]
