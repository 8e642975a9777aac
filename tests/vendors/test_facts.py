"""Single facts that the tables must carry, and what the facts don't know."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.vendors.model import Support
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor


def test_partial_list_leaves_names_unknown_but_writable() -> None:
    vendor = get_vendor("tecorigin")
    assert not vendor.apis_complete
    api = vendor.api("torch.cuda.set_stream")
    assert (api.support, api.name) == (Support.UNKNOWN, "torch.sdaa.set_stream")
    assert vendor.api("torch.backends.cudnn.benchmark").support is Support.UNKNOWN
    assert vendor.data_parallel is Support.UNKNOWN
    assert "float64" not in vendor.dtypes
    assert vendor.profiler_activity == ""


def test_partial_op_list() -> None:
    ops = load_ops(Path(get_vendor("tecorigin").folder))
    assert ops.has_kernel("matmul") is True
    assert ops.has_kernel("cumsum") is None
    assert "rank >= 3" in ops.limits["embedding"]


def test_nothing_is_known_about_operators() -> None:
    ops = load_ops(Path(get_vendor("intel").folder))
    assert not ops.kernels
    assert ops.has_kernel("mm") is None


@pytest.mark.parametrize(
    ("vendor", "cuda", "name"),
    [
        ("ascend", "torch.cuda.Event", "torch.npu.Event"),
        ("ascend", "torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError"),
        ("ascend", "torch.backends.cudnn.benchmark", "torch.backends.cudnn.benchmark"),
        ("ascend", "torch.cuda.comm.gather", ""),
        # called supported in the vendor's list, but under another name there
        ("cambricon", "torch.cuda.nvtx.range_push", "torch.mlu.cnpx.range_push"),
        ("cambricon", "torch.backends.cuda.matmul.allow_tf32", "torch.backends.mlu.matmul.allow_tf32"),
        ("intel", "torch.cuda.amp.GradScaler", "torch.amp.GradScaler"),
        ("moorethreads", "torch.cuda.CUDAGraph", "torch.musa.MUSAGraph"),
    ],
)
def test_api(vendor: str, cuda: str, name: str) -> None:
    assert get_vendor(vendor).api(cuda).name == name


@pytest.mark.parametrize(
    ("vendor", "cuda", "name"),
    [
        ("ascend", "CUDA_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING"),
        ("ascend", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF"),
        ("ascend", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_HCCL_BLOCKING_WAIT"),
        ("cambricon", "CUDA_LAUNCH_BLOCKING", ""),
        ("cambricon", "TORCH_NCCL_NAN_CHECK", ""),
        ("tecorigin", "NCCL_ALGO", "TCCL_NCCL_ALGO"),
        ("moorethreads", "NCCL_DEBUG", "MCCL_DEBUG"),
    ],
)
def test_environment(vendor: str, cuda: str, name: str) -> None:
    assert get_vendor(vendor).env_map[cuda] == name


@pytest.mark.parametrize("vendor", ["ascend", "tecorigin", "intel"])
def test_unknown_variable_is_not_in_the_map(vendor: str) -> None:
    assert "NCCL_P2P_DISABLE" not in get_vendor(vendor).env_map


@pytest.mark.parametrize(
    ("vendor", "cuda", "automatic"),
    [
        ("ascend", "apex.optimizers.FusedAdam", "torch_npu.optim.NpuFusedAdamW"),
        ("cambricon", "apex.optimizers.FusedLAMB", "torch_mlu.optimizers.FusedLAMB"),
        ("tecorigin", "apex.optimizers.FusedLAMB", ""),
        ("moorethreads", "apex.optimizers.FusedSGD", "torch.optim.SGD"),
        ("intel", "apex.optimizers.FusedAdam", "torch.optim.AdamW"),
    ],
)
def test_fused_optimizers(vendor: str, cuda: str, automatic: str) -> None:
    by_name = {entry.cuda: entry for entry in get_vendor(vendor).replacements}
    assert by_name[cuda].automatic == automatic
