"""The terminal report."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from tests.readiness.samples import SAMPLES, empty, hostile, large, one_device, sample, whole_or_parts
from torchferry.readiness.report import REPORTS
from torchferry.report.formats import Options


def to_text(readinesses: Any, language: Any = "en", **options: Any) -> str:
    return REPORTS.render(readinesses, "text", Options(language, **options)).decode()


def test_the_verdicts_come_first_one_line_each() -> None:
    lines = to_text(sample()).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["ascend", "cambricon", "tecorigin", "intel:"]
    assert lines[0].endswith("(67.4 MiB moved per step)")


def test_one_device() -> None:
    text = to_text(one_device())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Operators that need attention (1)" in lines
    assert "aten::max_pool2d_with_indices_backward CPU fallback 2 18.0% backward" in lines
    assert any(line.startswith("float32[8,64,56,56]") and line.endswith("maxpool") for line in lines)
    assert "67.4 MiB moved per step" in lines
    assert any(line.endswith("models/net.py:13") for line in lines)
    assert "→ pool with unfold and max instead" in lines
    assert "return x.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))" in lines
    assert "kernel 5 82.0% the device has a kernel for it" in lines
    assert "on any device" not in text


def test_several_devices_side_by_side() -> None:
    lines = [" ".join(line.split()) for line in to_text(sample(), width=140).splitlines()]
    assert "Operators with a problem on any device (3)" in lines
    assert "Operator Calls Time ascend 2.13 cambricon 2.13 tecorigin 2.13 intel" in lines
    assert "aten::add.Tensor 4 20.0% kernel limited kernel unknown" in lines
    assert "Operators that need attention on cambricon 2.13 (2)" in lines
    assert not any("attention on intel" in line for line in lines)


def test_a_composite_operator_that_one_device_takes_whole() -> None:
    """Every device's shares are parts of what that device has to do."""
    lines = [" ".join(line.split()) for line in to_text(whole_or_parts()).splitlines()]
    assert "aten::nll_loss_forward 2 2.0% CPU fallback –" in lines
    assert "kernel 5 98.0% 6 100.0% the device has a kernel for it" in lines
    assert lines[1].startswith("cambricon 2.13: 100% of operator time")


def test_chinese() -> None:
    text = to_text(sample(), "zh", width=160)
    assert "cambricon 2.13 上需要处理的算子 (2)" in text
    for word in ("Operator", "Calls", "missing", "optimizer", "more"):
        assert word not in text


@pytest.mark.parametrize("devices", [one_device, sample])
def test_everything_lists_operators_without_a_problem_as_well(devices: Any) -> None:
    ready = "aten::convolution"
    assert not re.search(rf"^{ready} ", to_text(devices(), width=140), re.MULTILINE)
    assert re.search(rf"^{ready} .*kernel", to_text(devices(), width=140, everything=True), re.MULTILINE)


def test_code_is_not_broken_where_it_is_longer_than_the_page() -> None:
    lines = to_text(one_device(), width=50).splitlines()
    assert f"{'':12}return x.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))" in lines


def test_no_more_rows_than_the_limit() -> None:
    text = to_text(large(), limit=1)
    assert "... and 2 more" in text and "... and 1 more" in text
    assert "... and" not in to_text(large(), limit=None)


def test_empty() -> None:
    assert to_text(empty()).splitlines() == [
        "ascend 2.13: the run called no operator that a device has to execute, so there is nothing to judge"
    ]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("width", [60, 100])
def test_a_terminal_is_not_overrun(name: str, width: int) -> None:
    from rich.cells import cell_len
    from rich.text import Text

    lines = to_text(SAMPLES[name](), "zh", width=width, terminal=True).splitlines()
    assert all(cell_len(Text.from_ansi(line).plain) <= width for line in lines)


def test_hostile_text_stays_on_its_line() -> None:
    text = to_text(hostile(), width=100, terminal=True)
    assert "\u202e" not in text and "\\u202e" in text.replace("\n", "")
    assert "\x1b[2J" not in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, pipe = Terminal(), io.StringIO()
    REPORTS.show(sample(), "text", Options(limit=5), terminal)
    REPORTS.show(sample(), "text", Options(limit=5), pipe)
    assert "\x1b[" in terminal.getvalue() and "\x1b[" not in pipe.getvalue()
