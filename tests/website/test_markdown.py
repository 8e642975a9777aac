"""Markdown of the repository becomes Markdown that MkDocs reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.website.markdown import Site, as_mkdocs

ROOT = Path(__file__).parents[2]
PAGES = frozenset(
    {
        "how-to/run.md",
        "how-to/prove.md",
        "rules/index.md",
        "rules/TF105.md",
        "schemas/a.json",
        "images/scan.svg",
    }
)
SITE = Site(PAGES, ROOT, "en")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("[proofs](prove.md#read)", "[proofs](prove.md#read)", id="a page stays linked"),
        pytest.param("[x](https://pytorch.org)", "[x](https://pytorch.org)", id="so does another host"),
        pytest.param(
            "[schema](../../schemas/a.json)",
            "[schema](../schemas/a.json)",
            id="a file that is copied into the site",
        ),
        pytest.param("![scan](../../images/scan.svg)", "![scan](../images/scan.svg)", id="a picture"),
        pytest.param(
            "[changes](../../../CHANGELOG.md)", "changes (`CHANGELOG.md`)", id="a file of the repository"
        ),
        pytest.param(
            "[TF105](../rules/index.md)", "[TF105](../rules/TF105.md)", id="a rule has a page of its own"
        ),
        pytest.param(
            "see `TF105`", "see [`TF105`](../rules/TF105.md)", id="the name of a rule becomes a link"
        ),
        pytest.param("`# ferry: ignore[TF105]`", "`# ferry: ignore[TF105]`", id="not in longer code"),
        pytest.param("`TF999`", "`TF999`", id="not one that does not exist"),
        pytest.param("| `a \\| b` | c \\| d |", "| `a | b` | c \\| d |", id="a bar in code in a table"),
        pytest.param("Text:\n- one\n- two", "Text:\n\n- one\n- two", id="a list after a paragraph"),
        pytest.param("1. one\n2. two", "1. one\n2. two", id="a list stays together"),
        pytest.param(
            "```console runnable exit=1\n$ ls [a](b)\n```",
            "```console\n$ ls [a](b)\n```",
            id="code keeps all but its marks",
        ),
    ],
)
def test_what_becomes_of_a_page(before: str, after: str) -> None:
    assert as_mkdocs(before, "how-to/run.md", SITE) == after


def test_files_of_the_repository_are_linked_where_its_address_is_known() -> None:
    site = Site(PAGES, ROOT, "en", "https://example.org/tree")
    assert (
        as_mkdocs("[x](../../../README.md#a)", "how-to/run.md", site)
        == "[x](https://example.org/tree/README.md#a)"
    )


def test_a_link_to_nothing_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/en/how-to/gone\.md"):
        as_mkdocs("[x](gone.md)", "how-to/run.md", SITE)
