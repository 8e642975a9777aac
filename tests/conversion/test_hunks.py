"""Hunks reproduce the new text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversion.rewriting import run
from torchferry.conversion.verify import make_hunks
from torchferry.outcome import Hunk
from torchferry.source.decode import DecodedText
from torchferry.source.edits import Edit, apply_edits
from torchferry.source.module import PythonModule


def lines(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text)


def applied(old: str, hunks: tuple[Hunk, ...]) -> list[str]:
    """The new lines, from the old ones and the hunks."""
    before, after = lines(old), []
    position = 0
    for hunk in hunks:
        after += before[position : hunk.old_start - 1]
        assert hunk.new_start == len(after) + 1
        position = hunk.old_start - 1
        for tag, left, right in hunk.lines:
            if tag != "+":
                assert before[position] == left
                position += 1
            if tag != "-":
                after.append(right)
            assert (left == right) is (tag == " ") or tag in "+-"
    return after + before[position:]


def from_edits(old: str, edits: list[Edit]) -> tuple[str, tuple[Hunk, ...]]:
    module = PythonModule(DecodedText(old, "utf-8"))
    new = apply_edits(module.data, edits).decode()
    return new, make_hunks(module, PythonModule(DecodedText(new, "utf-8")), edits)


_OLD = "".join(f"name_{number:02} = 0\n" for number in range(40))
_WIDTH = len("name_00 = 0\n")


def at(line: int) -> int:
    return line * _WIDTH


@pytest.mark.parametrize(
    ("edits", "count"),
    [
        pytest.param([Edit(at(5), at(5) + 4, "x")], 1, id="one line"),
        pytest.param([Edit(at(5), at(5), "new = 1\n")], 1, id="a line added"),
        pytest.param([Edit(at(5), at(6), "")], 1, id="a line removed"),
        pytest.param([Edit(at(5), at(8), "a = 1\nb = 2\n")], 1, id="three lines as two"),
        pytest.param([Edit(at(5), at(5) + 4, "x"), Edit(at(9), at(9) + 4, "x")], 1, id="near each other"),
        pytest.param([Edit(at(5), at(5) + 4, "x"), Edit(at(30), at(30) + 4, "x")], 2, id="far apart"),
        pytest.param([Edit(0, 0, "new = 1\n"), Edit(at(30), at(30) + 4, "x")], 2, id="the second is shifted"),
        pytest.param([Edit(at(40), at(40), "new = 1\n")], 1, id="at the end"),
        pytest.param([Edit(at(40) - 1, at(40), "")], 1, id="the final newline goes"),
    ],
)
def test_edits(edits: list[Edit], count: int) -> None:
    new, hunks = from_edits(_OLD, edits)
    assert len(hunks) == count
    assert [line for line in applied(_OLD, hunks) if line] == [line for line in lines(new) if line]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_are_not_part_of_the_rows(newline: str) -> None:
    source = newline.join(["import torch", "x.cuda()", "y = 1", "z.cuda()"])
    conversion = run(source)
    assert conversion.new_text is not None
    assert applied(source, conversion.hunks) == lines(conversion.new_text)
    assert conversion.hunks[0].lines == (
        (" ", "import torch", "import torch"),
        ("+", "", "import torch_npu"),
        ("~", "x.cuda()", "x.npu()"),
        (" ", "y = 1", "y = 1"),
        ("~", "z.cuda()", "z.npu()"),
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["", "a = 1\n", "b = 1\nc = 2\n"])), max_size=6)
)
def test_any_edits_of_lines(changes: list[tuple[int, str]]) -> None:
    edits = [Edit(at(line), at(line + 1), text) for line, text in dict(changes).items()]
    new, hunks = from_edits(_OLD, edits)
    assert [line for line in applied(_OLD, hunks) if line] == [line for line in lines(new) if line]
