"""A vendor's own profiler, steered by the calls that its documentation has; here the simulator's stand-in for it."""

from __future__ import annotations

import json
from pathlib import Path

from .profiling import SIMULATED, TRAINING, profiled

STEERED = """
import torchferry.perf.collect.program as program
from torchferry.perf.collect.tracing import VendorTracer

def make(settings, vendor, rank):
    import torch_npu.profiler
    return VendorTracer(torch_npu.profiler, "NPU", settings, rank=1)

program.make_tracer = make
for _ in range(9):
    step()
"""


def test_it_writes_its_own_folder(tmp_path: Path) -> None:
    run = profiled(TRAINING + STEERED, tmp_path, SIMULATED, steps=(4, 5), warmup=2)
    assert run.ended.returncode == 0, run.ended.stderr
    told = run.only
    assert told.trace.startswith("rank1.") and told.trace.endswith("_ascend_pt")
    events = json.loads((run.folder / told.trace / "ASCEND_PROFILER_OUTPUT/trace_view.json").read_text())
    marks = [event["name"] for event in events["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    assert marks == ["ProfilerStep#2", "ProfilerStep#3"] and told.first_mark == 2


def test_it_is_ended_if_the_program_ends_within_its_steps(tmp_path: Path) -> None:
    run = profiled(TRAINING + STEERED.replace("range(9)", "range(4)"), tmp_path, SIMULATED, steps=(4, 6))
    assert run.ended.returncode == 0, run.ended.stderr
    assert (run.only.first_step, run.only.last_step, run.only.made) == (4, 4, 4) and run.only.trace
