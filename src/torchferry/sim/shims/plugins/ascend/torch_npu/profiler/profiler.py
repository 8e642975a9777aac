"""profile, schedule and the handler that writes a trace where the card's profiler writes one."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

import torch.profiler
from torch.profiler import ProfilerAction

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "_KinetoProfile",
    "analyse",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_TRACE = "trace_view.json"
_INFO = "profiler_info.json"
_METRIC = "self_cpu_time_total"  # the simulated device's time is the CPU's


class ProfilerActivity(Enum):
    """What is watched."""

    CPU = 0
    NPU = 1


def supported_activities() -> set[ProfilerActivity]:
    """All activities that can be watched."""
    return set(ProfilerActivity)


def schedule(
    wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0, **others: Any
) -> Callable[[int], ProfilerAction]:
    """torch.profiler.schedule, with the card's order of arguments."""
    return torch.profiler.schedule(
        wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first, **others
    )


class _KinetoProfile:
    """Watches from start to stop. It has what the card's class has: key_averages() and events() are not there."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        **timing: Any,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        self.experimental_config = experimental_config
        self._has_stacks = with_stack
        self._watch = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],  # where the simulated device's operators run
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            **timing,
        )

    def start(self) -> None:
        self._watch.start()

    def stop(self) -> None:
        self._watch.stop()

    def export_chrome_trace(self, output_path: str) -> None:
        """Write what was seen; the card's profiler takes names that end in .json alone."""
        if not str(output_path).endswith(".json"):
            raise RuntimeError("Invalid parameter output_path, which must be a json file.")
        self._watch.export_chrome_trace(str(output_path))

    def export_stacks(self, output_path: str, metric: str = _METRIC) -> None:
        """Write the call stacks, if with_stack=True collected them."""
        if not self._has_stacks:
            warnings.warn("Function export_stacks() requires with_stack=True.", stacklevel=2)
            return
        self._watch.export_stacks(str(output_path), _METRIC)

    def add_metadata(self, key: str, value: str) -> None:
        self._watch.add_metadata(key, value)

    def add_metadata_json(self, key: str, value: str) -> None:
        self._watch.add_metadata_json(key, value)


class profile(_KinetoProfile):  # noqa: N801  the card's name
    """Watches by a schedule, and hands every finished part to on_trace_ready."""

    def __init__(
        self,
        *,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        use_cuda: bool | None = None,
        **settings: Any,
    ) -> None:
        if use_cuda is not None:
            warnings.warn("This is npu environment, use_cuda is invalid", stacklevel=2)
        self.on_trace_ready = on_trace_ready
        super().__init__(schedule=schedule, on_trace_ready=self._hand_over, **settings)

    def _hand_over(self, _watch: Any) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    @property
    def step_num(self) -> int:
        """How many steps have ended; libraries that count for themselves set it."""
        return self._watch.step_num

    @step_num.setter
    def step_num(self, value: int) -> None:
        self._watch.step_num = value

    def step(self) -> None:
        self._watch.step()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[Any], None]:
    """Write the trace into a folder of its own, named and laid out as the card's profiler does."""
    base = Path(dir_name or os.environ.get("ASCEND_WORK_PATH", "."))

    def handler(profiler: Any) -> None:
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        stamp = time.strftime("%Y%m%d%H%M%S") + f"{time.time_ns() // 1_000_000 % 1000:03d}"
        folder = base / f"{worker}_{stamp}_ascend_pt"
        output = folder / _OUTPUT
        output.mkdir(parents=True)
        profiler.export_chrome_trace(str(output / _TRACE))
        info = {"simulated": True, "analysed": analyse_flag, "torch": torch.__version__}
        (folder / _INFO).write_text(json.dumps(info), encoding="utf-8")

    return handler


def analyse(profiler_path: str, max_process_number: int = 1) -> None:
    """On the card this turns raw data into traces; here they are written in their final form, so it only looks."""
    if not any(Path(profiler_path).rglob(_TRACE)):
        warnings.warn(f"no {_TRACE} below {profiler_path}", stacklevel=2)
