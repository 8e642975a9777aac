"""The simulated device is judged by the vendor's own plugin: what differs has a reason, and stands in the docs."""

from __future__ import annotations

from functools import cache

import pytest
from tools.judge.comparison import Difference, Reason, Verdict, compare, known_reasons, unexplained
from tools.judge.programs import programs
from tools.judge.tables import LANGUAGES, page_of, with_table

ALIKE = Verdict(2, ())
DIFFERENT = Verdict(2, (Difference("a", "values", "1", "2"), Difference("b", "error", "x", "y")))
REASONS = {("a", "values"): Reason("because", "因为")}


@cache
def _verdict() -> Verdict:
    return compare("ascend")


def test_a_difference_without_a_reason_and_a_reason_without_a_difference_are_told() -> None:
    assert unexplained(ALIKE, {}) == []
    assert unexplained(DIFFERENT, REASONS) == ["b: error differ, and reasons.toml does not say why"]
    assert unexplained(ALIKE, REASONS) == ["a: values do not differ any more; take the reason out"]
    assert unexplained(ALIKE, REASONS, is_whole=False) == []


def test_reasons_are_of_programs_that_there_are() -> None:
    assert {program for program, _ in known_reasons()} <= set(programs())


@pytest.mark.usefixtures("emulation")
def test_every_difference_of_the_simulated_device_has_a_reason() -> None:
    assert unexplained(_verdict(), known_reasons()) == []
    assert _verdict().programs > 100


@pytest.mark.usefixtures("emulation")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_docs_have_the_differences(language: str) -> None:
    page = page_of(language).read_text("utf-8")
    assert with_table(page, _verdict(), language) == page
