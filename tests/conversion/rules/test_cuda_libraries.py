"""TF602: libraries that only run on CUDA."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, findings, rewritten, said, vendor
from torchferry.finding import Severity


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("from .triton import kernel\n", id="own module"),
        pytest.param("from . import flash_attn\n", id="own module of the package"),
        pytest.param("from mylib import xformers\nxformers.f()\n", id="another library's"),
        pytest.param("# import triton\n", id="a comment"),
        pytest.param("print('pip install flash_attn')\n", id="a message"),
        pytest.param("'''\nimport triton\n'''\n", id="a docstring"),
        pytest.param("triton = 1\nuse(triton)\n", id="a variable"),
        pytest.param("import tritonclient\n", id="a longer name"),
        pytest.param("import numba\n@numba.njit\ndef f(): pass\n", id="numba without cuda"),
        pytest.param("importlib.import_module('json')\n", id="another module by name"),
        pytest.param("def f(cupy): return cupy.x\n", id="a parameter"),
    ],
)
def test_noop(source: str) -> None:
    assert said(source) == []


_IMPORTS = [
    ("import triton\n", "triton"),
    ("import triton.language as tl\n", "triton.language as tl"),
    ("from flash_attn import flash_attn_func\n", "flash_attn_func"),
    ("from flash_attn.bert_padding import unpad_input\n", "unpad_input"),
    ("import xformers.ops as xops\n", "xformers.ops as xops"),
    ("import bitsandbytes as bnb\n", "bitsandbytes as bnb"),
    ("from nvidia.dali import pipeline\n", "pipeline"),
    ("import tensorrt as trt\n", "tensorrt as trt"),
    ("import cupy as cp\n", "cupy as cp"),
    ("from numba import cuda\n", "cuda"),
    ("import pycuda.autoinit\n", "pycuda.autoinit"),
    ("import pycuda.driver as cuda\ncuda.init()\n", "pycuda.driver as cuda"),
    ("import pynvml\npynvml.nvmlInit()\n", "pynvml"),
    ("from pynvml import *\n", "*"),
    ("def f():\n    import triton\n    return triton.cdiv(1, 2)\n", "triton"),
    ("try:\n    import xformers\nexcept ImportError:\n    xformers = None\n", "xformers"),
    ("if ok:\n\timport cupy\n", "cupy"),
    ("import os; import cupy\n", "cupy"),
    ("import importlib\nimportlib.import_module('flash_attn')\n", "importlib.import_module('flash_attn')"),
    ("ok = importlib.util.find_spec('xformers') is not None\n", "importlib.util.find_spec('xformers')"),
]


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(("source", "place"), _IMPORTS)
def test_reported_once(name: str, source: str, place: str) -> None:
    assert rewritten(source, name) == source
    found = said(source, name, rule="TF602")
    assert [(rule, kind) for rule, kind, _ in found] == [("TF602", "todo")]
    assert found[0][2] in (place, "'flash_attn'", "'xformers'")


def test_a_use_deeper_than_the_import() -> None:
    source = "import numba.cuda\n@numba.cuda.jit\ndef f(): pass\n"
    assert [rule for rule, _, _ in said(source)] == ["TF602"]
    source = "import numba\n@numba.cuda.jit\ndef f(): pass\n"
    assert said(source) == [("TF602", "todo", "numba.cuda.jit")]


@pytest.mark.parametrize("name", VENDORS)
def test_monitors_name_the_vendors_command(name: str) -> None:
    (item,) = findings("import pynvml\n", name)
    assert f"`{vendor(name).smi}`" in item.message.en
    assert f"`{vendor(name).smi}`" in item.message.zh


def test_advice() -> None:
    (item,) = findings("import triton\n")
    assert (item.title.en, item.do.en) == ("`triton` runs on CUDA only", "Use instead: triton-ascend.")
    assert item.severity is Severity.DECISION
    (item,) = findings("import cupy\n")
    assert item.title.en == "`cupy` runs on CUDA only"
    assert item.do.en.startswith("No replacement for Huawei Ascend is known")
    assert item.severity is Severity.BLOCKER
