"""How far a long work is: on a terminal a line that changes and is gone at the end, elsewhere a line every ten seconds.

A thread of its own writes, so that nothing is silent for longer than that, whatever the work is busy with; the work only
notes how far it is.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import Enum
from typing import Protocol, TextIO

from torchferry.report.safe import one_line
from torchferry.report.streams import columns, has_cursor, is_unicode, language_for
from torchferry.text import Language, Text, user_language
from torchferry.units import long_duration, size

SECONDS_BETWEEN_LINES = 10.0  # where a line can't be written over
_SECONDS_BETWEEN_CHANGES = 0.2
_SECONDS_UNTIL_SHOWN = 0.4  # on a terminal; what is over by then is not worth a flicker
_SECONDS_UNTIL_GUESSED = 3.0  # before that, nobody can say how long it takes
_SECONDS_TO_END = 1.0  # for the thread; it may hang in a pipe that nobody reads
_WIDTH = 24
_CLEAR = "\r\x1b[K"


class Show(Protocol):
    """Takes how many are done, of how many, and what comes now."""

    def __call__(self, done: int, count: int, what: str = "") -> None: ...


class Counted(Enum):
    """What is counted."""

    BYTES = Text("", "")
    FILES = Text("files", "个文件")
    CALLS = Text("calls", "个调用")
    TENSORS = Text("tensors", "个张量")
    STEPS = Text("steps", "步")
    SOURCES = Text("source files", "个源文件")
    CHECKS = Text("checks", "项检查")
    TRIALS = Text("trials", "次尝试")
    ROWS = Text("rows", "行")


Look = Callable[[], tuple[int, int]]  # finds out how far a work is that does not say so: done, of how many
_OF = Text("{done} of {count}{unit}", "{done}/{count}{unit}")
_SO_FAR = Text("{done}{unit}", "{done}{unit}")
_TAKEN = Text("{time} so far", "已用 {time}")
_LEFT = Text("about {time} left", "约剩 {time}")


class LongTask:
    """One piece of long work under its name, from `start` to `stop`; tells how far it is while it goes on."""

    def __init__(
        self,
        name: Text,
        unit: Counted = Counted.FILES,
        stream: TextIO | None = None,
        language: Language | None = None,
        look: Look | None = None,
        *,
        is_told_at_once: bool = False,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._language = language_for(self._stream, language or user_language())
        self._name, self._unit, self._look = name, unit, look
        self._has_cursor = has_cursor(self._stream)
        self._is_told_at_once = is_told_at_once
        self._state = (0, 0, "")
        self._started = time.monotonic()
        self._over = threading.Event()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self, done: int, count: int, what: str = "") -> None:
        """Note how far it is; may be called as often as one likes. A count of 0 is not known."""
        self._state = (done, count, what)

    def start(self) -> None:
        """Begin to tell; a work within another one tells instead of it."""
        self._started = time.monotonic()
        _going_on.append(self)
        if self._is_told_at_once and not self._has_cursor:
            self._write(f"ferry: {self._say(self._name)}\n")
        self._thread = _thread_without_signals(self._tell)

    def stop(self) -> None:
        """Take the line from the terminal."""
        if self._thread is None:
            return
        self._over.set()
        self._thread.join(_SECONDS_TO_END)
        self._thread = None
        _going_on.remove(self)

    def __enter__(self) -> LongTask:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def say(self, line: str) -> None:
        """Print a line of its own between two looks at how far it is."""
        with self._writing:
            self._write(f"{_CLEAR if self._has_cursor else ''}{line}\n")

    def _tell(self) -> None:
        later = _SECONDS_BETWEEN_CHANGES if self._has_cursor else SECONDS_BETWEEN_LINES
        pause = _SECONDS_UNTIL_SHOWN if self._has_cursor else SECONDS_BETWEEN_LINES
        with suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            while not self._over.wait(pause):
                pause = later
                if _going_on[-1:] == [self]:
                    self._tell_now()
            if pause == later and self._has_cursor:
                self._write(_CLEAR)

    def _tell_now(self) -> None:
        if self._look is not None:
            self(*self._look())
        with self._writing:
            self._write(f"{_CLEAR}{self._line()}" if self._has_cursor else f"{self.sentence()}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def sentence(self) -> str:
        """How far it is, as a line of a log: `ferry: comparing: 12 of 102 calls, 10 s so far, about 75 s left`."""
        done, count, what = self._state
        share = f" ({done * 100 // count}%)" if count else ""
        told = (f"{self._done()}{share}", self._time(_TAKEN, self._taken()), self._left())
        comma = "，" if self._language == "zh" else ", "
        facts = comma.join(filter(None, (one_line(what), *told)))
        colon = "：" if self._language == "zh" else ": "
        return f"ferry: {self._say(self._name)}{colon}{facts}"

    def _line(self) -> str:
        """The same for a terminal, on which it may not be wider than a line: else it could not be written over."""
        done, count, what = self._state
        parts = [self._say(self._name)]
        if count:
            filled = min(_WIDTH * done // count, _WIDTH)
            full, empty = ("━", "·") if is_unicode(self._stream) else ("#", ".")
            parts.append(full * filled + empty * (_WIDTH - filled))
        parts += [self._done(), self._left() or long_duration(self._taken()), one_line(what)]
        return cut_to_width("  ".join(filter(None, parts)), columns(self._stream) - 1)

    def _done(self) -> str:
        done, count, _ = self._state
        if not done and not count:
            return ""
        written = size if self._unit is Counted.BYTES else "{:,}".format
        word = self._say(self._unit.value)
        values = {"done": written(done), "count": written(count), "unit": word and f" {word}"}
        return self._say((_OF if count else _SO_FAR).format(**values))

    def _taken(self) -> float:
        return time.monotonic() - self._started

    def _left(self) -> str:
        """The rest takes as long as what is done, if it is known how much of it there is."""
        done, count, _ = self._state
        taken = self._taken()
        if taken < _SECONDS_UNTIL_GUESSED or not 0 < done < count:
            return ""
        return self._time(_LEFT, taken * (count - done) / done)

    def _time(self, text: Text, seconds: float) -> str:
        return self._say(text.format(time=long_duration(seconds)))

    def _say(self, text: Text) -> str:
        return text.in_language(self._language)


class TaskBesideProgram(LongTask):
    """Tells how far it is only when a user's program has printed nothing for ten seconds, and in whole lines: the program
    has the streams."""

    def _tell(self) -> None:
        quiet_since = time.time()
        with suppress(OSError, ValueError):
            while not self._over.wait(min(1.0, SECONDS_BETWEEN_LINES)):
                if time.time() - max(_last_written(), quiet_since) < SECONDS_BETWEEN_LINES:
                    continue
                if self._look is not None:
                    self(*self._look())
                before = "\n" if self._stream.isatty() else ""  # the program may have left a line open
                self._write(f"{before}{self.sentence()}\n")
                quiet_since = max(time.time(), _last_written())


def _last_written() -> float:
    """When anybody has written to standard output or error, as far as the system knows: of files always, of pipes and
    terminals on most kernels, of terminals to the nearest eight seconds."""
    times = [0.0]
    for descriptor in (1, 2):
        with suppress(OSError):
            times.append(os.fstat(descriptor).st_mtime)
    return max(times)


def beside_program(
    name: Text, is_quiet: bool, language: Language | None = None, look: Look | None = None
) -> AbstractContextManager[LongTask | None]:
    """Around a user's program whose work takes longer than usual, as it is watched. `look` counts bytes."""
    return nullcontext() if is_quiet else TaskBesideProgram(name, Counted.BYTES, None, language, look)


# There is one terminal: the innermost work has it.
_going_on: list[LongTask] = []


def print_line(line: str) -> None:
    """A line on standard error; what says there how far a work is makes room for it."""
    if _going_on:
        _going_on[-1].say(line)
    else:
        print(line, file=sys.stderr, flush=True)


def long_task(
    name: Text,
    is_quiet: bool = False,
    unit: Counted = Counted.FILES,
    language: Language | None = None,
    look: Look | None = None,
) -> AbstractContextManager[LongTask | None]:
    """Name a long work while the block goes on; None if nothing is to be said, so that nobody counts in vain."""
    return nullcontext() if is_quiet else LongTask(name, unit, None, language, look)


def clear_line(stream: TextIO) -> None:
    """Take from a terminal what a process that has ended may have left on its line."""
    if has_cursor(stream):
        print(_CLEAR, end="", file=stream, flush=True)


def cut_to_width(text: str, width: int) -> str:
    """The beginning of a line that takes no more columns of a terminal."""
    used = 0
    for at, letter in enumerate(text):
        used += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if used > width:
            return text[:at]
    return text


def _thread_without_signals(work: Callable[[], None]) -> threading.Thread:
    """Whoever waits for signals does so in the main thread; none may be delivered to this one instead."""
    thread = threading.Thread(target=work, daemon=True)
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        thread.start()
        return thread
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread
