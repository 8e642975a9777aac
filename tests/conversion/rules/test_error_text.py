"""TF403: CUDA errors recognised by their text."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, findings
from torchferry.vendors.registry import get_vendor, vendor_names


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("print('CUDA out of memory: try a smaller batch')", id="a message"),
        pytest.param("raise RuntimeError('CUDA error')", id="an exception of one's own"),
        pytest.param("parser.add_argument('--x', help='avoids CUDA out of memory')", id="a help text"),
        pytest.param("# if 'CUDA out of memory' in str(e)", id="a comment"),
        pytest.param("if 'out of memory' in str(e): pass", id="the wording of every device"),
    ],
)
def test_noop(source: str) -> None:
    assert findings(f"import torch\n{source}\n", rule="TF403") == []


@pytest.mark.parametrize(
    "source",
    [
        "if 'CUDA out of memory' in str(e): pass",
        "if 'CUDA out of memory. ' in str(e) or 'CUBLAS_STATUS_ALLOC_FAILED' in str(e): pass",
        "ok = str(e).startswith('CUDA error')",
        "TEXTS = ['CUDA out of memory.', 'cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.']",
    ],
)
@pytest.mark.parametrize("vendor", vendor_names())
def test_reported_and_left(source: str, vendor: str) -> None:
    found = findings(f"import torch\n{source}\n", vendor, rule="TF403")
    assert found
    assert all(get_vendor(vendor).company in item.message.en for item in found)
    assert expression(source, vendor) == source
