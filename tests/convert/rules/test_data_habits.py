"""TF706, TF708, TF709 (opt-in): float64 data, waiting copies, settings of CUDA's libraries."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import expression, rewritten, said_with


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.zeros(3, dtype=torch.float64)", "x = torch.zeros(3, dtype=torch.float32)"),
        ("x = y.to(torch.double)", "x = y.to(torch.float)"),
        ("x = y.double()", "x = y.float()"),
        ("x = torch.DoubleTensor(3)", "x = torch.FloatTensor(3)"),
        ("torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
        (
            "import numpy as np\nx = torch.from_numpy(a.astype(np.float64))",
            "import numpy as np\nx = torch.from_numpy(a.astype(np.float32))",
        ),
        (
            "import numpy as np\nx = np.zeros(3, np.float64)",
            "import numpy as np\nx = np.zeros(3, np.float64)",
        ),
    ],
)
def test_float64_becomes_float32(before: str, after: str) -> None:
    assert expression(before, "ascend", "float32_data") == after
    assert expression(before) == before


def test_without_a_known_limit_float64_stays() -> None:
    source = "x = torch.zeros(3, dtype=torch.float64)"
    assert expression(source, "portable", "float32_data") == source


def test_the_change_is_said_once() -> None:
    """the remark that float64 is limited would be about a name that is gone"""
    assert said_with("x = y.to(torch.float64)", "float32_data") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.cuda(non_blocking=True)", "x = x.npu(non_blocking=False)"),
        ("x = x.to(d, non_blocking=True)", "x = x.to(d, non_blocking=False)"),
        ("x = x.to(d, non_blocking=flag)", "x = x.to(d, non_blocking=flag)"),
    ],
)
def test_copies_wait(before: str, after: str) -> None:
    assert expression(before, "ascend", "blocking_copies") == after


_DROP = "drop_cudnn_flags"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\nx = 1\n",
            "import torch\nx = 1\n",
            id="a line of its own",
        ),
        pytest.param(
            "import torch\nif fast:\n    torch.backends.cuda.matmul.allow_tf32 = True\nx = 1\n",
            "import torch\nif fast:\n    pass\nx = 1\n",
            id="a block of its own",
        ),
        pytest.param(
            "import torch\nif fast: torch.backends.cuda.matmul.allow_tf32 = True\n",
            "import torch\nif fast: pass\n",
            id="on the line of the block",
        ),
        pytest.param(
            "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True  # faster\nx = 1\n",
            "import torch\npass  # faster\nx = 1\n",
            id="a comment stays",
        ),
        pytest.param(
            "import torch\nif torch.backends.cuda.matmul.allow_tf32:\n    x = 1\n",
            "import torch\nif torch.backends.cuda.matmul.allow_tf32:\n    x = 1\n",
            id="a question is no setting",
        ),
        pytest.param(
            "import torch\r\ntorch.backends.cuda.matmul.allow_tf32 = True\r\nx = 1\r\n",
            "import torch\r\nx = 1\r\n",
            id="Windows",
        ),
    ],
)
def test_flags_of_cuda_libraries_are_dropped(before: str, after: str) -> None:
    assert rewritten(before, "tecorigin", _DROP) == after
    assert rewritten(before, "tecorigin") == before


def test_a_dropped_flag_needs_no_remark_that_it_may_stay() -> None:
    source = "torch.backends.cuda.matmul.allow_tf32 = True\nx = 1"
    assert said_with(source, _DROP, to="tecorigin") == []
    assert [kind for _, kind, _ in said_with(source, to="tecorigin")] == ["info"]


def test_portable_code_keeps_the_flags() -> None:
    source = "torch.backends.cudnn.benchmark = True"
    assert expression(source, "portable", _DROP) == source
