"""TF108: classes that define cuda() themselves."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, rewritten, said, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("class A:\n    def cuda_(self):\n        return self\n", id="another name"),
        pytest.param(
            "class A:\n    @property\n    def cuda(self):\n        return 1\n", id="a property is a flag"
        ),
        pytest.param("class A:\n    def cuda(self): pass\n    def npu(self): pass\n", id="has one already"),
        pytest.param("class A:\n    def cuda(self): pass\n    npu = cuda\n", id="done before"),
        pytest.param("def cuda(x):\n    return x\n", id="a function"),
        pytest.param("class A:\n    cuda = True\n", id="an attribute"),
        pytest.param("class A:\n    '''def cuda(self)'''\n", id="a docstring"),
        pytest.param("# def cuda(self):\nclass A: pass\n", id="a comment"),
    ],
)
def test_noop(source: str) -> None:
    assert rewritten(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "class A:\n    def cuda(self):\n        return self\n",
            "class A:\n    def cuda(self):\n        return self\n    npu = cuda\n",
        ),
        (
            "class A:\n\tdef cuda(self):\n\t\treturn self\n",
            "class A:\n\tdef cuda(self):\n\t\treturn self\n\tnpu = cuda\n",
        ),
        (
            "class A:\n    def cuda(self): return self",
            "class A:\n    def cuda(self): return self\n    npu = cuda",
        ),
        (
            "class A:\n    class B:\n        def cuda(self): return self\n    x = 1\n",
            "class A:\n    class B:\n        def cuda(self): return self\n        npu = cuda\n    x = 1\n",
        ),
        pytest.param(
            "class A:\n    def cuda(self): return self  # noqa\n    x = 1\n",
            "class A:\n    def cuda(self): return self  # noqa\n    npu = cuda\n    x = 1\n",
            id="a comment stays on its line",
        ),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert rewritten(before) == after


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    source = "class A:\n    def cuda(self):\n        return self\n"
    assert rewritten(source, name) == f"{source}    {vendor(name).tensor_method} = cuda\n"


def test_portable_asks_for_a_to() -> None:
    source = "class A:\n    def cuda(self):\n        return self\n"
    assert rewritten(source, "portable") == source
    assert said(source, "portable") == [("TF108", "todo", "def cuda")]
    with_to = source + "    def to(self, device):\n        return self\n"
    assert said(with_to, "portable") == []
