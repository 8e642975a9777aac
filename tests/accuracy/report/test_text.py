"""The terminal report: the verdict first, in plain words, in both languages."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.accuracy.report.samples import EVIL, SAMPLES, alone, equal, faulty, fine, large, ranks, statistical
from tests.report.texts import texts_of
from torchferry.accuracy.compare.matching import EQUIVALENT, EXTRA, GROUP, MOVED, NOTHING, SAME, SIMILAR
from torchferry.accuracy.compare.model import packed
from torchferry.accuracy.judge.model import ErrorKind, Verdict
from torchferry.accuracy.report import REPORTS, sentences, words
from torchferry.report.formats import Options
from torchferry.text import Text


def to_text(comparisons: Any, language: Any = "en", **options: Any) -> str:
    return REPORTS.render(comparisons, "text", Options(language, **options)).decode()


def lines(comparisons: Any, language: Any = "en", **options: Any) -> list[str]:
    return [" ".join(line.split()) for line in to_text(comparisons, language, **options).splitlines()]


def test_a_fault() -> None:
    assert lines(faulty())[:16] == [
        "aten::relu computes wrong results: wrong from some element to the end",
        "where call 2, step 1, forward, Net: layer1, train.py:32",
        "error its own 0.25 (against double precision); golden's own error is 3.0e-08; up to 1.2e-07 is normal",
        "result output/output_0 float32[16,32]",
        "picture ......##",
        "why the last 100 of 512 elements are wrong",
        "→ test only this call:",
        "ferry case aten::relu --from npu.h5 --call 2 --to ascend",
        "→ cut this call out of the recordings, to send it:",
        "ferry record cut npu.h5 --call 2 -o npu.call2.h5",
        "ferry record cut gpu.h5 --call 2 -o gpu.call2.h5",
        "→ list every call:",
        "ferry compare npu.h5 gpu.h5 --verbose",
        "whole network, step 1: mean absolute difference of the output of the network 0.1, above the normal 1e-4",
        "whole network, step 1: mean absolute difference of the loss 3.0e-05, normal (<= 1e-4)",
        "note: mine: the run was interrupted",
    ]


def test_a_fault_in_chinese() -> None:
    text = to_text(faulty(), "zh")
    assert text.startswith("aten::relu 计算错误：从某个元素起直到末尾都错\n")
    assert "  → 列出所有调用：\n" in text and "\n说明：待测记录：运行被中断\n" in text
    assert "误差  自身 0.25（相对双精度）；标杆自身为 3.0e-08；正常上限为 1.2e-07" in text
    for word in ("wrong", "Verdict", "call", "normal", "note", "suspicious", "whole"):
        assert word not in text.replace("ferry", "").replace("--call", "").replace(".call2.", "")


def test_what_needs_attention_comes_before_the_counts() -> None:
    found = lines(faulty(), width=160)
    assert "Calls that need attention (2)" in found
    assert "2 aten::relu fault 0.25 3.0e-08 1.2e-07 1 forward same" in found
    assert "4 lib::fast_gelu suspicious 1.0e-05 1.0e-07 1 forward similar name" in found
    assert "= aten::gelu too few digits Net: layer2" in found
    assert "fault 1 its own error is not rounding" in found
    assert not any("aten::sin" in line for line in found)


def test_calls_that_go_wrong_alike_stand_together() -> None:
    found = lines(large())
    assert "Calls that need attention (100)" in found
    assert (
        sum("suspicious" in line and "aten::op" in line for line in found) == 2
    )  # each 100th call is op20 or op0
    assert sum(line.startswith("× 50 ") for line in found) == 2


def test_all_lists_every_call_and_those_without_a_counterpart() -> None:
    found = lines(faulty(), width=160, everything=True)
    assert "All calls (6)" in found and "Calls without a counterpart (2)" in found
    assert any(line.startswith("7 aten::sin") and line.endswith("no counterpart") for line in found)
    assert any(line.startswith("6 aten::copy_") and line.endswith("extra copy or view") for line in found)


def test_nothing_is_wrong() -> None:
    assert lines(fine())[0] == (
        "no operator is wrong: 3 of 3 calls were judged, all differences are rounding or inherited"
    )
    assert lines(equal())[0] == "all 2 calls are equal bit for bit"
    assert lines(fine(), "zh")[0].startswith("没有算子出错")


def test_nothing_could_be_judged() -> None:
    (comparison,) = fine()
    pairs = packed(
        replace(pair, judgement=replace(pair.judgement, verdict=Verdict.UNKNOWN)) for pair in comparison.pairs
    )
    assert lines([replace(comparison, pairs=pairs)])[0].startswith(
        "no verdict: none of the calls could be judged"
    )


def test_statistics_name_step_and_module_and_what_to_record_next() -> None:
    found = lines(statistical())
    assert found[0] == "the runs diverge at step 2, Net: layers.0: aten::gelu, the values differ"
    assert (
        "ferry record --to ascend --sim --first-step 2 --steps 1 --in-module layers.0 -o 'run a.step2.h5' train.py --lr 0.1"
        in found
    )
    assert (
        "ferry record --first-step 2 --steps 1 --in-module layers.0 -o b.step2.h5 train.py --lr 0.1" in found
    )
    assert "largest difference: 1.0e-06 in step 1, 0.5 in step 2" in found


def test_what_to_record_next_repeats_how_the_run_was_made() -> None:
    (comparison,) = statistical()
    options = "--seed 3 --nproc-per-node 2 --vendor-path 'my vendors'"
    mine = replace(comparison.mine, options=options, rank=1, world=2)
    found = lines([replace(comparison, mine=mine, mine_path="a.rank1.h5")])
    wanted = "--first-step 2 --steps 1 --in-module layers.0 -o a.step2.h5"
    assert f"ferry record --to ascend --sim {options} {wanted} train.py --lr 0.1" in found


def test_a_record_of_the_emulated_device_is_repeated_there() -> None:
    (comparison,) = statistical()
    mine = replace(comparison.mine, options="--emulate --seed 3", simulated=False)
    found = lines([replace(comparison, mine=mine, mine_path="a.h5")])
    wanted = "--first-step 2 --steps 1 --in-module layers.0 -o a.step2.h5 train.py --lr 0.1"
    assert f"ferry record --to ascend --emulate --seed 3 {wanted}" in found


def test_a_run_that_was_watched_names_the_steps_in_between() -> None:
    """Watched at steps 10 and 20: the reason lies in 11 to 20."""
    (comparison,) = statistical()
    pairs = [
        replace(
            each, mine=replace(each.mine, operator="module", step=10 * each.mine.step), golden=each.golden
        )
        for each in comparison.pairs
        if each.mine
    ]
    found = lines([replace(comparison, pairs=packed(pairs))])
    assert found[0] == "the runs diverge at step 20, Net: layers.0: its output, the values differ"
    assert "ferry record --stats --first-step 11 --steps 10 -o b.steps11to20.h5 train.py --lr 0.1" in found


def test_a_suspicion_is_no_certainty_and_a_replay_would_tell() -> None:
    (comparison,) = faulty()
    found = lines([replace(comparison, culprit=3)])
    assert found[0].startswith("no certain fault; lib::fast_gelu is the first")
    assert "ferry replay gpu.h5 --to ascend --sim -o npu.replay.h5" in found
    replayed = replace(comparison, culprit=3, mine=replace(comparison.mine, replayed="gpu.h5"))
    assert not any("ferry replay" in line or "whole network" in line for line in lines([replayed]))


def test_a_part_of_a_network_is_not_the_whole() -> None:
    (whole,) = faulty()
    assert sentences.network(whole)
    part = replace(whole, mine=replace(whole.mine, selected="modules body.1"))
    assert not sentences.network(part)


def test_a_record_alone() -> None:
    found = lines(alone())
    assert "ferry compare npu.h5 --verbose" in found
    assert not any("counterpart" in line for line in lines(alone(), everything=True))


def test_several_ranks() -> None:
    found = lines(ranks())
    assert found[0].startswith("rank 0: no operator is wrong")
    assert any(line.startswith("rank 1: aten::relu computes wrong results") for line in found)


def test_the_case_is_that_of_the_call() -> None:
    """By the number that all commands give it."""
    (comparison,) = large(200)
    found = lines([replace(comparison, culprit=99)])
    assert "ferry case aten::op20 --from npu.h5 --call 100 --to ascend" in found


def test_no_more_rows_than_the_limit() -> None:
    assert "... and 85 more" in lines(large(100), everything=True, limit=15)
    assert not any(line.startswith("...") for line in lines(large(300), limit=None))


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("width", [60, 110])
def test_a_terminal_is_not_overrun(name: str, width: int) -> None:
    from rich.cells import cell_len
    from rich.text import Text as Styled

    def shown_at(columns: int) -> list[str]:
        text = to_text(SAMPLES[name](), "zh", width=columns, terminal=True)
        return [Styled.from_ansi(line).plain for line in text.splitlines()]

    commands = [line for line in shown_at(width) if line.startswith("      ferry ")]
    assert all(cell_len(line) <= width for line in shown_at(width) if line not in commands)
    # a broken command can't be copied: it may be longer than the terminal
    assert commands == [line for line in shown_at(1000) if line.startswith("      ferry ")]


def test_hostile_text_stays_on_its_line() -> None:
    text = to_text(SAMPLES["hostile"](), terminal=True)
    assert "\u202e" not in text and "\x1b[2J" not in text
    assert EVIL not in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, pipe = Terminal(), io.StringIO()
    REPORTS.show(faulty(), stream=terminal)
    REPORTS.show(faulty(), stream=pipe)
    assert "\x1b[" in terminal.getvalue() and "\x1b[" not in pipe.getvalue()


def test_every_word_exists_in_both_languages() -> None:
    for text in texts_of(words):
        assert isinstance(text, Text) and bool(text.en) == bool(text.zh)
        assert sorted(re.findall(r"\{(\w+)", text.en)) == sorted(re.findall(r"\{(\w+)", text.zh)), text
    assert set(words.VERDICT) == set(Verdict)
    assert set(words.SORT) == set(ErrorKind)
    assert set(words.HOW) == {SAME, EQUIVALENT, SIMILAR, MOVED, GROUP, EXTRA, NOTHING}


@pytest.mark.parametrize(
    ("names", "unwanted"),
    [
        (("text", "json", "sheets", "html"), {"torch", "rich", "openpyxl", "numpy", "h5py"}),
        (("msaccucmp",), {"torch", "rich", "openpyxl", "h5py"}),  # computes figures of its own
    ],
    ids=["reports", "msaccucmp"],
)
def test_reports_do_not_import_torch(names: tuple[str, ...], unwanted: set[str]) -> None:
    modules = ", ".join(f"torchferry.accuracy.report.{name}" for name in names)
    program = f"import sys, torchferry.accuracy.compare.matching, torchferry.accuracy.compare.statistics, {modules}; "
    program += f"sys.exit(bool({unwanted!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
