"""Edits at byte positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchferry.source.edits import Edit, EditSet, Rewriting, apply_edits


@pytest.mark.parametrize(
    ("edits", "after"),
    [
        pytest.param([], "0123456789", id="none"),
        pytest.param([Edit(2, 4, "x")], "01x456789", id="replace"),
        pytest.param([Edit(2, 4, "")], "01456789", id="delete"),
        pytest.param([Edit(0, 0, "x")], "x0123456789", id="insert at the start"),
        pytest.param([Edit(10, 10, "x")], "0123456789x", id="insert at the end"),
        pytest.param([Edit(5, 6, "b"), Edit(1, 2, "a")], "0a234b6789", id="given in any order"),
        pytest.param([Edit(1, 2, "a"), Edit(2, 3, "b")], "0ab3456789", id="side by side"),
        pytest.param([Edit(1, 2, "a"), Edit(1, 2, "a")], "0a23456789", id="equal ones once"),
        pytest.param([Edit(4, 4, "+"), Edit(4, 6, "x")], "0123+x6789", id="insert before a replacement"),
        pytest.param([Edit(3, 4, "设备")], "012设备456789", id="text that is longer in bytes"),
    ],
)
def test_apply(edits: list[Edit], after: str) -> None:
    assert apply_edits(b"0123456789", edits).decode() == after


def test_positions_are_bytes() -> None:
    data = "设 = cuda".encode()
    start = data.index(b"cuda")
    assert apply_edits(data, [Edit(start, start + 4, "npu")]).decode() == "设 = npu"


def test_overlap_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap at byte 3"):
        apply_edits(b"0123456789", [Edit(1, 4, "a"), Edit(3, 5, "b")])


@pytest.mark.parametrize(
    ("edit", "others", "expected"),
    [
        pytest.param(Edit(1, 3, "x"), [], False, id="alone"),
        pytest.param(Edit(1, 3, "x"), [Edit(1, 3, "x")], False, id="the same edit"),
        pytest.param(Edit(1, 3, "x"), [Edit(1, 3, "y")], True, id="the same place, another text"),
        pytest.param(Edit(1, 3, "x"), [Edit(3, 5, "y")], False, id="side by side"),
        pytest.param(Edit(1, 3, "x"), [Edit(2, 5, "y")], True, id="overlap"),
        pytest.param(Edit(1, 9, "x"), [Edit(2, 5, "y")], True, id="around"),
        pytest.param(Edit(3, 3, "x"), [Edit(3, 3, "y")], True, id="two insertions in one place"),
        pytest.param(Edit(3, 3, "x"), [Edit(1, 5, "y")], True, id="an insertion inside"),
        pytest.param(Edit(3, 3, "x"), [Edit(3, 5, "y")], False, id="an insertion at the start"),
        pytest.param(Edit(5, 5, "x"), [Edit(3, 5, "y")], False, id="an insertion at the end"),
    ],
)
def test_conflicts(edit: Edit, others: list[Edit], expected: bool) -> None:
    assert edits_of(others).conflicts(edit) is expected
    assert any(edits_of([edit]).conflicts(other) for other in others) is expected


def edits_of(edits: list[Edit]) -> EditSet:
    found = EditSet()
    found.add(edits)
    return found


_EDITS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 4), st.text("xy", max_size=3)).map(
        lambda item: Edit(item[0], min(item[0] + item[1], 20), item[2])
    ),
    max_size=6,
)


@given(_EDITS)
def test_edits_without_conflict_apply_in_any_order(edits: list[Edit]) -> None:
    accepted: list[Edit] = []
    known = EditSet()
    for edit in edits:
        if not known.conflicts(edit):
            known.add([edit])
            accepted.append(edit)
    data = bytes(range(65, 85))
    after = apply_edits(data, accepted)
    assert apply_edits(data, accepted[::-1]) == after
    kept = [byte for index, byte in enumerate(data) if not any(e.start <= index < e.end for e in accepted)]
    assert [byte for byte in after if byte not in b"xy"] == kept


def test_edits_of_edited_text_are_told_as_edits_of_the_first() -> None:
    """a pass writes a line, the rules change a word in it and one beside it"""
    first = b"model = Net().cuda()\nloss.backward()\n"
    rewriting = Rewriting(first)
    rewriting.apply([Edit(21, 21, "torch.cuda.synchronize()\n")])
    place = rewriting.data.index(b"torch.cuda") + len("torch.")
    rewriting.apply([Edit(14, 18, "npu"), Edit(place, place + 4, "npu")])
    assert rewriting.data == b"model = Net().npu()\ntorch.npu.synchronize()\nloss.backward()\n"
    assert rewriting.edits() == [Edit(14, 18, "npu"), Edit(21, 21, "torch.npu.synchronize()\n")]
    assert apply_edits(first, rewriting.edits()) == rewriting.data
    assert rewriting.origin(rewriting.data.index(b"synchronize")) == 21
    assert rewriting.origin(rewriting.data.index(b"loss")) == 21
    assert rewriting.origin(len(rewriting.data)) == len(first)


@given(st.data())
def test_any_two_sets_of_edits_make_one(data: st.DataObject) -> None:
    first = data.draw(st.text("ab\n", max_size=20)).encode()
    rewriting = Rewriting(first)
    for _ in range(2):
        rewriting.apply(data.draw(_edits_of(rewriting.data)))
    assert apply_edits(first, rewriting.edits()) == rewriting.data


def _edits_of(text: bytes) -> st.SearchStrategy[list[Edit]]:
    places = st.lists(st.integers(0, len(text)), max_size=6, unique=True).map(sorted)
    words = st.text("xyz", max_size=3)
    return places.flatmap(
        lambda found: st.tuples(
            *(
                words.map(lambda word, pair=pair: Edit(*pair, word))
                for pair in zip(found[::2], found[1::2], strict=False)
            )
        ).map(list)
    )
