"""The checks of converted files see what they are for. No network."""

from __future__ import annotations

from typing import Any

import pytest

from tests.corpus.checks import assert_only_hunks_changed

OLD = b"import torch\r\n\r\nx = 1\r\ny = x.cuda()\r\n"
HUNKS: list[dict[str, Any]] = [
    {
        "old_start": 1,
        "new_start": 1,
        "lines": [[" ", "import torch", ""], ["+", "", "import torch_npu"], [" ", "", ""]],
    },
    {"old_start": 4, "new_start": 5, "lines": [["~", "y = x.cuda()", "y = x.npu()"]]},
]


def test_changed_lines_may_change() -> None:
    new = b"import torch\r\nimport torch_npu\r\n\r\nx = 1\r\ny = x.npu()\r\n"
    assert_only_hunks_changed(OLD, new, HUNKS)


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(b"import torch\r\nimport torch_npu\r\n\r\nx = 2\r\ny = x.npu()\r\n", id="another line"),
        pytest.param(b"import torch\r\nimport torch_npu\r\n\r\nx = 1\ny = x.npu()\r\n", id="a line ending"),
        pytest.param(b"import torch\r\nimport torch_npu\r\n\r\ny = x.npu()\r\n", id="a line gone"),
        pytest.param(
            b"import torch\r\nimport torch_npu\r\n\r\nx = 1\r\ny = x.npu()\r\nz\r\n", id="a line more"
        ),
    ],
)
def test_other_lines_may_not(new: bytes) -> None:
    with pytest.raises((AssertionError, IndexError)):
        assert_only_hunks_changed(OLD, new, HUNKS)
