"""Places in the program: the function always, the line only where the source leaves no doubt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchferry.traces.places import Sources

ITEM = "<built-in method item of Tensor object at 0x7f0012345678>"
PROGRAM = """\
import torch

def main(rows):
    total = 0
    for row in rows:
        total += row.item()
    print(total); print(rows)
    return list(map(norm, rows))

class Model:
    def forward(self, x):
        def inner():
            return x.item()
        return inner() + (
            self.head(x)
            .item()
        )

    def head(self, x):
        return x
"""


def sources(folder: Path, text: str = PROGRAM) -> Sources:
    (folder / "train.py").write_text(text)
    trace = folder / "trace.json"
    trace.write_text("{}")
    os.utime(folder / "train.py", (1000, 1000))
    return Sources(trace, [folder])


def test_without_a_source_the_function_is_named(tmp_path: Path) -> None:
    known = Sources(tmp_path / "trace.json", [tmp_path])
    assert known.place("train.py(3): main", ITEM) == "train.py:3(main)"
    assert known.place("train.py(1): <module>") == "train.py:1(<module>)"
    assert known.place("torch/nn/modules/module.py(1770): _call_impl") == ""


@pytest.mark.parametrize(
    ("frame", "called", "place"),
    [
        ("train.py(3): main", ITEM, "train.py:6"),
        ("train.py(7): main", ITEM, "train.py:6"),  # it was running when the profiler began
        ("train.py(11): forward", "train.py(18): head", "train.py:15"),
        ("train.py(11): forward", ITEM, "train.py:16"),  # that of `inner` is a frame of its own
    ],
)
def test_the_only_call_that_fits_is_the_line(tmp_path: Path, frame: str, called: str, place: str) -> None:
    assert sources(tmp_path).place(frame, called) == place


@pytest.mark.parametrize(
    ("frame", "called"),
    [
        ("train.py(3): main", "<built-in function print>"),  # there are two
        ("train.py(3): main", "train.py(30): norm"),  # handed on, not called here
        (
            "train.py(3): main",
            "<built-in method cpu of Tensor object at 0x7f>",
        ),  # not there: by getattr, perhaps
        ("train.py(3): main", ""),  # Python itself is at work
        ("train.py(40): main", ITEM),  # no line of that function: another version of the file
        ("train.py(3): other", ITEM),
        ("train.py(5): <lambda>", ITEM),
    ],
)
def test_any_doubt_leaves_the_function(tmp_path: Path, frame: str, called: str) -> None:
    line, _, function = frame.removeprefix("train.py(").partition("): ")
    assert sources(tmp_path).place(frame, called) == f"train.py:{line}({function})"


def test_a_source_that_was_changed_since_is_not_looked_at(tmp_path: Path) -> None:
    known = sources(tmp_path)
    os.utime(tmp_path / "trace.json", (900, 900))
    assert known.place("train.py(3): main", ITEM) == "train.py:3(main)"


@pytest.mark.parametrize("text", ["def main(:\n", "\0", "x = " + "(" * 5000])
def test_a_source_that_is_none_is_not_looked_at(tmp_path: Path, text: str) -> None:
    assert sources(tmp_path, text).place("train.py(3): main", ITEM) == "train.py:3(main)"


def test_of_two_files_with_the_same_name_neither_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = sources(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(elsewhere)
    assert known.place("train.py(3): main", ITEM) == "train.py:3(main)"


def test_nothing_is_said_of_the_sources_style(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    known = sources(tmp_path, PROGRAM.replace("total = 0", "total = len('\\d') if 1 is 1 else 0"))
    assert known.place("train.py(3): main", ITEM) == "train.py:6"
    assert not recwarn.list
