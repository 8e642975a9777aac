"""Traces for tests: made by the profiler, or written by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchferry.readiness.model import Capture, Phase, Use

Events = list[dict[str, Any]]


def op(
    name: str, start: Any, duration: Any, thread: Any = 7, category: str = "cpu_op", **args: Any
) -> dict[str, Any]:
    """An event of the host; underscores in keys of `args` stand for blanks."""
    details = {key.replace("_", " "): value for key, value in args.items()}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": thread,
        "ts": start,
        "dur": duration,
        "args": details,
    }


def write(folder: Path, events: Events | dict[str, Any], name: str = "trace.json") -> Path:
    """The events in a file, as the profiler of today lays them out."""
    path = folder / name
    whole = {"schemaVersion": 1, "traceEvents": events} if isinstance(events, list) else events
    path.write_text(json.dumps(whole, indent=1), "utf-8")
    return path


def profile(path: Path, step: Callable[[], object], **options: Any) -> Path:
    """What torch.profiler records of a function."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CPU], **options) as recorded:
        step()
    recorded.export_chrome_trace(str(path))
    return path


def calls(capture: Capture, inside: bool = False) -> Counter[str]:
    """Operators and how often they were called, without or with those inside of formulas."""
    found: Counter[str] = Counter()
    for use in capture.uses:
        if inside or not use.site.inside:
            found[use.operator] += use.calls
    return found


def the(capture: Capture, operator: str, phase: Phase | None = None) -> Use:
    """The only use of an operator."""
    (use,) = (use for use in capture.uses if use.operator == operator and phase in (None, use.site.phase))
    return use
