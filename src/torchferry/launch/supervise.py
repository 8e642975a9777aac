"""Runs a program to its end and answers its exit code: passes signals on, and leaves none of its processes behind."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from torchferry.errors import RunError, system_reason
from torchferry.text import NOTHING, Text, user_language

Stream = IO[bytes] | IO[str] | int | None  # None: this process's own

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FROM_TERMINAL = 0x80  # SI_KERNEL: the terminal has sent the signal to all processes, not only to this one
_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.02
# Helpers such as multiprocessing's resource tracker end by themselves, and clean up as they do.
_SECONDS_TO_END_BY_ITSELF = 2.0
_SECONDS_AFTER_SIGTERM = 5.0
# When a signal has asked for the end, all of it together stays below two seconds.
_SECONDS_TO_END_WHEN_TOLD = 0.8
_SECONDS_TO_LEAVE_WHEN_TOLD = 0.4
_LONGEST_WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class Ending:
    """How a program ended."""

    exit_code: int  # as shells count: 128 + n for signal n
    left_running: int  # processes that it left, and that were ended
    # The last one that asked this process to end meanwhile; the program may have ended otherwise.
    signal: int = 0
    out_of_time: bool = False  # it took longer than it was allowed to, and was ended


class EndRequest(KeyboardInterrupt):
    """A signal asked for the end: it is meant for the whole command, not for the program alone that it reached."""

    def __init__(self, number: int, kept: str = "") -> None:
        super().__init__(*filter(None, [kept]))  # what is said instead of "nothing was written"
        self.exit_code = 128 + number  # as shells count


def stop_if_told(ending: Ending, kept: Text = NOTHING) -> None:
    """End the command if a signal has come while the program ran; `kept` says what there is nevertheless."""
    if ending.signal:
        raise EndRequest(ending.signal, kept.in_language(user_language()))


def own_stderr() -> int | None:
    """The stream for a program whose stdout is not the command's result; None: there is no such stream, as in some tests."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError):
        return None


def run_supervised(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdout: Stream = None,
    stderr: Stream = None,
    stdin: Stream = None,
    seconds: float | None = None,
    patient: bool = False,
    is_ours: bool = False,
    cwd: Path | None = None,
) -> Ending:
    """Run a command in the foreground until it and all its descendants have ended; its input and output are ours, or
    these files, and so is its folder. After so many seconds, if they are given, it is told to end, then killed.

    A signal that asks for the end is passed on. A `patient` run then waits for the program, which may have a
    checkpoint to save; any other kills what does not end at once. A program that is our own has no last words: it
    is ended in silence.

    It stays in this process group, so that a debugger can use the terminal. Orphans of the program become children
    of this process; when the program ends, those that do not end by themselves are told to, then killed. When this
    process is killed, the program is told to end.
    """
    watched = {number for number in _PASSED_ON if signal.getsignal(number) != signal.SIG_IGN}
    _prctl(_SET_CHILD_SUBREAPER, 1)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*watched, signal.SIGCHLD})
    try:
        program = _start(command, environment, before, (stdin, stdout, stderr), is_ours, cwd)
        clock = _Clock(program.pid, seconds)
        program.returncode, received = _wait(program.pid, watched, clock, patient, is_ours)
        left = _end_descendants(is_told=received != 0)
    finally:
        _prctl(_SET_CHILD_SUBREAPER, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Ending(program.returncode, left, received, clock.has_run_out)


def _start(
    command: Sequence[str],
    environment: Mapping[str, str],
    mask: set[signal.Signals] | set[int],
    streams: tuple[Stream, Stream, Stream],
    is_ours: bool,
    cwd: Path | None,
) -> subprocess.Popen[bytes]:
    def prepare() -> None:
        if is_ours:  # Python would answer Ctrl-C with a traceback, even while it starts
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)

    try:
        return subprocess.Popen(command, -1, None, *streams, env=environment, cwd=cwd, preexec_fn=prepare)
    except OSError as error:
        raise RunError(
            Text(
                f"{command[0]} can't be started: {system_reason(error).en}",
                f"{command[0]} 无法启动：{system_reason(error).zh}",
            )
        ) from error


class _Clock:
    """The time that a program may take, and what happens when it is over."""

    def __init__(self, program: int, seconds: float | None) -> None:
        self.has_run_out = False
        self._is_told = False  # to end
        self._program = program
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    def _left(self) -> float:
        return self._end - time.monotonic()

    def next_signal(self, watched: set[signal.Signals]) -> signal.struct_siginfo | None:
        """The next signal of these; None when it is time to look by oneself.

        The word that a child has ended goes to any thread of this process, and is lost in those that do not wait
        for it: computing libraries start such threads.
        """
        return signal.sigtimedwait(watched, min(_LONGEST_WAIT_SECONDS, max(0.0, self._left())))

    def program_is_told(self) -> None:
        """It has got a signal, and has little time left; a second signal does not give it more."""
        if not self._is_told:
            self._is_told = True
            self._end = min(self._end, time.monotonic() + _SECONDS_TO_END_WHEN_TOLD)

    def strike_if_over(self) -> None:
        """When the time is over: tell the program to end; kill it if it has been told."""
        if self._left() > 0:
            return
        with suppress(ProcessLookupError):
            os.kill(self._program, signal.SIGKILL if self._is_told else signal.SIGTERM)
        self.has_run_out = self.has_run_out or not self._is_told
        self._is_told = True
        self._end = time.monotonic() + _SECONDS_AFTER_SIGTERM


def _wait(
    program: int, watched: set[signal.Signals], clock: _Clock, patient: bool, is_ours: bool
) -> tuple[int, int]:
    """Wait until the program has ended: its exit code, and the last signal that came meanwhile."""
    received = 0
    while True:
        info = clock.next_signal({*watched, signal.SIGCHLD})
        if info is None or info.si_signo == signal.SIGCHLD:
            codes = _reap()
            if program in codes:
                return codes[program], received
            clock.strike_if_over()
            continue
        received = info.si_signo
        if not patient:
            clock.program_is_told()
        with suppress(ProcessLookupError):
            if is_ours:
                os.kill(program, signal.SIGTERM)
            elif info.si_code != _FROM_TERMINAL:
                os.kill(program, info.si_signo)


def _reap() -> dict[int, int]:
    """Take leave of the children that have ended: process -> exit code."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            code = os.waitstatus_to_exitcode(status)
            ended[process] = code if code >= 0 else 128 - code
    return ended


def _end_descendants(is_told: bool) -> int:
    """End what the program has left, at once if the end was asked for; answers how many processes had to be told."""
    until = time.monotonic() + (_SECONDS_TO_LEAVE_WHEN_TOLD if is_told else _SECONDS_TO_END_BY_ITSELF)
    while _children() and time.monotonic() <= until:
        time.sleep(_POLL_SECONDS)
        _reap()
    if not _children():
        return 0
    told: set[int] = set()
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + (_SECONDS_TO_LEAVE_WHEN_TOLD if is_told else _SECONDS_AFTER_SIGTERM)
        while time.monotonic() < until and (children := _children()):
            for child in children - (told if number == signal.SIGTERM else set()):
                with suppress(ProcessLookupError):
                    os.kill(child, number)
            told |= children
            time.sleep(_POLL_SECONDS)
            _reap()
    return len(told)


def _children() -> set[int]:
    """This process's children, orphans of the program included. (Threads start none here.)"""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            process, _, rest = status.read_text("utf-8", "replace").partition(" (")
            if int(rest.rpartition(") ")[2].split()[1]) == os.getpid():
                found.add(int(process))
    return found


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
