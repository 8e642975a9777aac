"""Huawei's own comparison, `msaccucmp`, on two of our records: it reads them, and its figures are ours."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.accuracy.file.making import HEADER, put
from tests.accuracy.native.comparing import compare_arrays
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, TensorRef

pytestmark = pytest.mark.long
PACKAGES = ("mindstudio-probe==26.2.0", "protobuf==4.25.8")
CACHE = Path(__file__).resolve().parents[3] / ".cache" / "msaccucmp-26.2.0"
TOLERANCE = 2e-6  # it prints six digits
COLUMNS = {
    "CosineSimilarity": "cosine",
    "MaxAbsoluteError": "max_abs",
    "RelativeEuclideanDistance": "relative_euclidean",
    "MeanAbsoluteError": "mean_abs",
    "RootMeanSquareError": "rms_error",
    "MaxRelativeError": "max_rel",
    "MeanRelativeError": "mean_rel",
}


@pytest.fixture(scope="module")
def peer() -> Path:
    """The folder with the package, and what it needs beside numpy and h5py."""
    if not (CACHE / "msprobe").is_dir():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(CACHE),
            *PACKAGES,
        ]
        subprocess.run(command, check=True, timeout=600)
    return CACHE


def _record(path: Path, device: str, error: float) -> None:
    torch.manual_seed(0)
    writer = RecordWriter(path, HEADER)
    dtypes = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64)
    for number in range(1, 31):
        dtype = dtypes[number % len(dtypes)]
        given = (torch.randn(6, 50) * 10).sign() * (1 + torch.rand(6, 50) * 100)
        answer = given * 2 + error * torch.randn(6, 50) * number
        tensors = [
            replace(put(writer, given.to(dtype), "input/self"), device=device),
            replace(put(writer, answer.to(dtype), "output/output_0"), device=device),
        ]
        operator = "aten::mul.Scalar" if number % 3 else "npu::npu_scale"
        arguments = (("self", TensorRef(0)), ("other", 2), ("out", None), ("dims", (1, 2)))
        writer.write(
            Call(
                number,
                operator,
                1,
                "forward",
                arguments=arguments,
                inputs=(tensors[0],),
                outputs=(tensors[1],),
            )
        )
    writer.close()


def test_its_figures_are_ours(peer: Path, tmp_path: Path) -> None:
    _record(tmp_path / "npu.h5", "npu:0", 1e-2)
    _record(tmp_path / "gpu.h5", "cuda:0", 0.0)
    script = peer / "msprobe" / "msaccucmp" / "msaccucmp.py"
    answer = tmp_path / "answer"
    answer.mkdir()
    command = [sys.executable, str(script), "compare", "-m", "npu.h5", "-g", "gpu.h5", "-out", str(answer)]
    environment = {**os.environ, "PYTHONPATH": str(peer)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    (table,) = answer.glob("*.csv")
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 60 and not any(row["CompareFailReason"] for row in rows)
    with open_record(tmp_path / "npu.h5") as mine, open_record(tmp_path / "gpu.h5") as golden:
        for row in rows:
            number = int(row["NPUDumpPath"].split("/")[2])
            which = 0 if "/input/" in row["NPUDumpPath"] else 1
            ours, theirs = (
                (record.calls[number - 1].inputs + record.calls[number - 1].outputs)[which]
                for record in (mine, golden)
            )
            metrics = compare_arrays(mine.array(ours), golden.array(theirs), ours.dtype, theirs.dtype)
            for column, figure in COLUMNS.items():
                wanted = getattr(metrics, figure)
                assert float(row[column]) == pytest.approx(wanted, rel=1e-4, abs=TOLERANCE), (
                    row,
                    figure,
                    wanted,
                )
