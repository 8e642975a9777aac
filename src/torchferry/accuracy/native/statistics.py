"""Statistics of tensors in the memory of the host: one pass, compiled where there is a compiler.

Complex numbers are taken as pairs of real ones: `count` is then twice the number of elements.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from torchferry.accuracy.model import Statistics
from torchferry.accuracy.native.library import COMPONENTS, NUMBERS, library, library_for_short_calls
from torchferry.errors import BuildError

if TYPE_CHECKING:
    from typing_extensions import Buffer

ROW = struct.Struct("=4Q4dQ")
SHORT = 1 << 14  # elements that are done before another thread of Python could have started

Kernel = Callable[[int, int, int, int], object]  # address, number of the dtype, count, row


def statistics_into(address: int, dtype: str, count: int, row: int) -> None:
    """Of dense memory of the host, into the 72 bytes at `row`."""
    short, long = kernels()
    number = NUMBERS[dtype]
    if dtype in COMPONENTS:
        count *= 2
    (short if count <= SHORT else long)(address, number, count, row)


def statistics_of(address: int, dtype: str, count: int) -> Statistics:
    """Of dense memory of the host."""
    row = ctypes.create_string_buffer(ROW.size)
    statistics_into(address, dtype, count, ctypes.addressof(row))
    return decode(row)


def decode(row: Buffer) -> Statistics:
    """The statistics in 72 bytes."""
    return Statistics(*ROW.unpack_from(row))


@functools.cache
def kernels() -> tuple[Kernel, Kernel]:
    """What does the work: for short tensors, and for long ones."""
    short, long = library_for_short_calls(), library()
    if short is None or long is None:
        return _standin(), _standin()
    functions = (short.torchferry_statistics, long.torchferry_statistics)
    for function in functions:
        function.argtypes = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p)
        function.restype = None
    return functions


def _standin() -> Kernel:
    try:
        from torchferry.accuracy.native.standin import statistics_at
    except ModuleNotFoundError:
        raise BuildError(
            "statistics of tensors need a C++ compiler or numpy, and neither is here; install one of them"
        ) from None
    return statistics_at
