"""The vendors' columns and formulas, held against a plain rendering of these formulas with numpy."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.accuracy.compare.records import GOLDEN, MINE, Writing, write_network, zero_tail
from torchferry.accuracy.compare.comparing import compare_files
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.report import REPORTS
from torchferry.accuracy.report.msaccucmp import ALGORITHMS, COLUMNS, Blocks, figures_of


def figures(mine: Any, golden: Any, dtype: str = "float32") -> dict[str, str]:
    arrays = [np.asarray(each, dtype).reshape(-1) for each in (mine, golden)]
    return figures_of(Blocks(*arrays, dtype, dtype), is_scalar=False, paths=("/a", "/b"))[0]


def plainly(x: Any, y: Any) -> dict[str, float]:
    """The formulas as they are written down."""
    with np.errstate(invalid="ignore"):
        relative = np.where(np.abs(y) > np.finfo(float).eps, np.abs(x / y - 1), 0)
    p, q = (
        np.maximum((each - each.min()) / (each.max() - each.min()), np.finfo(np.float32).eps)
        for each in (x, y)
    )
    p, q = p / p.sum(), q / q.sum()
    return {
        "CosineSimilarity": float((x / np.linalg.norm(x) * (y / np.linalg.norm(y))).sum()),
        "MaxAbsoluteError": float(np.abs(x - y).max()),
        "AccumulatedRelativeError": float(relative.sum()),
        "RelativeEuclideanDistance": math.sqrt(((x - y) ** 2).sum() / (y**2).sum()),
        "KullbackLeiblerDivergence": float((p * np.log(p / q)).sum()),
        "MeanAbsoluteError": float(np.abs(x - y).mean()),
        "RootMeanSquareError": math.sqrt(((x - y) ** 2).mean()),
        "MaxRelativeError": float(relative.max()),
        "MeanRelativeError": float(relative.mean()),
    }


def test_the_formulas_over_several_blocks() -> None:
    source = np.random.default_rng(0)
    y = source.normal(size=600_000).astype("float32")
    x = (y * (1 + 0.01 * source.normal(size=y.size))).astype("float32")
    y[::7] = x[::7] = 0
    found = figures(x, y)
    for name, value in plainly(x.astype(float), y.astype(float)).items():
        assert float(found[name]) == pytest.approx(value, rel=1e-6, abs=1e-6), name
    assert found[
        "StandardDeviation"
    ] == f"({'0.000;' if abs(x.mean()) < 1e-3 else f'{x.mean():.3f};'}{x.std():.3f})," + (
        f"({'0.000;' if abs(y.mean()) < 1e-3 else f'{y.mean():.3f};'}{y.std():.3f})"
    )


def test_zeros_are_as_that_tool_has_them() -> None:
    """Relative figures are 0 where golden is 0: ours say more, and these columns are not ours."""
    found = figures([1e6, 1e6], [0.0, 0.0])
    assert found["MaxRelativeError"] == found["RelativeEuclideanDistance"] == "0.000000"
    assert found["CosineSimilarity"] == "NaN"
    assert figures([0.0, 0.0], [0.0, 0.0])["CosineSimilarity"] == "1.0"


def test_nan_is_nan() -> None:
    found = figures([math.nan, 1.0], [1.0, 1.0])
    assert {found[name] for name in ("MaxAbsoluteError", "MeanAbsoluteError", "RootMeanSquareError")} == {
        "nan"
    }


def test_half_precision() -> None:
    assert figures([1.0, 2.0], [1.0, 4.0], "float16")["MaxAbsoluteError"] == "2.000000"
    bits = np.array([0x3F80, 0x4000], "uint16")  # 1 and 2 in bfloat16
    found, _ = figures_of(
        Blocks(bits, bits[::-1], "bfloat16", "bfloat16"), is_scalar=False, paths=("/a", "/b")
    )
    assert found["MaxAbsoluteError"] == "1.000000"


def rows(mine: Path, golden: Path) -> list[dict[str, str]]:
    text = REPORTS.render(compare_files(mine, golden), "msaccucmp").decode("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def test_two_records(tmp_path: Path) -> None:
    golden = write_network(tmp_path / "gpu.h5")
    mine = write_network(tmp_path / "npu.h5", MINE, {"aten::relu": zero_tail}, extra=True)
    found = rows(mine, golden)
    assert tuple(found[0]) == COLUMNS
    relu = [row for row in found if row["NPUDump"] == "relu"]
    assert [row["NPUDumpPath"] for row in relu] == ["/relu/2/input/self", "/relu/2/output/output_0"]
    assert [row["GroundTruthPath"] for row in relu] == ["/relu/2/input/self", "/relu/2/output/output_0"]
    assert (relu[1]["DataType"], relu[1]["Shape"], relu[1]["Index"]) == ("float32", "[16,32]", "2")
    with open_record(mine) as ours, open_record(golden) as theirs:
        x, y = (each.array(each.calls[1].outputs[0]).astype(float) for each in (ours, theirs))
        for name, value in plainly(x, y).items():
            assert float(relu[1][name]) == pytest.approx(value, rel=1e-5, abs=1e-6), name
    extra = [row for row in found if row["NPUDump"] == "clone"]
    assert [(row["GroundTruthPath"], row["CompareFailReason"]) for row in extra] == [
        ("NaN", "No data match with op:clone in golden dump data.")
    ]
    second = [row for row in found if row["NPUDump"] == "mm" and row["Index"] == "4"]
    assert second[0]["GroundTruthPath"] == "/mm/3/input/self"


def test_tensors_that_lie_in_another_order(tmp_path: Path) -> None:
    """Elements of one index belong together, not those of one place in the file."""
    values = torch.arange(12.0).reshape(3, 4)
    for name, given in (("a.h5", values), ("b.h5", values.t().contiguous().t())):
        call = Writing(tmp_path / name, GOLDEN)
        call("aten::relu", given)
        call.close()
    assert {row["MaxAbsoluteError"] for row in rows(tmp_path / "a.h5", tmp_path / "b.h5")} == {"0.000000"}


def test_a_call_that_golden_has_alone_comes_last(tmp_path: Path) -> None:
    for name, operators in (("a.h5", ["aten::relu"]), ("b.h5", ["aten::exp", "aten::relu"])):
        call = Writing(tmp_path / name, GOLDEN)
        for operator in operators:
            call(operator, torch.ones(4))
        call.close()
    last = rows(tmp_path / "a.h5", tmp_path / "b.h5")[-1]
    assert (last["Index"], last["NPUDumpPath"], last["GroundTruthPath"]) == ("2", "NaN", "/exp/1")
    assert all(last[name] == "NaN" for name in ALGORITHMS)
