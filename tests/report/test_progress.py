"""Long work says how far it is: on a terminal in one line that is gone at the end, elsewhere in a line now and then."""

from __future__ import annotations

import io
import os
import pty
import time
from collections.abc import Callable
from typing import TextIO

import pytest

from torchferry.report import progress
from torchferry.report.progress import (
    Counted,
    LongTask,
    TaskBesideProgram,
    cut_to_width,
    long_task,
    print_line,
)
from torchferry.text import Text

NAME = Text("comparing", "正在比较")
PATIENCE = 20.0  # seconds, for a thread on a busy machine


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_CHANGES", 0.01)
    monkeypatch.setattr(progress, "_SECONDS_UNTIL_SHOWN", 0.01)
    monkeypatch.setattr(progress, "_SECONDS_UNTIL_GUESSED", 0.0)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


class Terminal:
    """Standard error on a terminal of our own."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.master, slave = pty.openpty()
        self.stream: TextIO = open(slave, "w", encoding=encoding)  # noqa: SIM115 (closed below)
        self.encoding, self.seen = encoding, b""

    def read(self) -> str:
        os.set_blocking(self.master, False)
        try:
            while data := os.read(self.master, 1 << 16):
                self.seen += data
        except BlockingIOError:
            pass
        return self.seen.decode(self.encoding)

    def close(self) -> None:
        self.stream.close()
        os.close(self.master)


def test_a_pipe_gets_a_line_now_and_then() -> None:
    stream = io.StringIO()
    task = LongTask(NAME, Counted.CALLS, stream, "en")
    task(12, 102, "aten::mm")
    with task:
        until(lambda: stream.getvalue().count("\n") >= 2)
    first = stream.getvalue().splitlines()[0]
    assert first.startswith("ferry: comparing: aten::mm, 12 of 102 calls (11%), 0 s so far, about ")
    assert first.endswith(" left")
    assert "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()


def test_work_that_says_nothing_is_not_silent() -> None:
    stream = io.StringIO()
    with LongTask(NAME, Counted.CALLS, stream, "zh"):
        until(lambda: stream.getvalue().count("\n") >= 1)
    assert stream.getvalue().splitlines()[0] == "ferry: 正在比较：已用 0 s"


def test_sizes_are_written_as_sizes() -> None:
    task = LongTask(NAME, Counted.BYTES, io.StringIO(), "en")
    task(3 << 20, 6 << 20)
    assert "3.0 MiB of 6.0 MiB (50%)" in task.sentence()


def test_the_rest_takes_as_long_for_each_as_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, *[30.0] * 9])
    monkeypatch.setattr("torchferry.report.progress.time.monotonic", lambda: next(times))
    task = LongTask(NAME, Counted.CALLS, io.StringIO(), "en")
    task(1, 4)
    assert task.sentence() == "ferry: comparing: 1 of 4 calls (25%), 30 s so far, about 1 min 30 s left"


def test_a_look_finds_out_how_far_it_is() -> None:
    stream = io.StringIO()
    with LongTask(NAME, Counted.STEPS, stream, "en", look=lambda: (7, 0)):
        until(lambda: "\n" in stream.getvalue())
    assert "comparing: 7 steps, " in stream.getvalue()


def test_on_a_terminal_the_line_is_written_over_and_gone_at_the_end() -> None:
    terminal = Terminal()
    task = LongTask(NAME, Counted.CALLS, terminal.stream, "en")
    task(51, 102)
    with task:
        until(lambda: terminal.read().count("\r") >= 3)
    shown = terminal.read()
    terminal.close()
    assert "\r\x1b[Kcomparing  ━━━━━━━━━━━━············  51 of 102 calls  " in shown
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[K")


def test_a_terminal_that_is_not_utf8_gets_ascii_and_english() -> None:
    terminal = Terminal("latin-1")
    task = LongTask(NAME, Counted.CALLS, terminal.stream, "zh")
    task(51, 102)
    with task:
        until(lambda: terminal.read().count("\r") >= 2)
    shown = terminal.read()
    terminal.close()
    assert "comparing  ############............  51 of 102 calls" in shown
    assert shown.isascii()


def test_a_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    terminal = Terminal()
    task = LongTask(NAME, Counted.CALLS, terminal.stream, "zh")
    task(51, 102, "模块" * 80)
    with task:
        until(lambda: terminal.read().count("\r") >= 2)
    lines = terminal.read().split("\r\x1b[K")
    terminal.close()
    assert max(len(line) for line in lines) > 20
    assert all(cut_to_width(line, 49) == line for line in lines)


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    with LongTask(NAME, Counted.CALLS, terminal.stream, "en"):
        until(lambda: "\n" in terminal.read())
    assert "\x1b" not in terminal.read()
    terminal.close()


def test_a_remark_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal.stream)
    with LongTask(NAME, Counted.CALLS, terminal.stream, "en") as task:
        task(1, 2)
        until(lambda: "1 of 2" in terminal.read())
        print_line("found one")
        until(lambda: "found one" in terminal.read())
    shown = terminal.read()
    terminal.close()
    assert "\r\x1b[Kfound one\r\n" in shown


def test_work_within_work_tells_alone() -> None:
    outer, inner = io.StringIO(), io.StringIO()
    with (
        LongTask(Text("outside", "外"), stream=outer, language="en"),
        LongTask(Text("inside", "内"), stream=inner, language="en"),
    ):
        until(lambda: inner.getvalue().count("\n") >= 3)
        before = outer.getvalue().count("\n")
        seen = inner.getvalue().count("\n")
        until(lambda: inner.getvalue().count("\n") >= seen + 3)
        assert outer.getvalue().count("\n") == before


def test_a_quiet_command_counts_nothing() -> None:
    with long_task(NAME, is_quiet=True) as task:
        assert task is None


def test_a_reader_that_has_left_does_not_stop_the_work() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = open(writing, "w")  # noqa: SIM115 (its close fails)
    with LongTask(NAME, stream=stream):
        time.sleep(0.05)
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_beside_a_program_only_when_it_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the program prints, nothing is added to its output; when it stops, whole lines say that work goes on."""
    monkeypatch.setattr(progress, "_last_written", time.time)  # the program is printing
    stream = io.StringIO()
    with TaskBesideProgram(Text("recording", ""), Counted.BYTES, stream, "en", look=lambda: (3 << 20, 0)):
        time.sleep(0.2)
        assert stream.getvalue() == ""
        monkeypatch.setattr(progress, "_last_written", lambda: 0.0)
        until(lambda: stream.getvalue().count("\n") >= 2)
    assert stream.getvalue().splitlines()[0] == "ferry: recording: 3.0 MiB, 0 s so far"


def test_beside_a_program_no_line_is_written_over() -> None:
    terminal = Terminal()
    terminal.stream.write("epoch 1 ")  # the program has left its line open
    with TaskBesideProgram(Text("recording", ""), Counted.BYTES, terminal.stream, "en"):
        until(lambda: "so far" in terminal.read())
    shown = terminal.read()
    terminal.close()
    assert shown.startswith("epoch 1 \r\nferry: recording: 0 s so far\r\n")
    assert "\x1b" not in shown
