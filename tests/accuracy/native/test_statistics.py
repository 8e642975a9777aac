"""Statistics of memory: against a slow reference; the checksum feels every change, and is one for both implementations."""

from __future__ import annotations

import ctypes
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.accuracy.native import reference
from tests.accuracy.native.reference import COMPLEX, FLOATS, INTEGERS
from tests.accuracy.native.test_differences import bits
from torchferry.accuracy.model import ROW, SIZES, Statistics
from torchferry.accuracy.native import standin
from torchferry.accuracy.native.library import NUMBERS, SHORT, decode, statistics_into, statistics_of

pytestmark = pytest.mark.usefixtures("implementation")
relaxed = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def statistics(data: bytes, dtype: str) -> Statistics:
    """Of bytes at an odd address."""
    memory = ctypes.create_string_buffer(b"." + data)
    return statistics_of(ctypes.addressof(memory) + 1, dtype, len(data) // SIZES[dtype])


def assert_as_the_reference(data: bytes, dtype: str) -> None:
    found, wanted = asdict(statistics(data, dtype)), reference.statistics(data, dtype)
    del found["checksum"]
    for name, value in found.items():
        absolute = 1e-12 * wanted["rms"] if name == "mean" else 0.0
        assert value == pytest.approx(wanted[name], rel=1e-12, abs=absolute), name


@relaxed
@given(data=st.data(), dtype=st.sampled_from((*FLOATS, *INTEGERS, *COMPLEX)), count=st.integers(0, 40))
def test_any_bits(data: st.DataObject, dtype: str, count: int) -> None:
    assert_as_the_reference(data.draw(bits(dtype, count)), dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_every_pattern(dtype: str) -> None:
    """256 of one byte, or as many of those that fill more."""
    size = SIZES[dtype]
    data = b"".join(bytes([(7 * byte) % 256] * (size - 1) + [byte]) for byte in range(256))
    if dtype == "bool":
        data = bytes(byte % 2 for byte in range(256))
    assert_as_the_reference(data, dtype)


@pytest.mark.parametrize("scale", [1e300, 1.7e308, 1e-300, 5e-324])
def test_huge_and_tiny_numbers(scale: float) -> None:
    values = np.random.default_rng(1).uniform(-1, 1, 3001) * scale
    assert_as_the_reference(values.tobytes(), "float64")
    mixed = np.concatenate([values, [1.0, np.inf, np.nan], np.zeros(2048)])
    assert_as_the_reference(mixed.tobytes(), "float64")


@pytest.mark.parametrize(
    "implementation", ["compiled"], indirect=True
)  # numpy computes as the program has set it
def test_denormal_numbers_are_seen_where_the_program_ignores_them() -> None:
    values = np.full(64, 1e-40, np.float32)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor always computes with denormal numbers")
    try:
        found = statistics_of(values.ctypes.data, "float32", values.size)
        ignored = (torch.ones(1) * 1e-40).item() == 0
    finally:
        torch.set_flush_denormal(False)
    assert (found.zeros, found.minimum > 0) == (0, True)
    assert ignored, "the program's own setting was changed"


def test_a_row_is_written_where_it_is_asked_for() -> None:
    values = np.array([1.0, -3.0, np.nan, np.inf, 0.0], np.float32)
    rows = ctypes.create_string_buffer(3 * ROW.size)
    statistics_into(values.ctypes.data, "float32", 5, ctypes.addressof(rows) + ROW.size)
    assert rows.raw[: ROW.size] == rows.raw[-ROW.size :] == bytes(ROW.size)
    found = decode(memoryview(rows)[ROW.size : 2 * ROW.size])
    assert (found.count, found.nans, found.infinities, found.zeros) == (5, 1, 1, 1)
    assert (found.minimum, found.maximum, found.largest) == (-3.0, 1.0, 3.0)
    assert found.norm == pytest.approx(10**0.5)


@relaxed
@given(data=st.binary(min_size=1, max_size=600))
def test_the_checksum_is_the_same_in_both(data: bytes) -> None:
    assert statistics(data, "uint8").checksum == standin.checksum(np.frombuffer(data, np.uint8))


def test_the_checksum_of_much() -> None:
    values = np.random.default_rng(2).standard_normal(3 * SHORT + 1).astype(np.float32)
    row = ctypes.create_string_buffer(ROW.size)
    standin.statistics_at(values.ctypes.data, NUMBERS["float32"], values.size, ctypes.addressof(row))
    assert statistics_of(values.ctypes.data, "float32", values.size).checksum == decode(row).checksum


@relaxed
@given(data=st.data(), values=st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=200))
def test_the_checksum_feels_exchanged_elements(data: st.DataObject, values: list[int]) -> None:
    places = st.integers(0, len(values) - 1)
    one, other = data.draw(places), data.draw(places)
    changed = list(values)
    changed[one], changed[other] = changed[other], changed[one]
    sums = [statistics(np.array(each, np.uint32).tobytes(), "uint32").checksum for each in (values, changed)]
    assert (sums[0] == sums[1]) == (values == changed)


@relaxed
@given(data=st.binary(min_size=1, max_size=300), at=st.integers(0, 8 * 300))
def test_the_checksum_feels_a_single_bit(data: bytes, at: int) -> None:
    at %= 8 * len(data)
    changed = bytearray(data)
    changed[at // 8] ^= 1 << at % 8
    assert statistics(data, "uint8").checksum != statistics(bytes(changed), "uint8").checksum
    assert statistics(data, "uint8").checksum != statistics(data + b"\0", "uint8").checksum


def test_no_two_of_many_checksums_are_equal() -> None:
    """One-hot vectors, constants, ramps: what bad sums confuse."""
    vectors = [row.tobytes() for row in np.eye(257, dtype=np.float32)]
    vectors += [np.full(257, value, np.float32).tobytes() for value in range(1, 200)]
    vectors += [np.roll(np.arange(257, dtype=np.float32), shift).tobytes() for shift in range(257)]
    assert len({statistics(each, "float32").checksum for each in vectors}) == len(vectors)
