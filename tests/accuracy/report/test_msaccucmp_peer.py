"""The CSV in the vendors' columns, held against what the vendors' own tool writes for the same two records."""

from __future__ import annotations

import csv
import io
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.accuracy.compare.records import MINE, write_network, zero_tail
from tests.accuracy.file.test_peer import peer  # noqa: F401 (a fixture)
from torchferry.accuracy.compare.comparing import compare_files
from torchferry.accuracy.report import REPORTS
from torchferry.accuracy.report.msaccucmp import ALGORITHMS

pytestmark = pytest.mark.long


def test_the_same_header_rows_and_figures(peer: Path, tmp_path: Path) -> None:  # noqa: F811
    golden = write_network(tmp_path / "gpu.h5", steps=2)
    mine = write_network(tmp_path / "npu.h5", MINE, {"aten::exp": zero_tail}, steps=2, noise=1e-3)
    answer = tmp_path / "answer"
    answer.mkdir()
    script = peer / "msprobe" / "msaccucmp" / "msaccucmp.py"
    command = [
        sys.executable,
        str(script),
        "compare",
        "-m",
        str(mine),
        "-g",
        str(golden),
        "-out",
        str(answer),
    ]
    environment = {**os.environ, "PYTHONPATH": str(peer)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    (table,) = answer.glob("*.csv")
    theirs = list(csv.DictReader(table.open()))
    text = REPORTS.render(compare_files(mine, golden), "msaccucmp").decode("utf-8")
    ours = list(csv.DictReader(io.StringIO(text)))
    assert list(ours[0]) == list(theirs[0])
    by_path = {row["NPUDumpPath"]: row for row in theirs}
    assert set(by_path) == {row["NPUDumpPath"] for row in ours} and len(ours) == len(theirs)
    for row in ours:
        for name, value in row.items():
            other = by_path[row["NPUDumpPath"]][name]
            assert value == other or (name in ALGORITHMS and _is_close(value, other)), (row, name, other)


def _is_close(one: str, other: str) -> bool:
    """It adds up in single precision."""
    numbers = [
        [float(part) for part in text.strip("()").replace("),(", ";").split(";")] for text in (one, other)
    ]
    return all(
        math.isclose(a, b, rel_tol=1e-4, abs_tol=2e-6 if len(numbers[0]) == 1 else 1.1e-3)
        for a, b in zip(*numbers, strict=True)
    )
