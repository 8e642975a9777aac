"""Real traces of other people's runs. They are not part of the repository: tests skip where they are absent."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from torchferry.perf.run import Run
from torchferry.traces.reader import read_trace

TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
SLOW_LOADER = "resnet50_num_workers_0_worker0.1623143089861.json.gz"
FAST_LOADER = "resnet50_num_workers_4_worker0.1623212756351.json.gz"
VENDORS_TIMELINE = "ascend_trace_view.json"
LANGUAGE_MODEL = "h100_Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
LANGUAGE_MODEL_ELSEWHERE = "mi300_Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
KERNEL_TABLE = "ascend_kernel_details.csv"


def real_trace(name: str) -> Path:
    """Skips the test if there is none."""
    path = TRACES / name
    if not path.exists():
        pytest.skip(f"the trace {name} is not here")
    return path


@cache
def real_run(name: str) -> Run:
    """Read once for all tests: nobody changes it."""
    path = real_trace(name)
    return Run((path.name,), read_trace(path))
