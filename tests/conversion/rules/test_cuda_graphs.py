"""TF503: CUDA graphs."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, findings, said, said_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("g = CUDAGraph()", id="the user's own class"),
        pytest.param("g = networkx.graph(x)", id="another graph"),
        pytest.param("print('torch.cuda.CUDAGraph')", id="a message"),
        pytest.param("# torch.cuda.graph(g)", id="a comment"),
        pytest.param("torch.cuda.synchronize()", id="something else of torch.cuda"),
    ],
)
def test_noop(source: str) -> None:
    assert said_of(source, rule="TF503") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("g = torch.cuda.CUDAGraph()", "torch.cuda.CUDAGraph"),
        ("with torch.cuda.graph(g): pass", "torch.cuda.graph"),
        ("f = torch.cuda.make_graphed_callables(f, a)", "torch.cuda.make_graphed_callables"),
    ],
)
def test_risk(name: str, source: str, place: str) -> None:
    assert said_of(source, name, "TF503") == [("TF503", "risk", place)]


def test_imported_names() -> None:
    source = "from torch.cuda import CUDAGraph\ng = CUDAGraph()\n"
    assert said(source, rule="TF503") == [("TF503", "risk", "CUDAGraph")]


def test_message_is_the_vendors_limit() -> None:
    (item,) = findings("import torch\ng = torch.cuda.CUDAGraph()\n", rule="TF503")
    assert item.why.en == "torch.npu.NPUGraph (inference only)."
