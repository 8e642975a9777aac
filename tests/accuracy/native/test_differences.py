"""Two tensors, held against each other: figures against a slow reference, and figures that must not lie."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.accuracy.native import reference
from tests.accuracy.native.comparing import compare_arrays, marks_of, picture
from tests.accuracy.native.reference import COMPLEX, FLOATS, INTEGERS
from torchferry.accuracy.file.contents import numpy_dtype
from torchferry.accuracy.model import SIZES, Metrics
from torchferry.accuracy.native.differences import PIECE

pytestmark = pytest.mark.usefixtures("implementation")
relaxed = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def figures(mine: bytes, golden: bytes, mine_dtype: str, golden_dtype: str) -> Metrics:
    """Of bytes at an odd address."""
    arrays = (
        np.frombuffer(b"." + data, numpy_dtype(dtype), offset=1)
        for data, dtype in ((mine, mine_dtype), (golden, golden_dtype))
    )
    return compare_arrays(*arrays, mine_dtype, golden_dtype)


def assert_as_the_reference(mine: bytes, golden: bytes, mine_dtype: str, golden_dtype: str) -> None:
    found = asdict(figures(mine, golden, mine_dtype, golden_dtype))
    wanted = reference.differences(mine, golden, mine_dtype, golden_dtype)
    size = wanted.get("mean_abs", 0.0)
    for name, value in found.items():
        if name not in wanted:
            assert math.isnan(value), name
        elif isinstance(value, int):
            assert value == wanted[name], name
        elif name == "cosine":
            assert value == pytest.approx(wanted[name], abs=1e-12), name
        elif name == "rms_rel" and value == math.inf:
            assert wanted[name] > 1e150  # squares of relative errors are not scaled
        elif not value == wanted[name] == math.inf:
            # sums of numbers that cancel are as exact as the numbers are large
            absolute = 1e-12 * size if name == "bias" else 0.0
            assert value == pytest.approx(wanted[name], rel=1e-12, abs=absolute, nan_ok=True), name


def bits(dtype: str, count: int) -> st.SearchStrategy[bytes]:
    """Any patterns, with zeros, ones, infinities and the smallest numbers among them."""
    size = SIZES[dtype]
    special = [bytes(size), b"\xff" * size, b"\0" * (size - 1) + b"\x80", b"\1" + bytes(size - 1)]
    if dtype == "bool":
        element = st.sampled_from([b"\0", b"\1"])
    else:
        if dtype in FLOATS and not dtype.startswith("float8"):
            infinity = {
                "float16": "007c",
                "bfloat16": "807f",
                "float32": "0000807f",
                "float64": "000000000000f07f",
            }
            special.append(bytes.fromhex(infinity[dtype]))
        element = st.one_of(st.sampled_from(special), st.binary(min_size=size, max_size=size))
    return st.lists(element, min_size=count, max_size=count).map(b"".join)


@relaxed
@given(data=st.data(), dtype=st.sampled_from((*FLOATS, *INTEGERS, *COMPLEX)), count=st.integers(0, 40))
def test_any_bits(data: st.DataObject, dtype: str, count: int) -> None:
    mine = data.draw(bits(dtype, count))
    golden = data.draw(st.one_of(bits(dtype, count), st.just(mine)))
    assert_as_the_reference(mine, golden, dtype, dtype)


@relaxed
@given(
    data=st.data(),
    mine_dtype=st.sampled_from(FLOATS + INTEGERS),
    golden_dtype=st.sampled_from(FLOATS + INTEGERS),
    count=st.integers(1, 20),
)
def test_two_dtypes(data: st.DataObject, mine_dtype: str, golden_dtype: str, count: int) -> None:
    if "int64" in mine_dtype + golden_dtype and mine_dtype != golden_dtype:
        return  # 64-bit integers are rounded to double precision when they meet another dtype
    assert_as_the_reference(
        data.draw(bits(mine_dtype, count)), data.draw(bits(golden_dtype, count)), mine_dtype, golden_dtype
    )


@pytest.mark.parametrize("count", [1, 7, 8, 9, 15, 63, 64, 65, 2048, 2049])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_sizes_around_those_of_vectors_and_blocks(dtype: str, count: int) -> None:
    generator = np.random.default_rng(count)
    golden = (generator.standard_normal(count) * 100).astype(dtype)
    mine = (golden + generator.standard_normal(count) * 3).astype(dtype)
    assert_as_the_reference(mine.tobytes(), golden.tobytes(), dtype, dtype)


@pytest.mark.parametrize("scale", [1e300, 1.7e308, 1e-300, 5e-324, 1e-160, 1e160])
def test_norms_of_huge_and_tiny_numbers(scale: float) -> None:
    generator = np.random.default_rng(1)
    golden = generator.uniform(-1, 1, 2100) * scale
    mine = np.where(np.arange(2100) % 3 == 0, -golden, golden)
    assert_as_the_reference(mine.tobytes(), golden.tobytes(), "float64", "float64")


def test_huge_against_tiny() -> None:
    golden = np.array([1e-300, 1e-200, 3.0] * 700)
    mine = np.array([1e300, 1e-200, 3.0] * 700)
    assert_as_the_reference(mine.tobytes(), golden.tobytes(), "float64", "float64")
    found = compare_arrays(np.full(10, 1e300), np.full(10, 1e-300), "float64", "float64")
    assert found.cosine == pytest.approx(1) and found.max_rel == math.inf


def test_golden_zero_is_no_excuse() -> None:
    found = compare_arrays(np.full(4, 1e6, np.float32), np.zeros(4, np.float32), "float32", "float32")
    assert (found.wrong_zeros, found.equal, found.within_thousandth) == (4, 0, 0.0)
    assert found.relative_euclidean == math.inf and found.max_abs == 1e6 and found.cosine == 0.0
    assert math.isnan(found.max_rel)


def test_the_double_is_not_the_same() -> None:
    golden = np.linspace(1, 2, 50, dtype=np.float32)
    found = compare_arrays(2 * golden, golden, "float32", "float32")
    assert found.cosine == pytest.approx(1)
    assert found.relative_euclidean == found.max_rel == found.mean_rel == pytest.approx(1)


def test_zeros_against_zeros_are_equal() -> None:
    found = compare_arrays(np.zeros(9, np.float32), -np.zeros(9, np.float32), "float32", "float32")
    assert found.is_equal and found.worst == -1
    assert (found.cosine, found.relative_euclidean, found.max_rel, found.max_ulp) == (1.0, 0.0, 0.0, 0.0)
    assert found.within_thousandth == 1.0


def test_nothing_is_written() -> None:
    golden = np.arange(1, 10, dtype=np.float32)
    found = compare_arrays(np.zeros(9, np.float32), golden, "float32", "float32")
    assert (found.cosine, found.relative_euclidean, found.zeros) == (0.0, 1.0, 9)


def test_nothing_finite_gives_no_figures() -> None:
    golden = np.full(5, np.nan, np.float32)
    found = compare_arrays(golden, golden.copy(), "float32", "float32")
    assert found.is_equal and found.nans == 5 and math.isnan(found.max_abs) and math.isnan(found.cosine)


def test_an_element_of_another_kind_is_the_worst() -> None:
    golden = np.zeros(5000, np.float32)
    mine = golden.copy()
    mine[100], mine[3000] = 1e30, np.inf
    found = compare_arrays(mine, golden, "float32", "float32")
    assert (found.worst, found.wrong_nonfinite, found.wrong_zeros, found.infinities) == (3000, 1, 1, 1)
    assert found.max_abs == pytest.approx(1e30)


def test_neighbours_among_large_integers() -> None:
    golden = np.arange(1 << 60, (1 << 60) + 9)
    found = compare_arrays(golden + 1, golden, "int64", "int64")
    assert (found.equal, found.max_abs, found.bias, found.max_ulp) == (0, 1.0, 1.0, 1.0)
    assert picture(golden + 1, golden, "int64", "int64") == "#########"


def test_units_of_the_last_place() -> None:
    golden = np.array([1.0, 2.0, 0.0, -1.0], np.float32)
    mine = np.nextafter(golden, np.float32(9))
    assert compare_arrays(mine, golden, "float32", "float32").max_ulp == 1
    halves = np.array([1.0 + 2.0**-9, 1.0], np.float32)  # half a unit of float16 is rounded away
    assert compare_arrays(halves, np.ones(2, np.float16), "float32", "float16").max_ulp == 2


def test_pieces_count_positions_from_the_start() -> None:
    golden = np.zeros(PIECE + 100, np.uint8)
    mine = golden.copy()
    mine[PIECE + 7] = 9
    found = compare_arrays(mine, golden, "uint8", "uint8")
    assert (found.worst, found.count, found.equal) == (PIECE + 7, PIECE + 100, PIECE + 99)


def test_lengths_must_fit() -> None:
    with pytest.raises(ValueError, match="3 elements"):
        compare_arrays(np.zeros(3), np.zeros(4), "float64", "float64")


def test_pictures() -> None:
    golden = np.ones(3200, np.float32)
    mine = golden.copy()
    assert picture(mine, golden, "float32", "float32") == "." * 32
    mine += 1e-6  # rounding
    assert picture(mine, golden, "float32", "float32") == "." * 32
    mine[1600:] = 0
    assert picture(mine, golden, "float32", "float32") == "." * 16 + "#" * 16
    mine[:800:2] = 7
    mine[900] = np.nan
    assert picture(mine, golden, "float32", "float32") == "5" * 8 + ".!" + "." * 6 + "#" * 16
    assert picture(mine[1598:1602], golden[:4], "float32", "float32") == "..##"
    assert picture(mine[:0], golden[:0], "float32", "float32") == ""


def test_small_elements_are_judged_by_the_size_of_all() -> None:
    golden = np.array([1.0, 1e-9, 1.0, -1.0], np.float32)
    mine = golden + np.float32(1e-8)
    assert not marks_of(mine, golden, "float32", "float32").any()
    assert marks_of(mine[1:2], golden[1:2], "float32", "float32").tolist() == [1]


def test_marks_of_complex_numbers_are_of_elements() -> None:
    golden = np.array([1 + 1j, 2 + 2j, 3 + 3j], np.complex64)
    mine = np.array([1 + 1j, 2 + 9j, np.nan + 3j], np.complex64)
    assert marks_of(mine, golden, "complex64", "complex64").tolist() == [0, 1, 2]
    assert compare_arrays(mine, golden, "complex64", "complex64").worst == 2
