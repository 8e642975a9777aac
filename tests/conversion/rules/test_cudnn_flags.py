"""TF709 (opt-in): settings of CUDA's libraries are dropped."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, said, said_with

_DROP = "drop_cudnn_flags"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("if torch.backends.cuda.matmul.allow_tf32:\n    x = 1", id="a question is no setting"),
        pytest.param("torch.backends.mkldnn.enabled = False", id="another library's"),
        pytest.param("torch.backends.cudnn.benchmark = args.fast", id="the program decides"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "tecorigin", _DROP) == source


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
            'import torch\ndef f():\n    """Faster."""\n\n    torch.backends.cuda.matmul.allow_tf32 = True\n'
            "    torch.backends.cudnn.allow_tf32 = True\n",
            'import torch\ndef f():\n    """Faster."""\n\n    pass\n',
            id="beside a docstring alone",
        ),
        pytest.param(
            "import torch\nif fast:\n    x = 1\n\n    # Tensor cores\n"
            "    torch.backends.cudnn.allow_tf32 = True\n\ny = 1\n",
            "import torch\nif fast:\n    x = 1\n\n    # Tensor cores\n\ny = 1\n",
            id="the last of a block, behind a comment",
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


def test_what_is_not_dropped_is_said() -> None:
    source = "torch.backends.cudnn.benchmark = True"
    for name in VENDORS:
        changed = expression(source, name, "drop_cudnn_flags") != source
        found = said(f"import torch\n{source}\n", name, "drop_cudnn_flags", rule="TF709")
        assert changed or [kind for _, kind, _ in found] == ["info"], name
