"""The vendor's step after ONNX: its command, and calling it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.errors import RunError
from torchferry.export.model import Check, Exported, Port
from torchferry.export.offline import command_for, run_tool
from torchferry.export.report import page_of, to_json
from torchferry.report.page import to_text
from torchferry.vendors.offline import OfflineTable, load_offline
from torchferry.vendors.registry import get_vendor


def table(name: str) -> OfflineTable:
    return load_offline(Path(get_vendor(name).folder))


def exported(
    *inputs: tuple[str, tuple[str, ...]], operators: tuple[str, ...] = ("Conv",), is_good: bool = True
) -> Exported:
    ports = tuple(Port(name, "float32", shape) for name, shape in inputs)
    check = Check({}, "output", 1e-6 if is_good else 0.5, 1.0, is_good)
    return Exported(
        "out/net.onnx", 11, "TorchScript", 10, ports, (), (check,), dict.fromkeys(operators, 1), ()
    )


FIXED = exported(("x", ("1", "3", "8", "8")), ("y", ("1", "4")))
FREE = exported(("x", ("batch", "3", "8", "8")))


@pytest.mark.parametrize(
    ("vendor", "what", "expected"),
    [
        ("ascend", FIXED, "atc --model=out/net.onnx --framework=5 --output=out/net --input_shape=x:1,3,8,8;y:1,4 --soc_version=CHIP"),
        ("ascend", FREE, "atc --model=out/net.onnx --framework=5 --output=out/net --input_shape=x:-1,3,8,8 --soc_version=CHIP --dynamic_batch_size=1,4"),
        ("cambricon", FIXED, "onnx_build --onnx out/net.onnx --magicmind_model out/net.magicmind --input_dims 1,3,8,8 1,4"),
        ("intel", FREE, "ovc out/net.onnx --input x[?,3,8,8] --output_model out/net.xml"),
    ],
)  # fmt: skip
def test_commands(vendor: str, what: Exported, expected: str) -> None:
    conversion = table(vendor).conversion
    assert conversion is not None
    assert " ".join(command_for(conversion, what, "", (1, 4))) == expected


def test_a_converter_is_run_only_if_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversion = table("ascend").conversion
    assert conversion is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="atc is not here"):
        run_tool(conversion, command_for(conversion, FIXED, "Ascend310P3", (1,)))
    tool = tmp_path / "atc"
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\nexit ${{FAILS:-0}}\n')
    tool.chmod(0o755)
    with pytest.raises(RunError, match="must know the chip"):
        run_tool(conversion, command_for(conversion, FIXED, "", (1,)))
    run_tool(conversion, command_for(conversion, FIXED, "Ascend310P3", (1,)))
    assert (tmp_path / "called").read_text().endswith("--soc_version=Ascend310P3\n")
    monkeypatch.setenv("FAILS", "3")
    with pytest.raises(RunError, match="exit code 3"):
        run_tool(conversion, command_for(conversion, FIXED, "Ascend310P3", (1,)))


@pytest.mark.parametrize(
    ("vendor", "operators", "said"),
    [
        ("ascend", ("Conv", "Relu"), "atc of ascend takes all its 2 operators"),
        (
            "ascend",
            ("Conv", "GridSample"),
            "not in the list of operators that atc of ascend takes: GridSample",
        ),
        ("tecorigin", ("Conv",), "how tecorigin turns ONNX into its own format is unknown here"),
        ("cambricon", ("Conv",), "which operators of ONNX cambricon takes is unknown here"),
    ],
)
def test_operators_against_the_vendors(vendor: str, operators: tuple[str, ...], said: str) -> None:
    page = page_of(
        exported(("x", ("1",)), operators=operators), get_vendor(vendor), table(vendor), [], was_run=False
    )
    assert said in to_text(page, "en", width=200)


def test_a_difference_is_the_verdict() -> None:
    what = exported(("x", ("1",)), is_good=False)
    page = page_of(what, None, OfflineTable(), [], was_run=False)
    assert "does not compute what PyTorch does: output differs by 0.5" in to_text(page, "en", width=200)
    assert "结果不一致" in to_text(page, "zh", width=200)
    assert '"is_good": false' in to_json(what, None, OfflineTable(), [])
