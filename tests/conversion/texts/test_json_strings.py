"""String literals inside JSON text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchferry.conversion.texts.notebook_file import JsonString, differences

WRITTEN = [
    r"plain",
    r"a\"b\\c\n",
    r"\u4e2d\/中",
    r"\ud83d\ude00x\u0041",
    "é\\t\U0001f600",
    r"\ud83d alone",
    "",
]


def literal(raw: str) -> JsonString:
    return JsonString(0, len(raw) + 2, raw, json.loads(f'"{raw}"'))


@pytest.mark.parametrize("raw", WRITTEN)
def test_every_character_is_found_where_it_is_written(raw: str) -> None:
    string = literal(raw)
    for index, character in enumerate(string.value):
        written = f'"{raw}"'[string.position(index) : string.position(index + 1)]
        assert json.loads(f'"{written}"') == character
    assert string.position(len(string.value)) == len(raw) + 1


def test_what_is_not_replaced_keeps_its_spelling() -> None:
    string = literal(r"\u0061\/b\n")
    assert string.rewritten([(2, 3, 'é"')], ascii_only=True) == r"\u0061\/\u00e9\"\n"
    assert string.rewritten([(2, 3, 'é"')], ascii_only=False) == r"\u0061\/é\"\n"
    assert string.rewritten([], ascii_only=True) == string.raw


@given(st.sampled_from(WRITTEN), st.text(max_size=12), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_rewritten_literal_reads_as_the_new_text(raw: str, new: str, ascii_only: bool) -> None:
    string = literal(raw)
    again = string.rewritten(differences(string.value, new), ascii_only)
    assert json.loads(f'"{again}"') == new


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("same", "same", []),
        ("x.cuda()", "x.npu()", [(2, 3, "np"), (4, 6, "")]),
        ("", "new", [(0, 0, "new")]),
        ("aa", "aaa", [(2, 2, "a")]),
    ],
)
def test_differences(old: str, new: str, expected: list[tuple[int, int, str]]) -> None:
    assert differences(old, new) == expected


def test_a_long_line_is_replaced_between_its_first_and_last_difference() -> None:
    old, new = "a" + "x" * 3000 + "b", "a" + "y" * 3000 + "b"
    assert differences(old, new) == [(1, 3001, "y" * 3000)]
