"""Parts of large calls on several threads: the same answers, in the same order, and nothing left behind."""

from __future__ import annotations

import threading

import pytest

from torchferry.accuracy.judge.sharing import PartSharing


def test_answers_come_in_the_order_of_the_parts() -> None:
    with PartSharing(3) as sharing:
        assert list(sharing.map(lambda part: part * part, range(50))) == [part * part for part in range(50)]


def test_several_parts_are_worked_on_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)
    with PartSharing(2) as sharing:
        assert sorted(sharing.map(lambda part: meeting.wait() * 0 + part, range(2))) == [0, 1]


def test_parts_of_a_part_do_not_wait_for_threads_that_wait_for_them() -> None:
    with PartSharing(2) as sharing:

        def inner(part: int) -> int:
            return sum(sharing.map(lambda each: each + part, range(10)))

        assert list(sharing.map(inner, range(8))) == [45 + 10 * part for part in range(8)]


def test_one_thread_works_where_it_is_asked() -> None:
    here = threading.get_ident()
    with PartSharing(1) as sharing:
        assert set(sharing.map(lambda _: threading.get_ident(), range(3))) == {here}


def test_what_fails_is_told_and_the_rest_is_not_begun() -> None:
    begun: list[int] = []

    def work(part: int) -> int:
        begun.append(part)
        if part == 1:
            raise ValueError("part 1")
        return part

    with PartSharing(2) as sharing, pytest.raises(ValueError, match="part 1"):
        list(sharing.map(work, range(1000)))
    assert len(begun) < 20


def test_who_stops_asking_leaves_the_rest() -> None:
    begun: list[int] = []
    with PartSharing(2) as sharing:
        for found in sharing.map(lambda part: begun.append(part) or part, range(1000)):
            if found == 3:
                break
    assert len(begun) < 20
