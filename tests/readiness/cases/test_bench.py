"""The process in which cases run, when a case takes it down or does not return."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchferry.readiness.cases.bench import Bench
from torchferry.readiness.cases.model import CaseVerdict
from torchferry.readiness.cases.writing import library

IMPORTS = """
from __future__ import annotations
import contextlib, copy, dataclasses, importlib, math, unittest
from typing import Any
import torch
from torch import Tensor
"""
# what every case holds, and this one's operator, which computes nothing
LIBRARY = f"""{IMPORTS}{library()}
def operator(): return None
def inputs(): return [], {{}}
def forward(*_, **__): return {{}}
def backward(*_, **__): return {{}}
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(os.environ, 1.0, "The operator {operator} is on the CPU") as bench:
        yield bench


def _file(folder: Path, test: str) -> Path:
    path = folder / "test_it.py"
    path.write_text(LIBRARY + f"def test_forward():\n    {test}\n")
    return path


def test_outcomes(bench: Bench, tmp_path: Path) -> None:
    assert bench.run(_file(tmp_path, "pass")).kind is CaseVerdict.EQUAL
    differs = bench.run(_file(tmp_path, "raise ResultMismatchError('output: the strides differ: 3')"))
    assert (differs.kind, differs.aspect) == (CaseVerdict.DIFFERS, "strides")
    raises = bench.run(_file(tmp_path, "raise ValueError('\\n first \\n second')"))
    assert (raises.kind, raises.check, raises.message) == (
        CaseVerdict.RAISES,
        "test_forward",
        "ValueError: first",
    )
    skipped = bench.run(_file(tmp_path, "raise unittest.SkipTest('nothing here')"))
    assert (skipped.kind, skipped.message) == (CaseVerdict.NO_DEVICE, "nothing here")
    asks = bench.run(
        _file(tmp_path, "input('which? ')")
    )  # what the process is asked is not the case's to read
    assert (asks.kind, asks.message) == (CaseVerdict.RAISES, "EOFError: EOF when reading a line")
    assert bench.probe(_file(tmp_path, "pass")).error == ""
    (tmp_path / "test_it.py").write_text("1 / 0")
    assert bench.probe(tmp_path / "test_it.py").error == "ZeroDivisionError: division by zero"
    assert bench.try_out(tmp_path / "test_it.py").kind is CaseVerdict.INVALID


def test_warnings_of_a_plugin_that_falls_back(bench: Bench, tmp_path: Path) -> None:
    test = "import warnings; warnings.warn('The operator aten::foo is on the CPU now')"
    outcome = bench.run(_file(tmp_path, test))
    assert (outcome.kind, outcome.operators) == (CaseVerdict.FALLS_BACK, ("aten::foo",))


def test_death_and_silence(bench: Bench, tmp_path: Path) -> None:
    died = bench.run(_file(tmp_path, "import os, sys; print('bad', file=sys.stderr, flush=True); os.abort()"))
    assert (died.kind, died.message) == (CaseVerdict.CRASHES, "ended by SIGABRT: bad")
    assert bench.run(_file(tmp_path, "pass")).kind is CaseVerdict.EQUAL  # in a new process
    silent = bench.run(_file(tmp_path, "import time; time.sleep(1000)"))
    assert (silent.kind, silent.message) == (CaseVerdict.HANGS, "no answer after 1 seconds")
