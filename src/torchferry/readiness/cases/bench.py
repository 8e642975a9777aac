"""Runs cases in another process, which is replaced when a case takes it down or takes too long, and says how they came out.

Imports no torch.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from torchferry.building.build import silent
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place, build_for
from torchferry.launch.plugin import is_to_be_simulated
from torchferry.readiness.cases.model import CaseOutcome, CaseVerdict, Times, TrialFacts
from torchferry.readiness.cases.writing import VARIABLE
from torchferry.report.safe import one_line
from torchferry.settings import decode
from torchferry.text import Text
from torchferry.units import signal_name
from torchferry.variables import ALL
from torchferry.vendors.model import Vendor

_Answer = TypeVar("_Answer", TrialFacts, Times, CaseOutcome)

PATIENCE = 10.0  # seconds for one of many trials, where waiting is what takes the time
_START_SECONDS = 120.0  # importing torch on a busy machine, and building nothing


class Bench:
    """A process that runs cases; used as a context."""

    def __init__(self, environment: Mapping[str, str], seconds: float, fallback: str = "") -> None:
        self._environment = {name: value for name, value in environment.items() if name != VARIABLE}
        self._seconds = seconds
        self._fallback = fallback  # how the vendor's plugin says that an operator falls back
        self._process: subprocess.Popen[str] | None = None
        self._answers: IO[str] | None = None
        self._words: IO[bytes] | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def probe(self, file: Path) -> TrialFacts:
        """What the CPU does with the case of a file."""
        answer = self._ask(TrialFacts, {"file": str(file), "do": "probe"})
        if isinstance(answer, CaseOutcome):
            return TrialFacts(error=answer.message or answer.kind.value)
        return answer

    def run(self, file: Path) -> CaseOutcome:
        """What the device does with the case of a file."""
        return self._ask(CaseOutcome, {"file": str(file), "do": "run", "fallback": self._fallback})

    def time(self, file: Path) -> Times:
        """How long the case of a file takes."""
        answer = self._ask(Times, {"file": str(file), "do": "time"})
        if isinstance(answer, CaseOutcome):
            return Times(error=answer.message or answer.kind.value)
        return answer

    def try_out(self, file: Path, is_patient: bool = True) -> CaseOutcome:
        """What the device does with the case of a file; one that the CPU does not take is invalid."""
        seconds = self._seconds if is_patient else min(self._seconds, PATIENCE)
        request = {"file": str(file), "do": "try", "fallback": self._fallback}
        return self._ask(CaseOutcome, request, seconds)

    def _ask(
        self, kind: type[_Answer], request: dict[str, str], seconds: float | None = None
    ) -> _Answer | CaseOutcome:
        """The answer, or how the process ended instead of giving one."""
        seconds = self._seconds if seconds is None else seconds
        process, answers = self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._crashed(process)
        line = self._read_line(answers, seconds)
        if line is None:
            self._end()
            return CaseOutcome(CaseVerdict.HANGS, message=f"no answer after {seconds:g} seconds")
        if not line:
            return self._crashed(process)
        return decode(kind, line)

    def _started(self) -> tuple[subprocess.Popen[str], IO[str]]:
        if self._process is not None and self._answers is not None:
            return self._process, self._answers
        reading, writing = os.pipe()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "torchferry.readiness.cases.worker", str(writing)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._words,
            env=self._environment,
            pass_fds=(writing,),
            text=True,
            encoding="utf-8",
        )
        os.close(writing)
        self._answers = os.fdopen(reading, encoding="utf-8")
        self._read_line(self._answers, _START_SECONDS)  # that it is ready
        return self._process, self._answers

    def _read_line(self, answers: IO[str], seconds: float) -> str | None:
        """One answer; "" if the process has ended, None if it did not answer in time. It answers in one piece."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([answers], [], [], min(left, 1.0))[0]:
                return answers.readline()
        return None

    def _crashed(self, process: subprocess.Popen[str]) -> CaseOutcome:
        code = process.wait()
        message = f"ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        lines: list[str] = []
        if self._words is not None:
            self._words.seek(0)
            lines = self._words.read().decode("utf-8", "replace").split("\n")
        last_words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        self._end()
        return CaseOutcome(CaseVerdict.CRASHES, message=f"{message}: {last_words}" if last_words else message)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
        for stream in (self._answers, self._words):
            if stream is not None:
                stream.close()
        self._process = self._answers = self._words = None


@dataclass(frozen=True)
class BenchSetting:
    """Where cases are run."""

    vendor: Vendor
    vendor_paths: tuple[str, ...] = ()
    emulate: bool = False
    is_run: bool = True  # on the device; else they are only tried on the CPU
    is_quiet: bool = False


@contextmanager
def bench_for(setting: BenchSetting, seconds: float) -> Iterator[Bench]:
    """A bench on the vendor's device: the real one, the emulated one, or a simulated one that is built here."""
    vendor = setting.vendor
    kind = DeviceKind.SIMULATED if is_to_be_simulated(vendor) else DeviceKind.REAL
    kind = DeviceKind.EMULATED if setting.emulate else kind
    place = Place(kind, vendor, setting.vendor_paths, converted=True)
    if setting.is_run:
        build_for(place, silent if setting.is_quiet else None)
    if setting.emulate and setting.is_run:
        environment = environment_at(place)
    else:
        environment = {name: value for name, value in os.environ.items() if name not in ALL}
    with Bench(environment, seconds, vendor.limits.fallback_message) as bench:
        yield bench


_DEVICE = Text("{vendor}'s device", "{vendor} 设备")
_SIMULATED = Text("{vendor}'s simulated device", "模拟的 {vendor} 设备")
_SAID = {
    CaseVerdict.EQUAL: Text(
        "equal: {device} computes the same as the CPU", "一致：{device}与 CPU 的结果相同"
    ),
    CaseVerdict.FALLS_BACK: Text(
        "falls back to the CPU: {device} has no kernel for {operators}; results are equal",
        "回退到 CPU：{device}没有 {operators} 的 kernel；结果一致",
    ),
    CaseVerdict.DIFFERS: Text(
        "differs on {device}, {check}: {message}", "不一致（{device}，{check}）：{message}"
    ),
    CaseVerdict.RAISES: Text(
        "raises on {device}, {check}: {message}", "报错（{device}，{check}）：{message}"
    ),
    CaseVerdict.CRASHES: Text(
        "crashes on {device}: the process {message}", "崩溃（{device}）：进程 {message}"
    ),
    CaseVerdict.HANGS: Text("hangs on {device}: {message}", "无响应（{device}）：{message}"),
    CaseVerdict.NO_DEVICE: Text("not run: {message}", "未运行：{message}"),
    CaseVerdict.INVALID: Text("the CPU rejects these inputs: {message}", "CPU 拒绝这些输入：{message}"),
}
WROTE = Text("wrote {file}", "已写入 {file}")
WROTE_WITH_DATA = Text(
    "wrote {file}, and its recorded tensors to {data}", "已写入 {file}，记录的张量写入 {data}"
)
SHRUNK = Text(
    "the smallest case with the same failure ({trials} tried): {call}",
    "失败方式相同的最小用例（尝试 {trials} 次）：{call}",
)
NOT_FINISHED = Text(
    "; a smaller one may exist: at most {trials} are tried",
    "；可能还有更小的：最多尝试 {trials} 次",
)
NOT_STEADY = Text(
    "it fails only sometimes: run it several times; a smaller case may exist",
    "该用例并非每次都失败：请多次运行，它未必是最小用例",
)
NOTHING_TO_SHRINK = Text("it does not fail, so there is nothing to shrink", "用例未失败：无需缩小")


def outcome_sentence(outcome: CaseOutcome, vendor: str) -> Text:
    """How a case came out, in one line."""
    device = (_SIMULATED if outcome.simulated else _DEVICE).format(vendor=vendor)
    return _SAID[outcome.kind].format(
        device=device,
        operators=", ".join(outcome.operators),
        check=outcome.check.removeprefix("test_"),
        message=one_line(outcome.message),
    )
