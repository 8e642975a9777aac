"""What a device does, by the name of its work."""

from __future__ import annotations

import pytest

from torchferry.traces.categories import device_kind
from torchferry.traces.columns import Kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("EVENT_WAIT", Kind.SKIPPED),
        ("Notify_Wait", Kind.SKIPPED),
        ("EVENT_RECORD", Kind.FILL),
        ("MEMSET_ASYNC", Kind.FILL),
        ("MEMCPY_ASYNC", Kind.COPY),
        ("hcom_allReduce__654_1_1", Kind.COMMUNICATION),
        ("aclnnAdd_AddAiCore_Add", Kind.COMPUTE),
        ("aclnnAwait_AwaitAiCore_Await", Kind.COMPUTE),
    ],
)
def test_work_is_told_from_waiting(name: str, kind: Kind) -> None:
    assert device_kind(name) is kind
