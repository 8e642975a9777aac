"""The vendor's step after ONNX: its command, and calling it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchferry.errors import RunError
from torchferry.onnx_export.model import Check, Exported, OutputVerdict, Port
from torchferry.onnx_export.offline import check_tool, command_for, results_of, run_tool
from torchferry.onnx_export.report import ExportReport, page_of, to_json
from torchferry.report.formats import Options
from torchferry.report.page import to_text
from torchferry.text import Language
from torchferry.vendors.offline import OfflineTable, load_offline
from torchferry.vendors.registry import get_vendor


def table(name: str) -> OfflineTable:
    return load_offline(Path(get_vendor(name).folder))


def exported(
    *inputs: tuple[str, tuple[str, ...]],
    operators: tuple[str, ...] = ("Conv",),
    is_good: bool = True,
    sizes: tuple[dict[str, int], ...] = ({},),
    output: str = "out/net.onnx",
) -> Exported:
    ports = tuple(Port(name, "float32", shape) for name, shape in inputs)
    verdict = OutputVerdict.SAME if is_good else OutputVerdict.DIFFERENT
    checks = tuple(Check(each, "output", 1e-6 if is_good else 0.5, 1.0, verdict) for each in sizes)
    return Exported(output, 11, "TorchScript", 10, ports, (), checks, dict.fromkeys(operators, 1), ())


FIXED = exported(("x", ("1", "3", "8", "8")), ("y", ("1", "4")))
FREE = exported(("x", ("batch", "3", "8", "8")), sizes=({"batch": 4}, {"batch": 1}))
ONE = exported(("x", ("batch", "3", "8", "8")), sizes=({"batch": 4},))  # the model takes no other size
WORDS = exported(
    ("ids", ("batch", "length")),
    ("mask", ("1", "length")),
    sizes=({"batch": 2, "length": 6}, {"batch": 2, "length": 3}),
)
ATC = "atc --model=out/net.onnx --framework=5 --output=out/net"


@pytest.mark.parametrize(
    ("vendor", "what", "expected"),
    [
        ("ascend", FIXED, f"{ATC} --input_shape=x:1,3,8,8;y:1,4 --soc_version=CHIP"),
        ("ascend", FREE, f"{ATC} --input_shape=x:-1,3,8,8 --soc_version=CHIP --dynamic_batch_size=1,4"),
        ("ascend", ONE, f"{ATC} --input_shape=x:4,3,8,8 --soc_version=CHIP"),
        ("ascend", WORDS, f"{ATC} --input_shape=ids:-1,-1;mask:1,-1 --soc_version=CHIP --dynamic_dims=2,3,3;2,6,6 --input_format=ND"),
        ("cambricon", FIXED, "onnx_build --onnx out/net.onnx --magicmind_model out/net.magicmind --dynamic_shape false --input_dims 1,3,8,8 1,4"),
        ("cambricon", WORDS, "onnx_build --onnx out/net.onnx --magicmind_model out/net.magicmind --dynamic_shape true"),
        ("intel", FREE, "ovc out/net.onnx --input x[?,3,8,8] --output_model out/net.xml"),
    ],
)  # fmt: skip
def test_commands(vendor: str, what: Exported, expected: str) -> None:
    assert table(vendor).has_tool
    assert " ".join(command_for(table(vendor), what, "")) == expected


@pytest.fixture
def atc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OfflineTable:
    """A converter that writes half of its result, and ends as FAILS says."""
    assert table("ascend").has_tool
    tool = tmp_path / "atc"
    tool.write_text(
        '#!/bin/sh\necho "$@" > "$(dirname "$0")/called"\n'
        'for word; do case "$word" in --output=*) echo half > "${word#--output=}.om";; esac; done\n'
        '[ "$FAILS" != INT ] || { kill -INT $PPID; exec sleep 60; }\nexit ${FAILS:-0}\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return table("ascend")


def _run(atc: OfflineTable, folder: Path) -> None:
    what = exported(("x", ("1", "3")), output=str(folder / "net.onnx"))
    run_tool(atc, command_for(atc, what, "Ascend310P3"), results_of(atc, what))


def test_a_converter_is_asked_for_before_the_export(
    atc: OfflineTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_tool(atc, "Ascend310P3")
    with pytest.raises(RunError, match="needs the chip's name"):
        check_tool(atc, "")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(RunError, match="atc is not installed here"):
        check_tool(atc, "Ascend310P3")


def test_a_converter_is_called(atc: OfflineTable, tmp_path: Path) -> None:
    _run(atc, tmp_path)
    assert (tmp_path / "called").read_text().endswith("--soc_version=Ascend310P3\n")
    assert (tmp_path / "net.om").exists()


def test_a_converter_that_fails_leaves_nothing_half_done(
    atc: OfflineTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "3")
    with pytest.raises(RunError, match="exit code 3"):
        _run(atc, tmp_path)
    assert not (tmp_path / "net.om").exists()


def test_ctrl_c_while_a_converter_runs(
    atc: OfflineTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process without other threads, which would get the signal instead."""
    monkeypatch.setenv("FAILS", "INT")
    program = "import sys, pathlib; from tests.onnx_export import test_offline as t; t._run(t.table('ascend'), pathlib.Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert done.returncode != 0 and "EndRequest" in done.stderr
    assert (tmp_path / "called").exists() and not (tmp_path / "net.om").exists()


def test_a_converter_that_ends_well_without_a_result_is_no_success(atc: OfflineTable, tmp_path: Path) -> None:
    (tmp_path / "atc").write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(RunError, match=r"net\.om does not exist"):
        _run(atc, tmp_path)


@pytest.mark.parametrize(
    ("vendor", "operators", "said"),
    [
        (
            "ascend",
            ("Conv", "Relu"),
            "all its 2 operators are supported by atc of ascend; attributes and dtypes were not compared",
        ),
        (
            "ascend",
            ("Conv", "GridSample"),
            "not in the list of operators that atc of ascend supports: GridSample",
        ),
        ("tecorigin", ("Conv",), "how tecorigin converts ONNX to its own format is unknown"),
        ("cambricon", ("Conv",), "the ONNX operators that cambricon supports are unknown"),
    ],
)
def test_operators_against_the_vendors(vendor: str, operators: tuple[str, ...], said: str) -> None:
    what = exported(("x", ("1",)), operators=operators)
    assert said in said_of(ExportReport(what, get_vendor(vendor), table(vendor), [], False))


def test_a_difference_is_the_verdict() -> None:
    report = ExportReport(exported(("x", ("1",)), is_good=False), None, OfflineTable(), [], False)
    assert "does not compute the same as PyTorch: output differs by 0.5" in said_of(report)
    assert "结果不一致" in said_of(report, "zh")
    assert '"is_good": false' in to_json(report, Options("en"))


def said_of(report: ExportReport, language: Language = "en") -> str:
    options = Options(language, width=200)
    return to_text(page_of(report, options), options)
