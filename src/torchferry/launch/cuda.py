"""Whether this machine has a GPU that its PyTorch can use, told without importing torch, which takes seconds."""

from __future__ import annotations

import ctypes
import re
from importlib.util import find_spec
from pathlib import Path

_BUILT_FOR = re.compile(r"^(cuda|hip)\b[^=\n]*=\s*['\"]", re.MULTILINE)
_DRIVERS = {"cuda": ("libcuda.so.1", "cuInit", "cuDeviceGetCount"), "hip": ("libamdhip64.so", "hipInit", "hipGetDeviceCount")}  # fmt: skip


def has_gpu() -> bool:
    """As torch.cuda.is_available() would answer, the variables that hide GPUs included."""
    return any(_count_of(*_DRIVERS[name]) for name in _built_for())


def _built_for() -> list[str]:
    spec = find_spec("torch")
    version = Path(spec.origin).with_name("version.py") if spec is not None and spec.origin else None
    if version is None or not version.is_file():
        return []
    return _BUILT_FOR.findall(version.read_text("utf-8", "replace"))


def _count_of(library: str, initialise: str, count: str) -> int:
    try:
        driver = ctypes.CDLL(library)
        found = ctypes.c_int(0)
        ready = getattr(driver, initialise)(0) == 0 and getattr(driver, count)(ctypes.byref(found)) == 0
    except (OSError, AttributeError):
        return 0
    return found.value if ready else 0
