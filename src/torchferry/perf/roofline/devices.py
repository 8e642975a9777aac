"""What devices can do at most, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchferry.perf.roofline.work import Work
from torchferry.vendors.schema import toml_module

FILE = Path(__file__).with_name("devices.toml")
_OTHER_KEYS = ("pattern", "source", "bandwidth")


@dataclass(frozen=True)
class Peaks:
    """Of one device."""

    pattern: str
    flops: Mapping[str, float]  # a second, by dtype
    bandwidth: float  # bytes a second
    source: str

    def least_seconds(self, work: Work) -> float | None:
        """In which it can do some work; None: what it can do with this dtype is not known."""
        by_memory = work.nbytes / self.bandwidth
        if not work.flops:
            return by_memory
        flops = self.flops.get(work.dtype)
        return max(work.flops / flops, by_memory) if flops else None


@cache
def peaks_of(device_name: str) -> Peaks | None:
    """None: nothing is known of such a device."""
    return next((peaks for peaks in all_peaks() if re.search(peaks.pattern, device_name)), None)


@cache
def all_peaks() -> tuple[Peaks, ...]:
    """In the order of the file."""
    with FILE.open("rb") as stream:
        rows = toml_module().load(stream)["device"]
    return tuple(
        Peaks(
            row["pattern"],
            {dtype: tera * 1e12 for dtype, tera in row.items() if dtype not in _OTHER_KEYS},
            row["bandwidth"] * 1e9,
            row["source"],
        )
        for row in rows
    )
