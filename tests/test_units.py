"""Figures as people read them."""

from __future__ import annotations

import pytest

from torchferry import units


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (43_201_331, "41.2 MiB"), (32 << 30, "32.0 GiB"),
        (5 << 40, "5.0 TiB"), (2**54, "16384.0 TiB"), (10**400, "1125899906842624.0 TiB"),
    ],
)  # fmt: skip
def test_sizes(count: int, shown: str) -> None:
    assert units.size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0"), (1.254, "1.25 s"), (0.0123, "12.3 ms"), (0.000456, "456 µs"), (7.8e-9, "7.80 ns"),
        (0.9999, "1.00 s"), (1234.5, "1,234 s"),
    ],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert units.duration(seconds) == shown


def test_differences_of_times() -> None:
    assert [units.signed_duration(each) for each in (-0.5, 0.0, 0.5)] == ["−500 ms", "0", "+500 ms"]


@pytest.mark.parametrize(
    ("share", "is_all", "shown"),
    [
        (1.0, True, "100%"), (1.0, False, "> 99.9%"), (0.99999, False, "99.9%"), (0.9829, False, "98.2%"),
        (0.7, False, "70.0%"), (0.0004, False, "< 0.1%"), (0.0, False, "0.0%"),
    ],
)  # fmt: skip
def test_a_share_of_all_never_looks_better_than_it_is(share: float, is_all: bool, shown: str) -> None:
    assert units.percent_of_all(share, is_all) == shown


def test_shares_are_rounded_but_not_to_nothing() -> None:
    assert [units.percent(each) for each in (0.98299, 0.0, 0.0004, 1.0)] == [
        "98.3%",
        "0.0%",
        "< 0.1%",
        "100.0%",
    ]


def test_numbers() -> None:
    values = (0.0, 1.5, float("nan"), float("-inf"), 1 / 3)
    assert list(map(units.number, values)) == ["0", "1.5", "nan", "-inf", "0.3333333"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"), (0.25, "0.25"), (3e-8, "3.0e-08"), (12345.0, "1.2e+04"), (float("inf"), "inf"),
        (float("nan"), "–"), (None, "–"),
    ],
)  # fmt: skip
def test_short_numbers(value: float | None, shown: str) -> None:
    assert units.short_number(value) == shown


def test_names_of_signals() -> None:
    assert (units.signal_name(11), units.signal_name(99)) == ("SIGSEGV", "signal 99")
