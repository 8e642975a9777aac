"""What a device does, by the name of its work."""

from __future__ import annotations

import pytest

from torchferry.traces.columns import EventKind
from torchferry.traces.names import device_kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("EVENT_WAIT", EventKind.SKIPPED),
        ("Notify_Wait", EventKind.SKIPPED),
        ("EVENT_RECORD", EventKind.FILL),
        ("MEMSET_ASYNC", EventKind.FILL),
        ("MEMCPY_ASYNC", EventKind.COPY),
        ("hcom_allReduce__654_1_1", EventKind.COMMUNICATION),
        ("aclnnAdd_AddAiCore_Add", EventKind.COMPUTE),
        ("aclnnAwait_AwaitAiCore_Await", EventKind.COMPUTE),
    ],
)
def test_work_is_told_from_waiting(name: str, kind: EventKind) -> None:
    assert device_kind(name) is kind
