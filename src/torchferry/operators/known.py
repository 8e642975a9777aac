"""PyTorch's operator list, whether PyTorch is installed or not."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from torchferry.operators.native_functions import (
    LIST_IN_TORCHGEN,
    TABLE,
    OperatorFacts,
    load_operator_facts,
    read_native_functions,
)

SHIPPED_TABLE = Path(__file__).parent / TABLE
SHIPPED_RELEASE = "2.13"  # the PyTorch of which the table was made


def operator_facts(torch_version: str = "") -> Mapping[str, OperatorFacts]:
    """Every operator of a PyTorch, by name without `aten::`; "": of the installed one.

    Other releases than the installed one and that of our own table are not at hand: the nearest stands in for them.
    """
    installed = installed_release()
    wanted = release(torch_version) or installed or SHIPPED_RELEASE
    if installed and (wanted == installed or wanted != SHIPPED_RELEASE):
        return _installed_list()
    return _shipped_list()


def installed_list_file() -> Path | None:
    """PyTorch's own list on this machine; None without PyTorch."""
    folder = _package_folder("torchgen")
    file = folder / LIST_IN_TORCHGEN if folder else None
    return file if file and file.is_file() else None


@cache
def installed_release() -> str:
    """2.13; "" without PyTorch. Does not import it: that takes seconds."""
    folder = _package_folder("torch")
    if folder is None or installed_list_file() is None:
        return ""
    try:
        text = (folder / "version.py").read_text("utf-8")
    except OSError:
        return ""
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return release(found[1]) if found else ""


def release(version: str) -> str:
    """2.13 of 2.13.0+cpu; "" if it is no version."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else ""


@cache
def _installed_list() -> Mapping[str, OperatorFacts]:
    file = installed_list_file()
    assert file is not None
    return read_native_functions(file.read_text("utf-8"))


@cache
def _shipped_list() -> Mapping[str, OperatorFacts]:
    return load_operator_facts(SHIPPED_TABLE)


def _package_folder(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None
