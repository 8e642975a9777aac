"""The compiled kernels, and statistics of tensors by them. The library is found in the cache, or compiled now; where that
can't be done, there is none."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.accuracy.model import ROW, Statistics
from torchferry.building import cache as build_cache
from torchferry.building.toolchain import find_compiler
from torchferry.errors import BuildError
from torchferry.files.user_folder import private_temporary_folder
from torchferry.text import Text

if TYPE_CHECKING:
    from typing_extensions import Buffer

SOURCES = Path(__file__).parent / "csrc"
# By the numbers that csrc/elements.h gives them; a complex number is two of its components.
DTYPES = (
    "bool", "uint8", "int8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int16", "uint16",
    "float16", "bfloat16", "int32", "uint32", "float32", "int64", "uint64", "float64",
)  # fmt: skip
COMPONENTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
NUMBERS = {name: number for number, name in enumerate(DTYPES)} | {
    name: DTYPES.index(component) for name, component in COMPONENTS.items()
}

# Results must not depend on the machine: no contraction into fused operations, no reordering.
_FLAGS = (
    "-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-fPIC", "-shared", "-w",
)  # fmt: skip
_FOR_THIS_CPU = "-march=native"  # not every compiler knows it
_COMPILER_SECONDS = 300


@functools.cache
def library(is_for_short_calls: bool = False) -> ctypes.CDLL | None:
    """The kernels. Short calls let no other threads of Python run: that would cost more than they take."""
    path = _path()
    with suppress(OSError):
        return (ctypes.PyDLL if is_for_short_calls else ctypes.CDLL)(str(path)) if path else None
    return None


@functools.cache
def _path() -> Path | None:
    """Where the library is. Any failure means None: what it does can be done without it."""
    if sys.platform != "linux":
        return None
    try:
        name = f"{platform.machine()}-{_digest()}.so"
        found = build_cache.folder("native") / name
        if found.is_file() and build_cache.is_safe_to_load(found):
            build_cache.mark_used(found)
            return found
        return _built(_writable_folder() / name)
    except (OSError, BuildError, subprocess.SubprocessError):
        return None


def _digest() -> str:
    """What tells libraries apart: their sources, flags, what this CPU can do."""
    digest = hashlib.sha256("\0".join(_FLAGS).encode())
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + source.read_bytes())
    digest.update(_cpu().encode())
    return digest.hexdigest()[:20]


def _cpu() -> str:
    """The name and abilities of the first CPU: code compiled for them may crash on another."""
    wanted = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first = file.read().partition("\n\n")[0]
        return "\n".join(line for line in first.splitlines() if line.startswith(wanted))
    return platform.processor()


def _writable_folder() -> Path:
    """The cache, or a folder of this user alone where the cache can't be written to."""
    cache = build_cache.folder("native")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            if build_cache.is_safe_to_load(cache):
                return cache
    except OSError:
        pass
    return private_temporary_folder()


def _built(path: Path) -> Path:
    """Processes that ask at the same time wait for the first one's work; without locks, each does it."""
    try:
        with build_cache.locked(path.with_suffix(".lock"), lambda: None):
            return path if path.is_file() else _compile(find_compiler(), path)
    except BuildError:
        return _compile(find_compiler(), path)


def _compile(compiler: tuple[str, ...], path: Path) -> Path:
    """The finished file appears at once."""
    descriptor, aside = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=".new", dir=path.parent)
    os.close(descriptor)
    try:
        try:
            _run(compiler, _FOR_THIS_CPU, "-o", aside)
        except subprocess.CalledProcessError:
            _run(compiler, "-o", aside)
        os.chmod(aside, 0o755)
        os.replace(aside, path)
    finally:
        with suppress(OSError):
            os.unlink(aside)
    return path


def _run(compiler: tuple[str, ...], *arguments: str) -> None:
    sources = map(str, sorted(SOURCES.glob("*.cpp")))
    # What a program has set for itself (preloaded libraries, say) is no business of the compiler.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    command = [*compiler, *_FLAGS, *sources, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=_COMPILER_SECONDS, env=environment)


# Statistics of tensors in the memory of the host: one pass, compiled where there is a compiler.
#
# Complex numbers are taken as pairs of real ones: `count` is then twice the number of elements.

CHECKSUM_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = (1 << 64) - 1
SHORT = 1 << 14  # elements that are done before another thread of Python could have started

Kernel = Callable[[int, int, int, int], object]  # address, number of the dtype, count, row


def statistics_into(address: int, dtype: str, count: int, row: int) -> None:
    """Write the statistics of dense memory of the host into the 72 bytes at `row`."""
    short, long = kernels()
    number = NUMBERS[dtype]
    if dtype in COMPONENTS:
        count *= 2
    (short if count <= SHORT else long)(address, number, count, row)


def statistics_of(address: int, dtype: str, count: int) -> Statistics:
    """The statistics of dense memory of the host."""
    row = ctypes.create_string_buffer(ROW.size)
    statistics_into(address, dtype, count, ctypes.addressof(row))
    return decode(row)


def mixed_checksum(products: int, words: int, nbytes: int) -> int:
    """The checksum of so many bytes, of the two sums over their words, as csrc/statistics.cpp mixes it."""
    products, words = products & _WORD, words & _WORD
    mixed = ((products ^ products >> 29) * _FIRST + words * _SECOND + nbytes * CHECKSUM_STEP) & _WORD
    mixed = ((mixed ^ mixed >> 30) * _FIRST) & _WORD
    return mixed ^ mixed >> 31


def decode(row: Buffer) -> Statistics:
    """The statistics in 72 bytes."""
    return Statistics(*ROW.unpack_from(row))


@functools.cache
def kernels() -> tuple[Kernel, Kernel]:
    """What does the work: for short tensors, and for long ones."""
    short, long = library(is_for_short_calls=True), library()
    if short is None or long is None:
        try:
            from torchferry.accuracy.native.standin import statistics_at
        except ModuleNotFoundError:
            raise BuildError(
                Text(
                    "tensor statistics need a C++ compiler or numpy, and neither is installed; install one of them",
                    "计算张量统计值需要 C++ 编译器或 numpy，两者均未安装；请安装其中之一",
                )
            ) from None
        return statistics_at, statistics_at
    functions = (short.torchferry_statistics, long.torchferry_statistics)
    for function in functions:
        function.argtypes = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p)
        function.restype = None
    return functions
