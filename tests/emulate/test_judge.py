"""The simulated device is judged by the vendor's own plugin, the layer by its migration: what differs has a reason."""

from __future__ import annotations

import pytest
from tools.judge.comparison import (
    CUDA_NAMES,
    DEVICES,
    Difference,
    Reason,
    Verdict,
    compare,
    known_reasons,
    unexplained,
)
from tools.judge.names import programs_of_names
from tools.judge.programs import programs
from tools.judge.tables import LANGUAGES, page_of, with_table

from torchferry.vendors.registry import get_vendor

ALIKE = Verdict(2, ())
DIFFERENT = Verdict(2, (Difference("a", "values", "1", "2"), Difference("b", "error", "x", "y")))
REASONS = {("a", "values"): Reason("because", "因为")}


BOTH = pytest.mark.parametrize("places", [DEVICES, CUDA_NAMES], ids=["devices", "names of CUDA"])


def test_a_difference_without_a_reason_and_a_reason_without_a_difference_are_told() -> None:
    assert unexplained(ALIKE, {}) == []
    assert unexplained(DIFFERENT, REASONS) == ["b: error differ, and reasons.toml does not say why"]
    assert unexplained(ALIKE, REASONS) == ["a: values do not differ any more; take the reason out"]
    assert unexplained(ALIKE, REASONS, is_whole=False) == []


@BOTH
def test_reasons_are_of_programs_that_there_are(places: tuple[str, str]) -> None:
    names = programs_of_names(get_vendor("ascend"), as_cuda=places == CUDA_NAMES)
    assert {program for program, _ in known_reasons(places)} <= {*programs(), *names}


def test_programs_that_differ_for_one_reason_are_one_row() -> None:
    verdict = Verdict(3, (*DIFFERENT.differences, Difference("c", "error", "x", "y")))
    page = "<!-- simulated judged: -->\n<!-- end -->"
    assert "| a | result |  |" not in with_table(page, verdict, "en", DEVICES)
    assert "a; b; c | result, error |" in with_table(page, verdict, "en", DEVICES)


@BOTH
@pytest.mark.usefixtures("emulation")
def test_every_difference_has_a_reason_and_stands_in_the_docs(places: tuple[str, str]) -> None:
    verdict = compare("ascend", places=places)
    assert verdict.programs > 280
    assert unexplained(verdict, known_reasons(places)) == []
    for language in LANGUAGES:
        page = page_of(language).read_text("utf-8")
        assert with_table(page, verdict, language, places) == page
