"""The reading of sampled sites says what the documents claim of it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

READING = Path(__file__).parent / "readings" / "deep_sites.csv"
VERDICTS = {"right", "doubtful", "wrong"}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with READING.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sites(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if row["draw"] != "files"]


def share_of_right(rows: list[dict[str, str]], column: str) -> float:
    return sum(row[column] == "right" for row in rows) / len(rows)


def test_enough_sites_of_enough_projects(rows: list[dict[str, str]]) -> None:
    assert len({(row["project"], row["place"], row["rule"], row["target"]) for row in sites(rows)}) >= 200
    assert len({row["project"] for row in sites(rows)}) >= 8
    assert len({row["target"] for row in sites(rows)}) == 7


def test_every_row_was_judged(rows: list[dict[str, str]]) -> None:
    for row in rows:
        assert {row["verdict"], row["after_fix"]} <= VERDICTS, row["place"]
        assert row["reason"], row["place"]


def test_98_of_100_decisions_are_right(rows: list[dict[str, str]]) -> None:
    assert share_of_right(sites(rows), "after_fix") >= 0.98
    assert share_of_right(rows, "after_fix") >= 0.98


def test_the_first_reading_is_kept(rows: list[dict[str, str]]) -> None:
    assert share_of_right(rows, "verdict") < share_of_right(rows, "after_fix")
