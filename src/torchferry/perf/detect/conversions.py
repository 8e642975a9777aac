"""Which of the device's kernels do nothing but change a format, a type or an order."""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from torchferry.perf.detect.ai_cpu import on_ai_cpu
from torchferry.perf.detect.copying import Copied, copies
from torchferry.text import Text
from torchferry.traces.columns import Ints

if TYPE_CHECKING:
    from torchferry.perf.tables.kernels import KernelTable
    from torchferry.traces.model import Trace


class Change(Enum):
    """What a kernel changes."""

    FORMAT = "format"
    TYPE = "type"
    ORDER = "order"

    @property
    def label(self) -> Text:
        """For people."""
        return _LABELS[self]


_LABELS = {
    Change.FORMAT: Text("format", "格式"),
    Change.TYPE: Text("type", "类型"),
    Change.ORDER: Text("order of dimensions", "维度次序"),
}
CHANGES = tuple(Change)
_PATTERNS = (
    (
        Change.FORMAT,
        re.compile(
            r"TransData(?![a-z])(?!\w*MemSet)|format_?cast|nchwToNhwc|nhwcToNchw|convertTensor_kernel|mkldnn_reorder",
            re.IGNORECASE,
        ),
    ),
    (Change.TYPE, re.compile(r"(?:^|_)Cast(?:AiC\w+_Cast)?[\d_]*$")),
    (Change.ORDER, re.compile(r"(?:^|_)Transpose(?:D|AiC\w+)?(?:_Transpose)?[\d_]*$|batched_transpose_|transpose_readWrite")),
)  # fmt: skip


@cache
def change_of(kernel: str) -> Change | None:
    """By its name or its type; None: it does something else too."""
    return next((change for change, pattern in _PATTERNS if pattern.search(kernel)), None)


def device_changes(trace: Trace) -> Ints:
    """For each row of `device` the number in CHANGES of what it changes; -1: it is no conversion."""
    by_name = np.full(len(trace.names), -1, np.int64)
    for number in np.unique(trace.device.name).tolist():
        change = change_of(trace.names[number])
        by_name[number] = -1 if change is None else CHANGES.index(change)
    found = by_name[trace.device.name]
    # A kernel that copies has no name of its own for what it changes: its operator's inputs tell.
    launched = np.full(len(trace.host), -1, np.int64)
    launched[copies(trace, Copied.TYPE)] = CHANGES.index(Change.TYPE)
    launched[copies(trace, Copied.LAYOUT)] = CHANGES.index(Change.FORMAT)
    asked = (found < 0) & (trace.owner >= 0)
    found[asked] = launched[trace.owner[asked]]
    found[on_ai_cpu(trace)] = -1  # slow for another reason, which has its own detector
    return found


def table_changes(table: KernelTable) -> Ints:
    """The same for the rows of a table of kernels."""
    by_text = np.array(
        [-1 if (change := change_of(text)) is None else CHANGES.index(change) for text in table.texts]
        or [-1],
        np.int64,
    )
    by_type = by_text[table.type]
    return np.where(by_type >= 0, by_type, by_text[table.name])
