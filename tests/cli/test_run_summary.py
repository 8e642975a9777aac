"""The summary of a run: parts of several processes, merged, as text in both languages and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from tests import schemas
from torchferry.sim.summary import (
    BEGAN,
    REPORTED,
    DeviceUse,
    OperatorCount,
    RunOutcome,
    RunSummary,
    SimulatedProcess,
    read_parts,
    to_json,
    to_text,
    write_part,
)

GIB = 1 << 30


def part(
    pid: int, rank: int | None, peak: int, *operators: OperatorCount, out_of_memory: int = 0
) -> SimulatedProcess:
    device = DeviceUse(rank or 0, peak, 2 * peak, 32 * GIB, 10, out_of_memory)
    return SimulatedProcess(pid, rank, 0, "2.13.0", (device,), operators, (("float64", pid),))


def summary(
    *parts: SimulatedProcess, unreported: int = 0, left_running: int = 0, exit_code: int = 0
) -> RunSummary:
    return RunSummary(RunOutcome("ascend", "npu", exit_code, 1.5, left_running), parts, unreported)


def test_parts_come_back_in_the_order_of_ranks(tmp_path: Path) -> None:
    written = [part(30, 1, GIB), part(20, 0, GIB, OperatorCount("aten::abs", 3, "kernel")), part(10, None, 5)]
    for each in written:
        write_part(each, tmp_path / f"{each.pid}{REPORTED}")
    (tmp_path / f"40{BEGAN}").touch()
    parts, unreported = read_parts(tmp_path)
    assert parts == (written[2], written[1], written[0])
    assert unreported == 1


def test_counts_add_up_and_peaks_do_not() -> None:
    both = summary(
        part(1, 0, GIB, OperatorCount("aten::a", 2, "kernel"), OperatorCount("aten::b", 1, "falls_back")),
        part(2, 0, 3 * GIB, OperatorCount("aten::b", 4, "falls_back"), out_of_memory=1),
        part(3, 5, 2 * GIB),
    )
    assert both.devices == [
        DeviceUse(0, 3 * GIB, 6 * GIB, 32 * GIB, 20, 1),
        DeviceUse(5, 2 * GIB, 4 * GIB, 32 * GIB, 10, 0),
    ]
    assert both.operators == [
        OperatorCount("aten::b", 5, "falls_back"),
        OperatorCount("aten::a", 2, "kernel"),
    ]
    assert both.dtypes == {"float64": 6}


def test_the_text_in_english() -> None:
    text = to_text(
        summary(
            part(
                1, 0, GIB, OperatorCount("aten::b", 1200, "falls_back"), OperatorCount("aten::c", 1, "raises")
            ),
            part(2, 1, GIB, OperatorCount("aten::a", 2, "kernel"), out_of_memory=2),
            unreported=1,
            left_running=3,
        ),
        "en",
    )
    assert [line.removeprefix("torchferry: ") for line in text.splitlines()] == [
        "simulated npu (ascend): processes that used it: 2",
        "processes killed before they could report, not counted here: 1",
        "processes that the program left running, now ended: 3",
        "peak memory of one process (allocated, reserved, limit):",
        "  npu:0     1.0 GiB     2.0 GiB    32.0 GiB",
        "  npu:1     1.0 GiB     2.0 GiB    32.0 GiB",
        "out-of-memory errors: 2",
        "operators that fell back to the CPU, with counts:",
        "      1,200  aten::b",
        "missing operators (they raised an error):",
        "          1  aten::c",
        "narrowed or rejected dtypes, with counts:",
        "          3  float64",
    ]


def test_the_text_in_chinese_has_the_same_lines() -> None:
    whole = summary(part(1, 0, GIB, OperatorCount("aten::b", 1, "falls_back")), unreported=1)
    english, chinese = (to_text(whole, language).splitlines() for language in ("en", "zh"))  # type: ignore[arg-type]
    assert len(english) == len(chinese)
    assert "回退到 CPU" in "\n".join(chinese)


def test_a_run_that_never_used_the_device_says_so() -> None:
    assert "nothing ran on the device" in to_text(summary(), "en")
    assert "nothing ran" not in to_text(summary(unreported=1), "en")
    assert "nothing ran" not in to_text(summary(exit_code=1), "en")  # its traceback says what to do


def test_ferry_convert_is_named_only_where_the_run_had_no_layer() -> None:
    converted = RunSummary(RunOutcome("ascend", "npu", 0, 1.5, 0, converted=True), (), 0)
    assert "ferry convert" in to_text(converted, "en")
    assert "ferry convert" in to_text(converted, "zh")
    assert "convert" not in to_text(summary(), "en")


def test_only_the_first_twenty_operators_are_printed() -> None:
    operators = [OperatorCount(f"aten::op{number:02}", 100 - number, "falls_back") for number in range(25)]
    text = to_text(summary(part(1, 0, GIB, *operators)), "en")
    assert "aten::op19" in text
    assert "aten::op20" not in text
    assert "5 more" in text


def test_json_holds_everything() -> None:
    content = json.loads(
        to_json(summary(part(7, 3, GIB, OperatorCount("aten::a", 2, "kernel")), unreported=1, left_running=2))
    )
    assert schemas.wrong("torchferry-run", content) == []
    assert set(content) == {
        "format",
        "version",
        "torchferry",
        "vendor",
        "device_type",
        "means",
        "exit_code",
        "seconds",
        "left_running",
        "converted",
        "devices",
        "operators",
        "dtypes",
        "unreported",
        "processes",
    }
    assert content["operators"] == [{"name": "aten::a", "calls": 2, "support": "kernel"}]
    assert content["processes"][0]["rank"] == 3
    assert content["processes"][0]["dtypes"] == {"float64": 7}
