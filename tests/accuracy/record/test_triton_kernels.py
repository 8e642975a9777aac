"""The kernels themselves, by Triton's interpreter, on memory of the host: every kind of elements gives the host's figures."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torchferry.accuracy.model import ROW, SIZES
from torchferry.accuracy.native.library import DTYPES, decode, statistics_into
from torchferry.accuracy.record import fused_statistics

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".cache" / "triton"
REQUIREMENT = "triton==3.6.0"


@pytest.mark.long
def test_kernels_find_what_the_host_finds() -> None:
    if not (FOLDER / "triton").is_dir():
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(FOLDER),
            REQUIREMENT,
        ]
        if subprocess.run(pip, check=False).returncode:
            pytest.skip(f"{REQUIREMENT} can't be fetched")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": f"{FOLDER}:{ROOT}"}
    command = [sys.executable, "-m", "tests.accuracy.record.test_triton_kernels"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [name for name, is_alike in found.items() if not is_alike] == []
    assert len(found) == 2 * len(DTYPES)


def _is_alike(kind: int, programs: int) -> bool:
    from torchferry.accuracy.record import triton_kernels as kernels

    size, sample = SIZES[DTYPES[kind]], fused_statistics._sample(kind)
    numbers = sample.numel() // size
    first, nothing = kernels.BEYOND, (kernels.BEYOND,) * 4
    table = torch.tensor([sample.data_ptr(), numbers * size, 0, programs, numbers, kind])
    left, row = (torch.zeros(count * kernels.COLUMNS, dtype=torch.int64) for count in (programs, 1))
    kernels.sum_up[(programs, 1)](*nothing, first + kind, first, table, left, kind, size)
    kernels.write_rows[(1, 1)](first, table, left, row)
    expected = ctypes.create_string_buffer(ROW.size)
    statistics_into(sample.data_ptr(), DTYPES[kind], numbers, ctypes.addressof(expected))
    found = ctypes.string_at(row.data_ptr(), ROW.size)
    return fused_statistics._are_alike(decode(expected), decode(found))


if __name__ == "__main__":
    answers = {f"{name} {n}": _is_alike(kind, n) for kind, name in enumerate(DTYPES) for n in (1, 3)}
    print(json.dumps(answers))
