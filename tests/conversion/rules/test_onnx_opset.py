"""TF606: an opset that today's exporter does not write."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import said_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("torch.onnx.export(m, x, f)", id="no opset"),
        pytest.param("torch.onnx.export(m, x, f, opset_version=18)", id="today's"),
        pytest.param("torch.onnx.export(m, x, f, opset_version=11, dynamo=False)", id="the old exporter"),
        pytest.param("torch.onnx.export(m, x, f, opset_version=args.opset)", id="nobody knows"),
        pytest.param("export(m, opset_version=11)", id="another export"),
    ],
)
def test_noop(source: str) -> None:
    assert said_of(source, rule="TF606") == []


@pytest.mark.parametrize(
    "source",
    [
        "torch.onnx.export(m, x, f, opset_version=11)",
        "from torch import onnx\nonnx.export(m, x, opset_version=13)",
    ],
)
def test_risk(source: str) -> None:
    assert [kind for _, kind, _ in said_of(source, rule="TF606")] == ["risk"]
