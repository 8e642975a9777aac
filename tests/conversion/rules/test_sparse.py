"""TF304: sparse tensors."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("e = torch.nn.Embedding(2, 2)", id="dense"),
        pytest.param("e = torch.nn.Embedding(2, 2, sparse=False)", id="told to be dense"),
        pytest.param("import scipy.sparse as sparse\nm = sparse.csr_matrix(x)", id="scipy's"),
        pytest.param("loss = sparse_loss(x)", id="another word"),
        pytest.param("# torch.sparse.mm", id="a comment"),
    ],
)
def test_noop(source: str) -> None:
    assert said_of(source, rule="TF304") == []


@pytest.mark.parametrize("name", [*VENDORS, "portable"])
@pytest.mark.parametrize(
    "source",
    [
        "a = torch.sparse_coo_tensor(i, v, (3, 3))",
        "a = torch.sparse.FloatTensor(i, v).cuda()",
        "y = torch.sparse.mm(a, b)",
        "y = torch.spmm(a.to_sparse(), b)",
        "e = torch.nn.Embedding(9, 2, sparse=True)",
        "e = torch.nn.Embedding(9, 2, sparse=args.sparse)",
        "o = torch.optim.SparseAdam(p)",
        "from torch import nn\ne = nn.EmbeddingBag(9, 2, sparse=True)",
    ],
)
def test_reported_with_what_the_vendor_does(name: str, source: str) -> None:
    known = name == "portable" or "sparse" in vendor(name).dtypes
    assert [kind for _, kind, _ in said_of(source, name, "TF304")] == ["risk" if known else "unknown"]
    if ".cuda" not in source:
        assert expression(source, name) == source


def test_the_vendors_limit_is_told() -> None:
    (item,) = findings("import torch\na = x.to_sparse()\n", rule="TF304")
    assert "no CPU fallback for sparse" in item.message.en
