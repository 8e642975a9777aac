"""Sparse and nested tensors of the device; DLPack; generators in files."""

from __future__ import annotations

import pickle
import warnings

import pytest
import torch
from torch import nn

from tests.sim.checking import Target
from torchferry.vendors.model import MissingOperator

INDICES, VALUES = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])


def _falls_back(target: Target) -> bool:
    return target.vendor.limits.sparse.missing_operator is MissingOperator.FALLS_BACK


def check_sparse_tensors_do_what_the_vendors_adapter_does(target: Target) -> None:
    sparse = torch.sparse_coo_tensor(INDICES, VALUES, (2, 3))
    dense = torch.rand(3, 2)
    if _falls_back(target):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            there = sparse.to(target.type)
            product = torch.sparse.mm(there, dense.to(target.type))
        assert there.device.type == target.type and there.is_sparse
        assert torch.equal(product.cpu(), torch.sparse.mm(sparse, dense))
        assert torch.equal(there.cpu().to_dense(), sparse.to_dense())
        assert any("Sparse" in str(warning.message) for warning in caught)
        return
    with pytest.raises(NotImplementedError, match=r"The tensor is sparse: keep it on the CPU") as raised:
        torch.sparse.mm(sparse.to(target.type), dense.to(target.type))
    assert len(str(raised.value).splitlines()) == 1


def check_a_dense_tensor_becomes_sparse_where_the_vendor_has_sparse_ones(target: Target) -> None:
    x = torch.eye(2, device=target.type)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if _falls_back(target) or target.vendor.limits.sparse.kernels:
            assert x.to_sparse().is_sparse
        else:
            with pytest.raises(NotImplementedError, match="The tensor is sparse"):
                x.to_sparse()


def check_the_vendors_own_sparse_kernels_run(target: Target) -> None:
    if "_to_dense" not in target.vendor.limits.sparse.kernels:
        return
    sparse = torch.sparse_coo_tensor(INDICES, VALUES, (2, 3))
    there = sparse.to(target.type)
    assert torch.equal(there.to_dense().cpu(), sparse.to_dense())
    total = (there + there).coalesce()
    assert torch.equal(total._values().cpu(), VALUES * 2) and total._values().device.type == target.type
    there._values()[0] = 7  # a view
    assert there.to_dense()[0, 2].item() == 7


def check_embeddings_with_sparse_gradients(target: Target) -> None:
    layer = nn.Embedding(5, 3, sparse=True).to(target.type)
    loss = layer(torch.tensor([1, 2, 1]).to(target.type)).sum()
    if not _falls_back(target):
        if (
            not target.vendor.limits.sparse.kernels
        ):  # else the gradient can be made, but few operators take it
            with pytest.raises(NotImplementedError, match="embeddings: sparse=False"):
                loss.backward()
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss.backward()
        before = layer.weight.detach().clone()
        torch.optim.SparseAdam(layer.parameters(), lr=0.1).step()
    assert layer.weight.grad is not None and layer.weight.grad.is_sparse
    changed = (layer.weight != before).any(1)
    assert changed.tolist() == [False, True, True, False, False]


def check_compressed_sparse_tensors_are_refused_in_one_sentence(target: Target) -> None:
    compressed = torch.eye(3).to_sparse_csr()
    with pytest.raises((NotImplementedError, RuntimeError)) as raised:
        compressed.to(target.type) @ torch.ones(3, 3, device=target.type)
    assert len(str(raised.value).splitlines()) == 1


def check_the_fast_way_of_a_transformer_encoder(target: Target) -> None:
    missing = target.vendor.limits.missing_operator is MissingOperator.RAISES
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.randn(2, 5, 16), torch.tensor([[False] * 4 + [True], [False] * 5])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the vendor runs these operators on the CPU
        expected = model(x, src_key_padding_mask=padding)
        model.to(target.type)
        if missing:
            return  # a vendor that lacks them and does not fall back raises
        found = model(x.to(target.type), src_key_padding_mask=padding.to(target.type))
    assert torch.equal(found.cpu(), expected)


def check_nested_tensors(target: Target) -> None:
    if target.vendor.limits.missing_operator is MissingOperator.RAISES:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device=target.type)
        first, second = (nested * 2).unbind()
        assert (first.device.type, second.tolist()) == (target.type, [2, 2, 2])
        assert torch.nested.to_padded_tensor(nested, 0.0).tolist() == [[1, 1, 0], [1, 1, 1]]


def check_dlpack_shares_the_memory(target: Target) -> None:
    x = torch.arange(3.0, device=f"{target.type}:1")
    for other in (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))):
        assert other.device == x.device and torch.equal(other, x)
        other[0] += 1
        assert torch.equal(other, x)
    assert torch.from_dlpack(torch.ones(2)).device.type == "cpu"


def check_a_generator_can_be_pickled(target: Target) -> None:
    generator = torch.Generator(f"{target.type}:1").manual_seed(3)
    torch.rand(2, device=generator.device, generator=generator)
    twin = pickle.loads(pickle.dumps(generator))
    assert twin.device == generator.device
    drawn = [torch.rand(3, device=each.device, generator=each) for each in (generator, twin)]
    assert torch.equal(*drawn)
