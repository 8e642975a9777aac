"""JSON, CSV and workbooks hold what was found, whatever the names are."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.report.samples import EVIL, SAMPLES, faulty, hostile, large, statistical
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.report import REPORTS
from torchferry.accuracy.report.sheets import COLUMNS
from torchferry.errors import OutputError, ReportError
from torchferry.files.aside import write_whole
from torchferry.report.formats import Options


def rendered(format_name: str, comparisons: list[RankComparison], **options: Any) -> bytes:
    return REPORTS.render(comparisons, format_name, Options(**options))


def read_csv(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))


def sheets(data: bytes) -> dict[str, list[list[Any]]]:
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data))
    return {sheet.title: [[cell.value for cell in row] for row in sheet.iter_rows()] for sheet in book}


def test_json_has_the_verdict_and_all_figures() -> None:
    document = json.loads(rendered("json", faulty()))
    assert (document["format"], document["version"]) == ("torchferry-comparison", 1)
    (comparison,) = document["comparisons"]
    assert comparison["verdict"] == "fault" and comparison["culprit"] == 1
    assert comparison["said"]["en"].startswith("aten::relu computes wrong results")
    assert comparison["counts"] == {"normal": 2, "fault": 1, "inherited": 1, "suspicious": 1, "equal": 1}
    assert comparison["unmatched"] == {"mine": 0, "golden": 1}
    assert comparison["mine"]["path"] == "npu.h5" and comparison["golden"]["device"] == "cuda"
    pair = comparison["pairs"][comparison["culprit"]]
    assert pair["mine"]["operator"] == "aten::relu" and pair["sort"] == "tail" and pair["limit"] == 1.2e-7
    assert pair["outputs"][0]["metrics"]["max_abs"] == 0.25 and pair["outputs"][0]["picture"] == "......##"
    assert comparison["pairs"][-1]["mine"] is None


def test_json_names_what_it_has_no_numbers_for() -> None:
    (comparison,) = json.loads(rendered("json", statistical()))["comparisons"]
    assert comparison["curves"][0]["mine"] == [2.5, 2.4, "nan"]
    assert comparison["pairs"][1]["outputs"][0]["mine"]["statistics"]["rms"] == 1.5
    assert comparison["verdict"] == "suspicious"


@pytest.mark.parametrize("name", SAMPLES)
def test_json_is_json(name: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(rendered("json", SAMPLES[name]()), parse_constant=refuse)
    assert len(document["comparisons"]) == len(SAMPLES[name]())


def test_csv_has_a_row_for_each_tensor() -> None:
    rows = read_csv(rendered("csv", faulty()))
    relu = [row for row in rows if row["operator"] == "aten::relu"]
    assert [(row["side"], row["name"], row["max_abs"], row["verdict"]) for row in relu] == [
        ("input", "input/self", "0.0", "fault"),
        ("output", "output/output_0", "0.25", "fault"),
    ]
    assert relu[1]["shape"] == "16x32" and relu[1]["sort"] == "tail" and relu[1]["module"] == "layer1"
    lonely = [row for row in rows if row["golden_operator"] == "aten::sin"]
    assert [(row["operator"], row["verdict"], row["side"]) for row in lonely] == [("", "", "")]


def test_csv_of_statistics() -> None:
    row = read_csv(rendered("csv", statistical()))[-1]
    assert (row["rms_of_mine"], row["rms_of_golden"], row["max_abs"]) == ("1.5", "1.0", "")


def test_no_cell_is_a_formula() -> None:
    for row in read_csv(rendered("csv", hostile())):
        assert row["operator"].startswith("'=evil")
        assert all(cell is None or not cell.startswith("=") for cell in row.values())
    for rows in sheets(rendered("xlsx", hostile())).values():
        assert not any("\x1b" in cell for row in rows for cell in row if isinstance(cell, str))


def test_the_workbook() -> None:
    book = sheets(rendered("xlsx", faulty()))
    assert list(book) == ["Summary", "Operators", "Tensors"]
    assert ["Verdict", "aten::relu computes wrong results: wrong from some element to the end"] in book[
        "Summary"
    ]
    head, *rows = book["Operators"]
    relu = dict(zip(head, rows[1], strict=True))
    assert (relu["Operator"], relu["Verdict"], relu["Own error"], relu["Source"]) == (
        "aten::relu", "fault", 0.25, "train.py:32",
    )  # fmt: skip
    assert len(book["Tensors"]) == 1 + 2 * 5
    assert list(sheets(rendered("xlsx", faulty(), language="zh"))) == ["概要", "算子调用", "张量误差"]


def test_the_same_comparison_gives_the_same_workbook() -> None:
    assert rendered("xlsx", faulty()) == rendered("xlsx", faulty())


def test_reports_come_in_pieces() -> None:
    """One with many calls need not be in memory whole."""
    for format_name in ("json", "csv"):
        assert max(len(piece) for piece in REPORTS.pieces(large(500), format_name)) < 10_000


@pytest.mark.parametrize(
    ("name", "format_name"),
    [("a.txt", "text"), ("a.json", "json"), ("a.CSV", "csv"), ("a.msaccucmp.csv", "msaccucmp"), ("a.xlsx", "xlsx"), ("a.html", "html")],
)  # fmt: skip
def test_a_files_name_says_which_report(name: str, format_name: str) -> None:
    assert REPORTS.format_of(Path(name)) == format_name


def test_an_unknown_kind_of_report() -> None:
    with pytest.raises(ReportError, match=r"a\.doc: unknown kind of report; end the name in one of \.txt"):
        REPORTS.format_of(Path("a.doc"))


def test_a_report_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def cut_off() -> Any:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.json", cut_off())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OutputError, match="can't be written"):
        REPORTS.write(faulty(), Path(__file__) / "a.json")


def test_columns_are_stable() -> None:
    assert COLUMNS[:5] == ("rank", "how", "number", "operator", "step")
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert EVIL not in rendered("csv", hostile()).decode()
