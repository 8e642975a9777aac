"""A device's memory counters under torch's names, and as a table for people.

Bytes and calls of one pool are counted. A group that can't be told apart is not there: "active" equals "allocated",
since nothing waits for a stream, and blocks are not split.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchferry.units import size


@dataclass(frozen=True)
class MemoryUse:
    """Bytes and counts of one device since the process began or the last reset."""

    allocated: int
    peak_allocated: int
    reserved: int
    peak_reserved: int
    allocations: int
    frees: int
    blocks: int  # allocated now
    out_of_memory: int
    limit: int


def nested_statistics(use: MemoryUse) -> dict[str, Any]:
    """Counters in torch's groups: group -> pool -> metric."""
    calls = {
        "current": use.blocks,
        "allocated": use.allocations,
        "freed": use.frees,
    }
    held = {"current": use.allocated, "peak": use.peak_allocated}
    reserved = {"current": use.reserved, "peak": use.peak_reserved}
    return {
        "allocation": {"all": calls},
        "active": {"all": calls},
        "allocated_bytes": {"all": held},
        "active_bytes": {"all": held},
        "requested_bytes": {"all": held},
        "reserved_bytes": {"all": reserved},
        "inactive_split": {"all": {"current": 0, "peak": 0}},
        "inactive_split_bytes": {"all": {"current": 0, "peak": 0}},
        "num_alloc_retries": 0,
        "num_ooms": use.out_of_memory,
    }


def flat_statistics(use: MemoryUse) -> OrderedDict[str, Any]:
    """The same under dotted names, sorted."""
    flat: dict[str, Any] = {}

    def add(prefix: str, value: Mapping[str, Any]) -> None:
        for name, entry in value.items():
            dotted = f"{prefix}.{name}" if prefix else name
            if isinstance(entry, Mapping):
                add(dotted, entry)
            else:
                flat[dotted] = entry

    add("", nested_statistics(use))
    return OrderedDict(sorted(flat.items()))


def summary(title: str, use: MemoryUse, abbreviated: bool) -> str:
    """A table of what is held now and was held at most; abbreviated without the counts."""
    rows = [
        ("Allocated memory", size(use.allocated), size(use.peak_allocated)),
        ("Reserved memory", size(use.reserved), size(use.peak_reserved)),
        ("Limit", size(use.limit), ""),
        ("Out of memory errors", str(use.out_of_memory), ""),
    ]
    if not abbreviated:
        rows += [
            ("Allocations since reset", str(use.allocations), ""),
            ("Frees since reset", str(use.frees), ""),
        ]
    lines = [f"| {name:<25} | {now:>14} | {peak:>14} |" for name, now, peak in rows]
    head = f"| {'Metric':<25} | {'Now':>14} | {'Peak':>14} |"
    rule = "|" + "=" * (len(head) - 2) + "|"
    return "\n".join([rule, f"| {title:<{len(head) - 4}} |", rule, head, rule, *lines, rule])
