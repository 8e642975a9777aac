"""Runs jobs in a few worker processes, each replaced when it crashes or hangs."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .records import Outcome, Result

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Job:
    """One operator in one dtype."""

    operator: str
    dtype: str


@dataclass(frozen=True)
class Settings:
    """What every worker is told."""

    vendor: str = ""  # empty: the CPU stands in for the device
    emulate: bool = False  # the vendor's own plugin, on its emulated toolkit
    samples: int = 20
    timeout: float = 180.0  # seconds for one job; the slowest needs 25 on a machine of its own
    start_timeout: float = 600.0  # the library may have to be built first
    module: str = "tools.conformance.worker"


class StartError(RuntimeError):
    """A worker died before it took its first job."""


@dataclass
class _Worker:
    """One process and its pipes."""

    settings: Settings
    process: subprocess.Popen[str] = field(init=False)
    error_reader: threading.Thread = field(init=False)
    lines: queue.Queue[str] = field(default_factory=queue.Queue)
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=30))
    late_after: float = 0.0  # the seconds that it was given, if it used them all up

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", self.settings.module, f"--samples={self.settings.samples}"]
        command += [f"--vendor={self.settings.vendor}"] if self.settings.vendor else []
        command += ["--emulate"] if self.settings.emulate else []
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"},
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.error_reader = threading.Thread(target=self._read_errors, daemon=True)
        self.error_reader.start()
        deadline = time.monotonic() + self.settings.start_timeout
        if self._message(deadline) is None:
            self._note_lateness(deadline, self.settings.start_timeout)
            self.stop()
            raise StartError(f"a worker did not start ({self.ending()}):\n{''.join(self.errors)}")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def _message(self, deadline: float) -> dict[str, Any] | None:
        """The next message, or None if the process ended or the time is up."""
        try:
            line = self.lines.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            return None
        message: dict[str, Any] | None = json.loads(line) if line else None
        return message

    def run(self, job: Job) -> Result:
        """The answer to one job; a crash is an answer, too, after which the worker is of no more use."""
        assert self.process.stdin is not None
        at = "the beginning"
        deadline = time.monotonic() + self.settings.timeout
        try:
            self.process.stdin.write(json.dumps(vars(job)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return self._crash(job, "before the job began")
        while (message := self._message(deadline)) is not None:
            if "result" in message:
                return Result.from_json(message["result"])
            at = message["at"]
        self._note_lateness(deadline, self.settings.timeout)
        return self._crash(job, at)

    def _note_lateness(self, deadline: float, allowed: float) -> None:
        self.late_after = allowed if time.monotonic() >= deadline else 0.0

    def _crash(self, job: Job, at: str) -> Result:
        self.stop()
        return Result(job.operator, job.dtype, Outcome.CRASH, reason=f"{at}: {self.ending()}")

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def ending(self) -> str:
        """How the process ended, in words."""
        code = self.process.returncode
        if self.late_after:
            return f"no answer within {self.late_after:g} s"
        if code is not None and code < 0:
            return f"the process died of {signal.Signals(-code).name}"
        return (
            f"the process ended with code {code}: {self.errors[-1].strip() if self.errors else 'no message'}"
        )

    def stop(self) -> None:
        """End the process: kindly if it waits for a job or is dying, by force if it hangs."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=0.0 if self.late_after else 30.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.error_reader.join(timeout=1.0)


def run_jobs(
    jobs: Iterable[Job], settings: Settings, workers: int, on_result: Callable[[Result], None]
) -> list[Result]:
    """The results, in the order of the jobs."""
    jobs = list(jobs)
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(jobs)):
        waiting.put(number)
    results: dict[int, Result] = {}
    failures: list[StartError] = []
    is_over = threading.Event()
    lock = threading.Lock()

    def serve() -> None:
        worker: _Worker | None = None
        try:
            while not is_over.is_set():
                number = waiting.get_nowait()
                if worker is None or not worker.is_alive:
                    worker = _Worker(settings)
                result = worker.run(jobs[number])
                with lock:
                    results[number] = result
                    on_result(result)
        except queue.Empty:
            pass
        except StartError as error:
            failures.append(error)
            is_over.set()
        finally:
            if worker is not None:
                worker.stop()

    threads = [threading.Thread(target=serve) for _ in range(min(workers, len(jobs)))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        is_over.set()  # interrupted: what runs now is the last
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(jobs))]
