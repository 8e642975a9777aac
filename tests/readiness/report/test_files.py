"""Reports as files: JSON, workbook, CSV, Markdown, the choice by a file's name, and lines of source."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests.readiness.samples import (
    HOSTILE,
    SAMPLES,
    empty,
    hostile,
    one_device,
    sample,
    training_step,
    whole_or_parts,
)
from torchferry.errors import OutputError, ReportError
from torchferry.readiness.model import Readiness
from torchferry.readiness.report import REPORTS
from torchferry.readiness.report.sheets import COLUMNS
from torchferry.readiness.report.tables import Overview, module_tree, read_lines, source_files
from torchferry.report.formats import Options


def render(format_name: str, readinesses: list[Readiness], language: Any = "en") -> bytes:
    return REPORTS.render(readinesses, format_name, Options(language))


def document(readinesses: list[Readiness]) -> Any:
    return json.loads(render("json", readinesses))


def workbook(readinesses: list[Readiness], language: Any = "en") -> Any:
    return openpyxl.load_workbook(io.BytesIO(render("xlsx", readinesses, language)))


def test_json() -> None:
    content = document(sample())
    ascend, cambricon, _, intel = content["devices"]
    assert (ascend["vendor"], ascend["version"], ascend["complete"]) == ("ascend", "2.13", True)
    assert ascend["verdict"]["en"].startswith("ascend 2.13: 82.0%")
    assert ascend["ready_share"] == pytest.approx(0.82)
    assert ascend["operators"]["fallback"] == ["aten::max_pool2d_with_indices_backward"]
    assert (cambricon["operators"]["missing"], intel["complete"]) == (["aten::to_sparse"], False)
    (use,) = [
        each for each in content["uses"] if each["operator"] == "aten::max_pool2d_with_indices_backward"
    ]
    assert use["inputs"][1] == {
        "dtype": "float32", "shape": [8, 64, 112, 112], "stride": [802816, 1, 7168, 64], "layout": "strided",
        "device": "cpu",
    }  # fmt: skip
    assert (use["phase"], use["module"], use["place"]) == ("backward", "maxpool", "models/net.py:13")
    first = use["judgements"][0]
    assert (first["support"], content["reasons"][first["reason"]]["en"]) == (
        "fallback",
        "the table says fallback",
    )
    assert [content["advice"][at]["remedy"] for at in first["advice"]] == ["composition", "keep_on_cpu"]
    assert training_step().uses[use["use"]].operator == use["operator"]
    assert sum(each["share"] for each in content["operators"]) == pytest.approx(1)


def test_json_of_devices_that_take_different_operators() -> None:
    uses = {each["operator"]: each for each in document(whole_or_parts())["uses"]}
    support = {name: [each and each["support"] for each in use["judgements"]] for name, use in uses.items()}
    assert support["aten::nll_loss_forward"] == ["fallback", None]
    assert support["aten::cross_entropy_loss"] == [None, "kernel"]
    assert training_step().uses[uses["aten::cross_entropy_loss"]["use"]].expanded


def test_workbook() -> None:
    book = workbook(sample())
    assert book.sheetnames == ["unsupported_op", "Summary", "Operators", "Calls"]
    rows = list(book["unsupported_op"].iter_rows(values_only=True))
    assert rows[0][:5] == ("File", "Start Line", "End Line", "OP", "Tips")
    assert [row[:4] for row in rows[1:]] == [
        ("models/net.py", 13, 13, "aten::max_pool2d_with_indices_backward"),
        ("train.py", 9, 9, "aten::to_sparse"),
        ("models/net.py", 14, 14, "aten::add.Tensor"),
    ]
    assert "x.unfold(2, 3, 2)" in rows[1][4] and rows[1][5:7] == ("ascend 2.13", "CPU fallback")
    assert rows[3][8] == 4  # both modules that run this line
    facts = list(book["Summary"].iter_rows(min_row=2, values_only=True))
    assert facts[0][1].startswith("ascend 2.13: 82.0%") and ("PyTorch", "2.13.0") in facts
    operators = {row[0]: row for row in book["Operators"].iter_rows(min_row=2, values_only=True)}
    assert operators["aten::to_sparse"][5:] == ("kernel", "missing", "kernel", "unknown")
    calls = list(book["Calls"].iter_rows(values_only=True))
    assert len(calls) == 8
    pool = dict(zip(calls[0], next(row for row in calls if row[0].endswith("_backward")), strict=True))
    assert pool["Strides of the inputs"] == "(200704,3136,56,1), (802816,1,7168,64), (200704,3136,56,1)"
    assert (pool["File"], pool["Line"], pool["ascend 2.13: Support"]) == ("models/net.py", 13, "CPU fallback")


def test_workbook_in_chinese_and_twice_the_same() -> None:
    book = workbook(one_device(), "zh")
    assert book.sheetnames == ["unsupported_op", "概览", "算子", "调用"]
    assert book["unsupported_op"]["G2"].value == "回退到 CPU"
    assert render("xlsx", one_device()) == render("xlsx", one_device())


def test_hostile_cells_are_text() -> None:
    for sheet in workbook(hostile()):
        for row in sheet.iter_rows():
            assert all(cell.data_type != "f" for cell in row)
    rows = list(csv.reader(io.StringIO(render("csv", hostile()).decode("utf-8-sig"))))
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert all(not cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)


def test_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(render("csv", sample(), "zh").decode("utf-8-sig"))))
    assert len(rows) == 4 * 7
    missing = [row for row in rows if row["support"] == "missing"]
    assert [(row["device"], row["operator"], row["file"], row["line"]) for row in missing] == [
        ("cambricon 2.13", "aten::to_sparse", "train.py", "9")
    ]


def test_markdown() -> None:
    text = render("md", sample()).decode()
    assert text.startswith("# Operator readiness: train.py --epochs 1\n\n- ascend 2.13: 82.0%")
    assert "| `aten::to_sparse` | missing | 1 | 10.0% | `float64[10,10]` | train.py:9 |" in text
    assert "| `aten::add.Tensor` | 4 | 20.0% | kernel | limited | kernel | unknown |" in text
    assert "<script>" not in render("md", hostile()).decode().replace("`", "").split("## ")[0]


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "large"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("format_name", [name for name in REPORTS.names if name not in ("xlsx", "text")])
def test_every_format_takes_every_sample(name: str, language: Any, format_name: str) -> None:
    assert render(format_name, SAMPLES[name](), language)


def test_empty_workbook() -> None:
    assert next(iter(workbook(empty()))).max_row == 1


def test_a_name_chooses_the_format(tmp_path: Path) -> None:
    assert REPORTS.format_of(Path("a/Ready.HTML")) == "html"
    with pytest.raises(
        ReportError, match=r"report\.pdf: unknown kind of report; end the name in one of \.txt"
    ):
        REPORTS.format_of(Path("report.pdf"))
    with pytest.raises(ReportError, match="unknown report format 'pdf'"):
        render("pdf", sample())
    REPORTS.write(sample(), tmp_path / "deep" / "unsupported_op.xlsx")
    assert openpyxl.load_workbook(tmp_path / "deep" / "unsupported_op.xlsx").active.title == "unsupported_op"
    with pytest.raises(OutputError, match="can't be written"):
        REPORTS.write(sample(), tmp_path / "deep" / "unsupported_op.xlsx" / "x.md")


def test_the_tree_of_modules() -> None:
    root = module_tree(Overview(sample()))
    assert list(root.children) == ["conv1", "maxpool", "layer1", "layer2"]  # what called nothing is left out
    pool = root.children["maxpool"]
    assert (pool.type, pool.tallies[0].share) == ("MaxPool2d", pytest.approx(0.1 / 0.28))
    assert (root.tallies[1].share, pool.tallies[1].share) == (pytest.approx(0.7), 1)
    assert root.children["layer1"].children["0"].path == "layer1.0"


def test_a_path_of_any_depth() -> None:
    node = module_tree(Overview(hostile()))
    while node.children:
        (node,) = node.children.values()
    assert node.path == HOSTILE


def test_source_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("".join(f"line {at}\n" for at in range(1, 21)), "utf-8")
    files = {file.name: file for file in source_files(Overview(sample()), tmp_path)}
    train = files["train.py"]
    assert [(line.number, line.text) for line in train.lines][:2] == [(5, "line 5"), (6, "line 6")]
    (called,) = [line for line in train.lines if line.number == 9]
    assert (called.operators, called.share) == (("aten::to_sparse",), pytest.approx(0.1))
    assert not files["models/net.py"].is_readable
    assert [line.number for line in files["models/net.py"].lines] == [12, 13, 14]


def test_only_python_files_of_the_program_are_read(tmp_path: Path) -> None:
    """A capture may come from somebody else: it must not bring other files into a page."""
    inside = tmp_path / "inside"
    inside.mkdir()
    for path in (tmp_path / "secret.py", inside / "secret.txt", inside / "open.py"):
        path.write_text("secret", "utf-8")
    (inside / "link.py").symlink_to(tmp_path / "secret.py")
    assert read_lines("open.py", inside) == ["secret"]
    for name in (
        "../secret.py",
        str(tmp_path / "secret.py"),
        "secret.txt",
        "link.py",
        "a\0.py",
        "",
        "x" * 5000 + ".py",
    ):
        assert read_lines(name, inside) == []
    assert read_lines("open.py", None) == []
