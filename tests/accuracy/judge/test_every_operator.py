"""Over PyTorch's own samples: what the CPU computes is never called wrong, and what is wrong is not called right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from tools.conformance.operators import operator_names

from torchferry.accuracy.judge import pieces
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, Verdict

from .samples import calls_that_differ, judge_mistakes, record_samples

FOUND = (Verdict.FAULT, Verdict.SUSPICIOUS)
DTYPES = {
    each: getattr(torch, each) for each in ("float32", "bfloat16", "float16", "float64", "int64", "complex64")
}
# A few of each class: copies, positions, comparisons, whole numbers, sums, products, decompositions.
SAMPLED = [
    "add", "addmm", "argmax", "cat", "clamp", "cumsum", "div.floor_rounding", "eq", "exp", "fft.fft", "gather",
    "index_add", "index_put", "linalg.eigh", "linalg.lu", "linalg.qr", "linalg.svd", "logsumexp", "masked_fill",
    "max.reduction_with_dim", "mm", "mul", "nan_to_num", "nextafter", "nn.functional.conv2d",
    "nn.functional.cross_entropy", "nn.functional.gelu", "nn.functional.interpolate.bilinear",
    "nn.functional.layer_norm", "nn.functional.leaky_relu", "nn.functional.max_pool2d", "scatter_add", "softmax",
    "sort", "split", "topk", "unique", "var", "where",
]  # fmt: skip
# Of these can't be judged, and why.
UNKNOWN = {
    "aten::as_strided": "the rest of the memory that it looks at is not recorded",
    "aten::_sparse_mm_reduce_impl": "sparse tensors are not recorded",
    "aten::_sparse_mm_reduce_impl_backward": "sparse tensors are not recorded",
    "aten::_sparse_mm": "sparse tensors are not recorded",
    "aten::_to_sparse": "sparse tensors are not recorded",
    "aten::_to_sparse.sparse_dim": "sparse tensors are not recorded",
    "aten::_to_dense": "sparse tensors are not recorded",
    "aten::_to_sparse_csr": "sparse tensors are not recorded",
    "aten::sparse_mask": "sparse tensors are not recorded",
    "aten::sparse_sampled_addmm": "sparse tensors are not recorded",
    "aten::clone": "sparse tensors are not recorded",
}
# Under any dispatch mode, PyTorch itself computes these wrongly for complex numbers: it forgets to conjugate.
WRONG_WHEN_WATCHED = {"aten::linalg_pinv.atol_rtol_tensor", "aten::linalg_lstsq"}
# Only parts of the second result are written: nobody looks at the rest.
WORKSPACES = {"aten::_ctc_loss", "aten::_ctc_loss.Tensor"}
# In half precision the CPU's own kernels err as much as these mistakes do, and what the CPU does is right. Mistakes in
# other operators may be silent in single samples: results that are all rounding, positions of equal values.
# Gradients of batch norm: CUDA's own kernel errs as much (margins.toml, batch_norm_backward).
COARSE = {
    "aten::grid_sampler_2d",
    "aten::grid_sampler_2d_backward",
    "aten::batch_norm_backward",
    "aten::native_batch_norm_backward",
}


def alarms(path: Path, names: list[str], dtype: torch.dtype, limit: int) -> tuple[list[str], set[str]]:
    """Calls that are said to be wrong, and operators of which nothing is said."""
    with record_samples(path, names, dtype, limit) as recorded:
        judge = Judge(recorded, None)
        wrong, unknown = [], set()
        for call in calls_that_differ(recorded, 100):
            judgement = judge.judge(CallPair(call, None))
            if judgement.verdict is Verdict.UNKNOWN:
                unknown.add(call.operator)
            elif judgement.verdict in (*FOUND, Verdict.REDUCED) and not (
                dtype.is_complex and call.operator in WRONG_WHEN_WATCHED
            ):
                wrong.append(f"{call.operator} {judgement.why}")
        assert len(recorded.calls) > 2 * len(names) / 3
    return wrong, unknown


def silence(
    path: Path, names: list[str], dtype: torch.dtype, limit: int
) -> tuple[int, Counter[str], list[str]]:
    """How many mistakes were made, how many of each operator were not found, and examples."""
    made, silent, examples = 0, Counter[str](), []
    with record_samples(path, names, dtype, limit) as recorded:
        for call in calls_that_differ(recorded, 3):
            for mistake, judgement in judge_mistakes(recorded, call):
                made += 1
                if judgement.verdict not in (*FOUND, Verdict.UNKNOWN):
                    silent[call.operator] += 1
                    examples.append(f"{call.operator} {mistake}: {judgement.verdict.value}")
    return made, silent, examples


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex64"])
def test_what_the_cpu_computes_is_right(dtype: str, tmp_path: Path) -> None:
    assert alarms(tmp_path / "a.h5", SAMPLED, DTYPES[dtype], 2) == ([], set())


@pytest.mark.parametrize(("dtype", "most"), [("float32", 0.01), ("int64", 0.005)])
def test_mistakes_are_found(dtype: str, most: float, tmp_path: Path) -> None:
    """All but those in results that several values are right for."""
    made, silent, examples = silence(tmp_path / "a.h5", SAMPLED[::2], DTYPES[dtype], 2)
    assert made > 100
    assert silent.total() <= most * made, examples


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_what_the_cpu_computes_is_right_in_parts(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if all tensors were large."""
    for name, value in {"LARGE": 16, "BLOCK": 32, "PIECE": 8, "RESULTS": 2}.items():
        monkeypatch.setattr(pieces, name, value)
    names = [
        name for name in operator_names() if name != "grid_sampler_3d"
    ]  # its samples have too many parts
    wrong, unknown = alarms(tmp_path / "a.h5", names, DTYPES[dtype], 3)
    assert wrong == []
    assert unknown <= UNKNOWN.keys()


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_the_cpu_computes_is_right_in_every_operator(dtype: str, tmp_path: Path) -> None:
    wrong, unknown = alarms(tmp_path / "a.h5", operator_names(), DTYPES[dtype], 5)
    assert wrong == []
    assert unknown <= UNKNOWN.keys()


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "most"), [("float32", 0.01), ("bfloat16", 0.03), ("int64", 0.005)])
def test_mistakes_are_found_in_every_operator(dtype: str, most: float, tmp_path: Path) -> None:
    names = [name for name in operator_names() if name != "grid_sampler_3d"]  # its samples are large
    made, silent, examples = silence(tmp_path / "a.h5", names, DTYPES[dtype], 2)
    assert made > 2500
    blind = {operator for operator, count in silent.items() if count > 6}
    assert blind <= (WORKSPACES | COARSE if dtype == "bfloat16" else WORKSPACES), examples
    assert silent.total() <= most * made, examples
