"""What is printed fits the stream: its width, its colours, its characters."""

from __future__ import annotations

import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from fcntl import ioctl
from typing import TextIO

import pytest

from torchferry.report.streams import (
    Styles,
    columns,
    drawn_in_ascii,
    language_for,
    never_fail,
    styles_of,
    write_text,
)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    master, slave = pty.openpty()
    with open(slave, "w") as stream:
        yield stream
    os.close(master)


def resize(terminal: TextIO, width: int) -> None:
    ioctl(terminal.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))


@pytest.mark.parametrize(("width", "used"), [(80, 80), (110, 110), (200, 110), (20, 40), (0, 100)])
def test_a_terminal_is_used_up_to_110_columns(width: int, used: int, terminal: TextIO) -> None:
    resize(terminal, width)
    assert columns(terminal) == used


@pytest.mark.parametrize(
    ("named", "used"), [("", 100), ("72", 72), ("500", 110), ("many", 100), ("-3", 100), ("0", 100)]
)
def test_a_pipe_is_100_columns_or_what_columns_says(
    named: str, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", named)
    assert columns(io.StringIO()) == used


@pytest.mark.parametrize(
    ("variables", "on_terminal", "on_pipe"),
    [
        pytest.param({}, Styles.COLORS, Styles.NONE, id="nothing said"),
        pytest.param({"NO_COLOR": "1"}, Styles.WEIGHTS, Styles.NONE, id="bold stays"),
        pytest.param({"NO_COLOR": ""}, Styles.COLORS, Styles.NONE, id="empty is not set"),
        pytest.param({"FORCE_COLOR": "1"}, Styles.COLORS, Styles.COLORS, id="forced"),
        pytest.param({"FORCE_COLOR": "0"}, Styles.NONE, Styles.NONE, id="forced off"),
        pytest.param({"TERM": "dumb"}, Styles.NONE, Styles.NONE, id="dumb"),
        pytest.param({"TERM": "dumb", "FORCE_COLOR": "1"}, Styles.COLORS, Styles.COLORS, id="forced on dumb"),
    ],
)
def test_colours(
    variables: dict[str, str],
    on_terminal: Styles,
    on_pipe: Styles,
    terminal: TextIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert styles_of(terminal) is on_terminal
    assert styles_of(io.StringIO()) is on_pipe
    assert styles_of(io.StringIO(), "always") is Styles.COLORS
    assert styles_of(terminal, "never") is Styles.NONE


def printed(text: str, encoding: str) -> str:
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding=encoding)
    write_text(stream, text)
    return data.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk", "big5", "shift_jis"])
def test_boxes_bars_and_arrows_become_ascii(encoding: str) -> None:
    assert printed("╭─ a → b ─╮\n│ ██░░ 1–2 ✓ │", encoding) == "+- a -> b -+\n| ##.. 1-2 + |"


def test_unicode_stays() -> None:
    text = "╭─ a → b ─╮ 中文"
    assert printed(text, "utf-8") == printed(text, "utf-16") == text


def test_what_becomes_longer_takes_the_room_behind_it() -> None:
    before = ["a…      1", "ab → c  2", "abcdef  3"]
    assert drawn_in_ascii("\n".join(before)).split("\n") == ["a...    1", "ab -> c 2", "abcdef  3"]


def test_letters_that_an_encoding_lacks_are_written_out() -> None:
    assert printed("data/数据.py", "latin-1") == "data/\\u6570\\u636e.py"
    assert printed("data/数据.py", "gbk") == "data/数据.py"


def test_plain_prints_do_not_fail_either() -> None:
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding="ascii")
    never_fail(stream)
    print("next → 数据 …", file=stream, flush=True)
    assert data.getvalue() == b"next -> \\u6570\\u636e ...\n"


@pytest.mark.parametrize(
    ("encoding", "language"), [("utf-8", "zh"), ("gbk", "zh"), ("latin-1", "en"), ("ascii", "en")]
)
def test_chinese_where_the_encoding_has_it(encoding: str, language: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert language_for(stream, "zh") == language
    assert language_for(stream, "en") == "en"


def test_a_command_is_not_broken_on_a_narrow_terminal() -> None:
    from torchferry.report.formats import Options
    from torchferry.report.terminal import Screen, plain

    screen = Screen(Options(width=40, terminal=True))
    screen.line(
        plain("words that are longer than the width of it are wrapped"), plain(f"ferry scan {'a' * 60}")
    )
    assert [len(line) for line in screen.text().splitlines()] == [39, 14, 71]
