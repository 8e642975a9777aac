"""`msprobe compare` as a drop-in: its options, old and new, and the columns of its result table."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import openpyxl
import pytest

from tests.accuracy.file.test_api_dump import EXAMPLES, REAL
from tests.accuracy.file.test_dumps import write_program
from torchferry.cli import msprobe

START = [
    "NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape", "NPU Requires_grad",
    "Bench Requires_grad",
]  # fmt: skip
SIDES = [f"{side} {name}" for side in ("NPU", "Bench") for name in ("max", "min", "mean", "l2norm")]
FIGURES = [
    "Cosine",
    "EucDist",
    "MaxAbsErr",
    "MaxRelativeErr",
    "One Thousandth Err Ratio",
    "Five Thousandths Err Ratio",
]
NPU, GPU = EXAMPLES / "npu", EXAMPLES / "gpu"


def rows_of(folder: Path) -> list[dict[str, str]]:
    (file,) = folder.glob("compare_result_*.csv")
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def test_the_new_spelling_writes_the_new_columns(tmp_path: Path) -> None:
    assert msprobe.main(["compare", "-tp", str(NPU), "-gp", str(GPU), "-o", str(tmp_path)]) == 1
    rows = rows_of(tmp_path)
    end = ["Requires_grad Consistent", "Result", "Err_message", "NPU_Stack_Info", "Data_name"]
    assert list(rows[0]) == [*START, *FIGURES, *SIDES, *end]
    by_name = {row["NPU Name"]: row for row in rows}
    wrong = by_name["Functional.linear.0.forward.output.0"]
    assert (wrong["Bench Name"], wrong["Result"]) == ("Functional.linear.0.forward.output.0", "error")
    assert float(wrong["Cosine"]) < 1 and float(wrong["MaxAbsErr"]) > 0.1
    right = by_name["Functional.gelu.0.forward.output.0"]
    assert [right[name] for name in ("Cosine", "EucDist", "Result")] == ["1.0", "0.0", "pass"]
    scalar = by_name["Functional.conv2d.0.forward.input.3.0"]
    assert (scalar["NPU Dtype"], scalar["NPU max"], scalar["Cosine"]) == ("<class 'int'>", "1", "unsupported")
    assert "train.py:20" in by_name["Functional.linear.0.forward.input.0"]["NPU_Stack_Info"]


def test_statistics_have_differences_in_percent(tmp_path: Path) -> None:
    mine, golden = REAL / "statistics_26.2", REAL / "statistics_8.1"
    assert (
        msprobe.main(
            ["compare", "--target_path", str(mine), "--golden_path", str(golden), "-o", str(tmp_path)]
        )
        == 0
    )
    rows = rows_of(tmp_path)
    assert list(rows[0])[8:16] == [
        "Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
        "NormRelativeErr",
    ]  # fmt: skip
    wrong = next(row for row in rows if row["NPU Name"] == "Functional.linear.0.forward.output.0")
    assert wrong["Result"] == "warning" and wrong["NormRelativeErr"].endswith("%")
    lonely = next(row for row in rows if row["NPU Name"] == "N/A")
    assert lonely["Bench Name"].startswith("Tensor.") and lonely["Err_message"]


def test_checksums_have_their_own_columns(tmp_path: Path) -> None:
    same = str(REAL / "md5_26.2")
    assert msprobe.main(["compare", "-tp", same, "-gp", same, "-o", str(tmp_path)]) == 0
    row = rows_of(tmp_path)[0]
    assert row["NPU MD5"] == row["BENCH MD5"] != "" and "Cosine" not in row


def test_the_old_spelling_reads_compare_json_and_writes_a_workbook(tmp_path: Path) -> None:
    places = {"npu_path": next(NPU.rglob("dump.json")), "bench_path": next(GPU.rglob("dump.json"))}
    config = tmp_path / "compare.json"
    config.write_text(json.dumps({key: str(value) for key, value in places.items()}))
    words = ["-f", "pytorch", "compare", "-i", str(config), "-o", str(tmp_path / "out"), "-s", "-c", "-f"]
    assert msprobe.main(words) == 1
    (file,) = (tmp_path / "out").glob("compare_result_*.xlsx")
    heading, *rows = openpyxl.load_workbook(file)["Sheet1"].values
    assert heading[-4] == "Accuracy Reached or Not" and heading[0] == "NPU Name"
    verdicts = {row[0]: row[-4] for row in rows}
    assert verdicts["Functional.linear.0.forward.output.0"] == "No"
    assert verdicts["Functional.gelu.0.forward.output.0"] == "Yes"


def test_dump_files_of_the_runtime_go_the_other_way(tmp_path: Path) -> None:
    golden = write_program(tmp_path / "golden")
    words = [
        "compare",
        "-m",
        "offline_data",
        "-tp",
        str(golden),
        "-gp",
        str(golden),
        "-o",
        str(tmp_path / "out"),
    ]
    assert msprobe.main(words) == 0
    assert len(list((tmp_path / "out").glob("result_*.csv"))) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-tp", str(GPU)], "name both with -tp and -gp"),
        (["-tp", str(GPU), "-gp", str(GPU), "-lm", "map.yaml"], "mapping files are not supported"),
        (["-i", str(GPU / "no.json")], "can't be read"),
        (["-i", str(EXAMPLES / "train.py")], 'must be {"npu_path"'),
        (["-tp", str(GPU), "-gp", str(GPU), "-o", str(EXAMPLES / "train.py")], "can't be made"),
        (["-tp", str(GPU), "-gp", str(EXAMPLES / "none")], "no such file"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert msprobe.main(["compare", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
