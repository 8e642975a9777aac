"""Builds small traces as today's profiler writes them. Times are microseconds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchferry.perf.run import Run
from torchferry.traces.model import Trace
from torchferry.traces.reader import read_trace

MAIN, BACKWARD = 100, 200  # threads
PROCESS = 100


@dataclass
class TraceBuilder:
    """Add events, then write them."""

    events: list[dict[str, Any]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    correlation: int = 0

    def step(self, number: int, start: float, duration: float) -> None:
        self.annotation(f"ProfilerStep#{number}", start, duration)

    def annotation(self, name: str, start: float, duration: float, thread: int = MAIN) -> None:
        self._add("user_annotation", name, start, duration, PROCESS, thread)

    def op(self, name: str, start: float, duration: float, thread: int = MAIN, **inputs: Any) -> None:
        """dims=[[2, 3]], types=["float"], strides=[[3, 1]], concrete=[""]."""
        keys = {
            "dims": "Input Dims",
            "types": "Input type",
            "strides": "Input Strides",
            "concrete": "Concrete Inputs",
        }
        self._add(
            "cpu_op",
            name,
            start,
            duration,
            PROCESS,
            thread,
            **{keys[key]: given for key, given in inputs.items()},
        )

    def python(self, name: str, start: float, duration: float, thread: int = MAIN) -> None:
        """`train.py(12): main`, `nn.Module: Conv2d_0`."""
        self._add("python_function", name, start, duration, PROCESS, thread)

    def runtime(self, name: str, start: float, duration: float, thread: int = MAIN) -> None:
        self._add("cuda_runtime", name, start, duration, PROCESS, thread)

    def kernel(
        self,
        name: str,
        start: float,
        duration: float,
        launched: float,
        thread: int = MAIN,
        stream: int = 7,
        category: str = "kernel",
        **details: Any,
    ) -> None:
        """Launched by whatever operator runs at that time. category: kernel, gpu_memcpy, gpu_memset."""
        self.correlation += 1
        self._add(
            "cuda_runtime", "cudaLaunchKernel", launched, 1, PROCESS, thread, correlation=self.correlation
        )
        self._add(category, name, start, duration, 0, stream, correlation=self.correlation, **details)

    def memory(
        self, start: float, changed_by: int, allocated: int, reserved: int, device_type: int = 1
    ) -> None:
        args = {
            "Bytes": changed_by,
            "Total Allocated": allocated,
            "Total Reserved": reserved,
            "Device Type": device_type,
            "Device Id": 0,
        }
        self.events.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": PROCESS,
                "tid": MAIN,
                "ts": start,
                "args": args,
            }
        )

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps({**self.about, "traceEvents": self.events}))
        return path

    def trace(self, folder: Path) -> Trace:
        return read_trace(self.write(folder / "trace.json"))

    def run(self, folder: Path, **facts: Any) -> Run:
        return Run(("trace.json",), self.trace(folder), **facts)

    def _add(
        self, category: str, name: str, start: float, duration: float, process: int, thread: int, **args: Any
    ) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": process,
                "tid": thread,
                "ts": start,
                "dur": duration,
                "args": args,
            }
        )
