"""Runs compiler processes, a few at a time; whatever ends the run early ends them, too."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_MOST_PROCESSES = 2
_BYTES_PER_PROCESS = 1 << 30  # PyTorch's headers take about that much
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Job:
    """One compiler call: it writes `aside`, which becomes `target` when it is whole."""

    name: str
    command: tuple[str, ...]
    aside: Path
    target: Path
    shown: str  # what it makes or reads, for people


class CompilerError(Exception):
    """A compiler could not be started, or ended with an error."""

    def __init__(self, job: Job, log: str) -> None:
        super().__init__(job.name)
        self.job = job
        self.log = log


def run_jobs(jobs: Sequence[Job], work: Path, report: Callable[[int], None]) -> None:
    """Run all jobs, the longest sources first; `work` takes logs and the compilers' own temporary files."""
    waiting = list(jobs)
    running: list[_Running] = []
    places = parallel_jobs()
    try:
        while waiting or running:
            while waiting and len(running) < places:
                with _uninterrupted():
                    running.append(_Running(waiting.pop(0), work))
            running = [each for each in running if not each.has_ended()]
            report(len(jobs) - len(waiting) - len(running))
            if running:
                time.sleep(_POLL_SECONDS)
    finally:
        for each in running:
            each.kill()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits: between the start of a compiler and the note of it, nobody would end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Running:
    """A compiler at work."""

    def __init__(self, job: Job, work: Path) -> None:
        self._job = job
        self._log = work / f"{job.name}.log"
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    job.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "TMPDIR": str(work), "LC_ALL": "C"},
                    start_new_session=True,  # so that the compiler's own children can be ended with it
                )
        except OSError as error:
            raise CompilerError(job, f"$ {job.command[0]}\n{error.strerror}") from error

    def has_ended(self) -> bool:
        """Whether it is through; raises if it failed."""
        code = self._process.poll()
        if code is None:
            return False
        if code:
            log = self._log.read_text("utf-8", "replace")
            ending = (
                f"killed by signal {-code}, perhaps for lack of memory" if code < 0 else f"exit code {code}"
            )
            raise CompilerError(self._job, f"$ {' '.join(self._job.command)}\n{log}({ending})\n")
        self._job.aside.replace(self._job.target)
        return True

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def parallel_jobs() -> int:
    """How many compilers to run at once."""
    cores = len(os.sched_getaffinity(0))
    by_memory = _free_memory() // _BYTES_PER_PROCESS
    return max(1, min(_MOST_PROCESSES, cores, by_memory))


def _free_memory() -> int:
    """Bytes that this process may still take: of the machine, and of its control group."""
    free = [_MOST_PROCESSES * _BYTES_PER_PROCESS]
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            free.append(int(line.split()[1]) * 1024)
    limit, used = (_text(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used.isdigit():
        free.append(int(limit) - int(used))
    return min(free)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("ascii")
    except OSError:
        return ""
