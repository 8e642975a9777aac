"""TF601: extensions compiled from CUDA sources."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, findings, rewritten, said
from torchferry.finding import Severity


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("from torch.utils.cpp_extension import CppExtension, BuildExtension\n", id="C++ only"),
        pytest.param("from mylib.cpp_extension import load\nload('x')\n", id="another library"),
        pytest.param("load('x.cu')\n", id="the user's own load"),
        pytest.param("print('torch.utils.cpp_extension.load')\n", id="a message"),
        pytest.param("import torch\ntorch.load(p)\n", id="torch.load"),
    ],
)
def test_noop(source: str) -> None:
    assert said(source, rule="TF601") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("from torch.utils.cpp_extension import CUDAExtension\n", ["CUDAExtension"]),
        ("from torch.utils.cpp_extension import load, load_inline\n", ["load", "load_inline"]),
        (
            "from torch.utils import cpp_extension\nm = cpp_extension.load(name='m', sources=['m.cu'])\n",
            ["cpp_extension.load"],
        ),
        (
            "import torch.utils.cpp_extension\nm = torch.utils.cpp_extension.load_inline(name='m')\n",
            ["torch.utils.cpp_extension.load_inline"],
        ),
        ("import torch.utils.cpp_extension as ext\ne = ext.CUDAExtension('x', [])\n", ["ext.CUDAExtension"]),
        ("from torch.utils.cpp_extension import CUDA_HOME\n", ["CUDA_HOME"]),
        (
            "from torch.utils import cpp_extension as ce\nm = ce.load(name='m', sources=['m.cu'])\n",
            ["ce.load"],
        ),
    ],
)
def test_reported(name: str, source: str, places: list[str]) -> None:
    assert rewritten(source, name) == source
    assert said(source, name) == [("TF601", "todo", place) for place in places]


def test_message_says_how_kernels_are_built() -> None:
    (item,) = findings("from torch.utils.cpp_extension import CUDAExtension\n")
    assert "do not run on Huawei Ascend" in item.why.en
    assert item.severity is Severity.BLOCKER
