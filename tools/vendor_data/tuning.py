"""What is known of a variable or an option that costs or gains speed, and those that all vendors have.

What a variable takes and its default stand in vendors.json; they are repeated here only where that has none.
`slow` and `improvable` are patterns of values that lose speed, or that are worth another try; "" is "not set".
"""

from __future__ import annotations

from typing import NamedTuple


class Tuning(NamedTuple):
    """One variable or option; what is empty is not known."""

    name: str
    what: str
    what_zh: str
    source: str
    cost: str = ""  # of the slow values, and of the recommended one
    cost_zh: str = ""
    recommended: str = ""
    slow: str = ""
    improvable: str = ""
    default: str | None = None  # where vendors.json has none; None: unknown
    option: str = ""  # how a program sets it, if it is no variable


def blocking(name: str, source: str, default: str | None = None) -> Tuning:
    return Tuning(
        name,
        "1 makes the host wait for every operator, for exact stack traces",
        "为 1 时主机等待每个算子完成，用于得到准确的调用栈",
        source,
        "with 1 the host and the device never work at the same time",
        "为 1 时主机与设备无法同时工作",
        recommended="0",
        slow="1",
        default=default,
    )


def no_caching(name: str, source: str) -> Tuning:
    return Tuning(
        name,
        "1 switches the caching allocator off, to look for memory errors",
        "为 1 时关闭缓存分配器，用于查找内存错误",
        source,
        "every tensor is then allocated by the driver",
        "每个张量都要由驱动分配",
        recommended="",
        slow="(?!0$).+",
        default="",
    )


def blocking_wait(name: str, source: str) -> Tuning:
    return Tuning(
        name,
        "1 lets the host wait in wait() until a collective is done, so that time limits hold",
        "为 1 时主机在 wait() 中等待集合通信完成，使超时生效",
        source,
        "with 1 communication no longer runs beside the host's work",
        "为 1 时通信不再与主机工作并行",
        recommended="0",
        slow="1",
        default="0",
    )
