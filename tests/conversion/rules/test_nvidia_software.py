"""TF604: software for NVIDIA's GPUs, and conditions that only choose it."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("print('install onnxruntime-gpu')", id="a message"),
        pytest.param("p = 'CPUExecutionProvider'", id="the CPU's"),
        pytest.param("'''uses the CUDAExecutionProvider'''", id="prose"),
        pytest.param("x = 'NotAutocastCUDAName'", id="part of a longer word"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF604") == []


@pytest.mark.parametrize("name", [*VENDORS, "portable"])
@pytest.mark.parametrize(
    "text", ["'onnxruntime-gpu'", "'onnxruntime-gpu==1.16'", "'CUDAExecutionProvider'", "'AutocastCUDA'"]
)
def test_named(text: str, name: str) -> None:
    source = f"use({text})"
    assert expression(source, name) == source
    assert said_of(source, name, rule="TF604") == [("TF604", "todo", text)]


@pytest.mark.parametrize(
    "source",
    [
        "p = 'onnxruntime-gpu' if torch.cuda.is_available() else 'onnxruntime'",
        "p = f\"tensorflow{'' if torch.cuda.is_available() else '-cpu'}\"",
        "p = ['CUDAExecutionProvider'] if ok and torch.cuda.is_available() else []",
        "if torch.cuda.is_available():\n    p = ['CUDAExecutionProvider']\nelse:\n    p = []",
        "if not torch.cuda.is_available():\n    package = 'tensorflow-cpu'",
        "def f():\n    cuda = torch.cuda.is_available()\n    need('onnxruntime-gpu' if cuda else 'onnxruntime')",
    ],
)
def test_a_condition_that_only_chooses_such_software_stays(source: str) -> None:
    assert expression(source) == source
    assert ("TF102", "info", "torch.cuda.is_available") in said_of(source)


@pytest.mark.parametrize(
    "source",
    [
        "d = 'cuda' if torch.cuda.is_available() else 'cpu'",
        "if torch.cuda.is_available():\n    model.cuda()\n    p = ['CUDAExecutionProvider']",
        "def f():\n    ok = torch.cuda.is_available()\n    p = ['tensorrt'] if ok else []\n    return x.cuda() if ok else x",
        "ok = torch.cuda.is_available()",
    ],
)
def test_a_condition_that_decides_more_is_converted(source: str) -> None:
    assert "torch.npu.is_available()" in expression(source)
