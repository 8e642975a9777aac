"""`ferry compare`: exit codes, files, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.accuracy.compare.records import MINE, write_network, zero_tail
from torchferry.cli.main import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    write_network(tmp_path / "gpu.h5")
    return tmp_path


def ferry(*arguments: str) -> int:
    try:
        return main(["compare", *arguments])
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


def test_nothing_is_wrong(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_network(here / "npu.h5", MINE)
    assert ferry("npu.h5", "gpu.h5", "--check") == 0
    assert capsys.readouterr().out.startswith("all 5 calls are equal bit for bit")


def test_a_fault_is_exit_code_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_network(here / "npu.h5", MINE, {"aten::exp": zero_tail})
    assert ferry("npu.h5", "gpu.h5") == 1
    said = capsys.readouterr()
    assert said.out.startswith("aten::exp computes wrong results: wrong from some element to the end\n")
    assert "ferry case aten::exp --from npu.h5 --call 4 --to ascend" in said.out
    assert said.err.startswith("first wrong: aten::exp: call 4, step 1, ") and said.err.count("\n") == 1
    assert ferry("npu.h5", "gpu.h5", "--lang", "zh") == 1
    assert capsys.readouterr().out.startswith("aten::exp 计算错误")


def test_the_command_that_is_named_makes_a_case_of_that_call(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    from torchferry.accuracy.case_inputs import calls, read

    write_network(here / "npu.h5", MINE, {"aten::mean": lambda loss: loss + 1}, steps=3)
    write_network(here / "gpu.h5", steps=3)
    ferry("npu.h5", "gpu.h5", "--format", "json")
    command = json.loads(capsys.readouterr().out)["comparisons"][0]["next"][0].split()
    assert command[:5] == ["ferry", "case", "aten::mean", "--from", "npu.h5"]
    (found,) = (call for call in calls(Path("npu.h5"), "aten::mean") if call.number == int(command[6]))
    assert found.number == 5 and isinstance(read(Path("npu.h5"), found).stored["self"], torch.Tensor)


def test_check_counts_calls_without_a_counterpart(here: Path) -> None:
    from torch import ones

    from tests.accuracy.compare.records import GOLDEN, Writing

    for name, operators in (("a.h5", ["aten::relu", "aten::exp"]), ("b.h5", ["aten::relu"])):
        call = Writing(here / name, GOLDEN)
        for operator in operators:
            call(operator, ones(4))
        call.close()
    assert ferry("a.h5", "b.h5", "-q") == 0
    assert ferry("a.h5", "b.h5", "-q", "--check") == 1


def test_several_reports_at_once(here: Path) -> None:
    write_network(here / "npu.h5", MINE)
    names = ["a.txt", "a.json", "a.csv", "a.msaccucmp.csv", "a.xlsx", "a.html"]
    assert ferry("npu.h5", "gpu.h5", *(word for name in names for word in ("-o", name))) == 0
    assert all((here / name).stat().st_size > 50 for name in names)
    assert sorted(path.name for path in here.iterdir()) == sorted([*names, "gpu.h5", "npu.h5"])


@pytest.mark.parametrize("format_name", ["json", "csv", "msaccucmp", "html"])
def test_formats_can_be_printed(
    here: Path, format_name: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_network(here / "npu.h5", MINE)
    assert ferry("npu.h5", "gpu.h5", "--format", format_name) == 0
    starts = {
        "json": b'{\n "format"',
        "csv": b"\xef\xbb\xbfrank",
        "msaccucmp": b"Index,",
        "html": b"<!DOCTYPE html>",
    }
    assert capfdbinary.readouterr().out.startswith(starts[format_name])


def test_one_record_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_network(here / "npu.h5", MINE, {"aten::exp": zero_tail})
    assert ferry("npu.h5") == 1
    assert "aten::exp computes wrong results" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gpu.h5", "none.h5"], "no such file: none.h5"),
        (["text.h5", "gpu.h5"], "text.h5: "),
        (["gpu.h5", "."], "a folder without"),
        (["gpu.h5", "gpu.h5", "-o", "a.doc"], "a.doc: unknown kind of report"),
        (["gpu.h5", "gpu.h5", "-o", "nowhere/a.json"], "nowhere/a.json: can't be written there"),
    ],
)
def test_bad_input_is_one_line(
    here: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "text.h5").write_text("no record")
    assert ferry(*arguments) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["a", "b", "-j", "0"], ["a", "b", "--format", "doc"]])
def test_bad_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ferry(*arguments) == 2


def test_an_interruption_leaves_no_report(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_network(here / "npu.h5", MINE)

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("torchferry.accuracy.report.json._pair", interrupted)
    assert ferry("npu.h5", "gpu.h5", "-o", "a.json") == 130
    assert not (here / "a.json").exists() and len(list(here.iterdir())) == 2


def test_records_by_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As msaccucmp writes it."""
    write_network(here / "npu.h5", MINE)
    for words in (
        ["--mine", "npu.h5", "--golden", "gpu.h5"],
        ["--mine", "npu.h5", "gpu.h5"],
        ["npu.h5", "--golden", "gpu.h5"],
    ):
        assert ferry(*words) == 0
        assert capsys.readouterr().out.startswith("all 5 calls are equal bit for bit")
    assert ferry() == 2 and "which record?" in capsys.readouterr().err
    assert ferry("--mine", "npu.h5", "--golden", "gpu.h5", "gpu.h5") == 2
    assert "one record too many" in capsys.readouterr().err


def test_what_is_not_known_is_exit_code_3(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator that can't be computed again, with equal inputs and other results."""
    from tests.accuracy.compare import records

    monkeypatch.setitem(records.OPERATORS, "vendor::secret", torch.square)
    for name, factor in (("npu.h5", 1.1), ("gpu.h5", 1.0)):
        call = records.Writing(here / name, MINE, {"vendor::secret": lambda made, by=factor: made * by})
        call("vendor::secret", torch.ones(4, 4))
        call("aten::relu", torch.ones(4, 4))
        call.close()
    assert ferry("npu.h5", "gpu.h5") == 3
    said = capsys.readouterr().out
    assert said.startswith("whether vendor::secret is correct is unknown: its inputs are equal")
    assert "(1 of 2 calls were judged, none is wrong)" in said and "no operator is wrong" not in said
    assert ferry("npu.h5", "gpu.h5", "--check") == 1
    assert ferry("npu.h5", "npu.h5") == 0
