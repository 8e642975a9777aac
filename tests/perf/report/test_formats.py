"""Text, JSON and Markdown: the verdict first, figures that are right, both languages, hostile names."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.perf.report.samples import EVIL, analysis, bottleneck, compared, healthy, hostile, large, ranks
from torchferry.perf.model import TimePart
from torchferry.perf.report import REPORTS
from torchferry.perf.report.sentences import RunsReport
from torchferry.report.formats import Options
from torchferry.text import Language


def to_text(report: RunsReport, language: Language = "en") -> str:
    return REPORTS.render(report, "text", Options(language, width=120)).decode()


def to_markdown(report: RunsReport, language: Language) -> str:
    return REPORTS.render(report, "md", Options(language)).decode()


def to_html(report: RunsReport) -> str:
    return REPORTS.render(report, "html").decode()


def to_json(report: RunsReport) -> str:
    return REPORTS.render(report, "json").decode()


def lines(report: RunsReport, language: str = "en") -> list[str]:
    text = to_text(report, "zh" if language == "zh" else "en")
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_the_verdict_comes_first() -> None:
    found = lines(bottleneck())
    assert found[:2] == [
        "Bottleneck: the program waits for data.",
        "The data loader takes 40.0% of the time of a step.",
    ]
    assert "2 steps of 100 ms" in found[2] and "npu Ascend910B" in found[2]
    assert any(re.match(r"waiting for data █+ 40\.0% 40\.0 ms", line) for line in found)
    assert "1. The program waits for data [high, data_loader]" in found
    assert "enumerate(DataLoader)#next batch 8 train.py:42 2 80.0 ms 40.0%" in found
    assert "→ Give DataLoader num_workers=4; see `ferry doctor host`." in found
    assert "Gain: up to 35.0% of the time: the device is idle for so long" in found
    assert "2. Gradients are filled [low, zero_grad]" in found
    assert "aten::add 64×32, 64×32 float32×2 …/c/d/model.py:7 40 4.00 ms 30.0 ms 15.0%" in found
    assert "Not checked: non_contiguous, copies (needs strides)" in found
    assert found[-1] == "Note: The file was cut short."


def test_a_healthy_run_has_no_bottleneck() -> None:
    assert lines(healthy())[0] == "No bottleneck stands out: the device computes for 50.0% of the time."
    idle = replace(analysis(), diagnoses=(), parts={TimePart.COMPUTE: 0.02, TimePart.OTHER: 0.18})
    assert lines(RunsReport((idle,)))[0] == (
        "No detector names the cause, but the device is idle for 90.0% of the time."
    )


def test_small_findings_are_no_bottleneck() -> None:
    small = replace(analysis(), diagnoses=analysis().diagnoses[1:])
    assert lines(RunsReport((small,)))[:2] == [
        "No bottleneck stands out: the device computes for 50.0% of the time.",
        "1 minor finding below.",
    ]


def test_where_the_host_computes_there_is_one_time() -> None:
    assert "Host time" in to_text(bottleneck()) and "Device time" in to_text(bottleneck())
    on_host = RunsReport((replace(analysis(), is_host_only=True, kernels=()),))
    for text in (to_text(on_host), to_markdown(on_host, "en"), to_html(on_host)):
        assert "Host time" in text and "Device time" not in text


def test_tables_have_as_many_rows_as_asked_for() -> None:
    found = lines(replace(bottleneck(), top=1))
    assert sum(line.startswith("aten::") for line in found) == 1 and "... and 2 more" in found
    assert sum(line.startswith("aten::") for line in lines(bottleneck())) == 3


def test_of_several_ranks_the_slowest_is_shown() -> None:
    found = lines(ranks())
    assert (
        found[0] == "Rank 1 holds up the others: its own work takes 200 ms per step, the median rank 100 ms."
    )
    assert found[1] == "rank 1: Bottleneck: the program waits for data."
    assert any(re.match(r"1 200 ms 200 ms", line) for line in found)
    assert any(re.match(r"2 200 ms 100 ms", line) for line in found)
    even = ranks().analyses[0]
    assert lines(RunsReport((even, even)))[0].startswith("2 ranks, evenly loaded")


def test_a_comparison_with_a_baseline() -> None:
    found = lines(compared())
    assert "A step takes 100 ms, 2.00 times the baseline's 50.0 ms." in found
    assert "Largest part of the difference: the device computes, +25.0 ms per step." in found
    assert "90.0% of this run's work and 90.0% of the baseline's were matched operator by operator." in found
    assert any(
        line == "aten::mm 64×64 float32 train.py:10 10.0 ms ×10 40.0 ms ×10 +30.0 ms 4.00" for line in found
    )
    text = "".join(found)
    assert "+30.0 ms" in text and "−10.0 ms" in text and "aten::cudnn_convolution" in text
    assert "In this run only (1)" in found and "In the baseline only (1)" in found


@pytest.mark.parametrize("report", [bottleneck(), healthy(), ranks(), compared()])
def test_chinese_is_whole(report: RunsReport) -> None:
    names = r"aten::[\w]+|train\.py|ferry doctor host|DataLoader|num_workers|\w+\.json|Ascend\w+|torch|data_loader|zero_grad"
    for text in (to_text(report, "zh"), to_markdown(report, "zh")):
        said = re.sub(names, "", text)
        assert not re.findall(
            r"\b(?:the|of|step|time|Share|Place|Remedy|Gain|Calls|Operators|checked|baseline)\b", said
        )
        assert "瓶颈" in text


def test_json() -> None:
    document = json.loads(to_json(bottleneck()))
    assert (document["format"], document["version"]) == ("torchferry-analysis", 1)
    (run,) = document["runs"]
    assert run["verdict"] == "data_loader" and run["seconds"] == 0.2 and run["parts"]["loader"] == 0.08
    assert run["diagnoses"][0]["severity"] == "high" and run["diagnoses"][0]["gain"] == 0.35
    assert run["diagnoses"][0]["evidence"][0]["place"] == "train.py:42"
    assert run["steps"][1] == {
        "number": 4,
        "start": 0.1,
        "seconds": 0.1,
        "parts": {"compute": 0.05, "loader": 0.04, "host": 0.01},
    }
    assert run["operators"][1]["place"] == "/a/b/c/d/model.py:7"  # whole, unlike in texts
    assert run["memory"]["npu:0"]["allocated"] == [0, 2**30]
    assert run["unchecked"]["copies"] == {"en": "needs strides", "zh": "需要步长"}
    pair = json.loads(to_json(compared()))["comparisons"][0]["pairs"][0]
    assert pair["ratio"] == 4.0 and pair["match"] == "exact" and pair["baseline"]["calls"] == 10
    assert json.loads(to_json(ranks()))["slowest"] == 1


def test_json_holds_what_json_can_hold() -> None:
    import numpy as np

    odd = replace(analysis().diagnoses[0], share=float("nan"), gain=float("inf"))
    odd = replace(odd, evidence=(replace(odd.evidence[0], count=np.int64(3), what="\ud800"),))
    (run,) = json.loads(to_json(RunsReport((replace(analysis(), diagnoses=(odd,)),))))["runs"]
    assert run["diagnoses"][0]["share"] is None and run["diagnoses"][0]["evidence"][0]["count"] == 3


def test_markdown() -> None:
    text = to_markdown(bottleneck(), "en")
    assert text.startswith("# Bottleneck: the program waits for data.\n")
    assert "## 1. The program waits for data (high, `data_loader`)" in text
    assert "| `enumerate(DataLoader)#next` | batch 8 | `train.py:42` | 2 | 80.0 ms | 40.0% |" in text
    assert "- Remedy: Give DataLoader num\\_workers=4; see `ferry doctor host`." in text
    assert "| `aten::mm` | 64×64 float32 | same name, shapes and types |" in to_markdown(compared(), "en")


def test_hostile_names_stay_text() -> None:
    text = to_text(hostile())
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b" in text
    markdown = to_markdown(hostile(), "en")
    assert "\x1b" not in markdown and "\n<" not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| ") and "onerror" in line]
    assert rows and all(
        re.sub(r"\\.", "", line).count("|") in (6, 7, 8, 9) for line in rows
    )  # no cell breaks out of its column
    assert json.loads(to_json(hostile()))["runs"][0]["sources"] == [EVIL]


def test_a_large_report_stays_short() -> None:
    assert len(lines(large())) < 120


def test_where_the_host_computes_no_table_speaks_of_a_device() -> None:
    on_host = RunsReport(tuple(replace(each, is_host_only=True) for each in ranks().analyses))
    for words in (to_text(on_host), to_markdown(on_host, "en"), to_html(on_host)):
        assert "operators" in words and "the device computes" not in words
    assert "the device computes" in to_html(ranks())
