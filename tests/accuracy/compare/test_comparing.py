"""Two records held against each other: who is to blame, and what is said of the rest."""

from __future__ import annotations

import importlib.util
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.accuracy.compare.records import GOLDEN, MINE, Writing, write_network, zero_tail
from torchferry.accuracy.compare import network
from torchferry.accuracy.compare.comparing import ComparingPlan, compare_files
from torchferry.accuracy.compare.model import PairRows, RankComparison
from torchferry.accuracy.compare.network import notes_of_comparison
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.judge.model import ErrorKind, Verdict
from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.errors import InputError


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return write_network(tmp_path / "gpu.h5")


def compared(tmp_path: Path, golden: Path | None, **changes: Any) -> RankComparison:
    mine = write_network(tmp_path / "npu.h5", changes.pop("header", MINE), **changes)
    (comparison,) = compare_files(mine, golden)
    return comparison


def verdicts(comparison: RankComparison) -> list[str]:
    return [pair.judgement.verdict.value for pair in comparison.pairs]


def blamed(comparison: RankComparison) -> str:
    if comparison.culprit is None:
        return ""
    call = comparison.pairs[comparison.culprit].mine
    assert call is not None
    return f"{call.operator} {call.module}"


def test_equal(tmp_path: Path, golden: Path) -> None:
    comparison = compared(tmp_path, golden)
    assert verdicts(comparison) == ["equal"] * 5
    assert comparison.culprit is None and comparison.nbytes > 0


def test_the_first_fault_is_the_culprit_and_what_follows_is_inherited(tmp_path: Path, golden: Path) -> None:
    comparison = compared(tmp_path, golden, wrong={"aten::relu": zero_tail})
    assert blamed(comparison) == "aten::relu layer1"
    assert verdicts(comparison) == ["equal", "fault", "inherited", "inherited", "inherited"]
    judgement = comparison.pairs[1].judgement
    assert judgement.own_error and judgement.own_error > 0.1


def test_differences_that_came_in_are_nobodys_fault(tmp_path: Path, golden: Path) -> None:
    comparison = compared(tmp_path, golden, noise=1e-2)
    assert comparison.culprit is None
    assert Counter(verdicts(comparison)) == {"inherited": 5}


def test_an_extra_copy_changes_nothing(tmp_path: Path, golden: Path) -> None:
    comparison = compared(tmp_path, golden, extra=True)
    hows = [(pair.mine.operator, pair.how) for pair in comparison.pairs if pair.mine and pair.golden is None]
    assert hows == [("aten::clone", "extra")]
    assert comparison.culprit is None
    assert [note.en.partition(":")[0] for note in comparison.notes] == ["how calls were judged"]


def test_without_golden_each_call_is_held_against_double_precision(tmp_path: Path) -> None:
    comparison = compared(tmp_path, None, wrong={"aten::exp": zero_tail})
    assert blamed(comparison) == "aten::exp layer2"
    assert comparison.golden is None and comparison.pairs[3].judgement.sort is ErrorKind.TAIL
    assert [pair.judgement.verdict for pair in comparison.pairs].count(Verdict.FAULT) == 1


def test_without_pytorch_golden_is_taken_for_right(
    tmp_path: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find_spec(name, *rest)
    )
    monkeypatch.setattr("torchferry.accuracy.compare.network.find_spec", lambda name: None)
    comparison = compared(tmp_path, golden, wrong={"aten::relu": zero_tail})
    assert blamed(comparison) == "aten::relu layer1"
    assert verdicts(comparison) == ["equal", "fault", "inherited", "inherited", "inherited"]
    assert comparison.pairs[1].judgement.basis == "golden"
    assert "PyTorch is not installed" in comparison.notes[0].en


@pytest.mark.parametrize(
    ("wrong", "verdict", "sort"),
    [
        (lambda result: result * (1 + 1e-6), "normal", ""),
        (lambda result: result * 1.5, "fault", "values"),
        (lambda result: result * torch.nan, "fault", "nan"),
        (lambda result: result / 0.0, "fault", "infinite"),
        (lambda result: result * 0.0, "fault", "zero"),
        (lambda result: result + 1e-4 * torch.ones_like(result), "reduced", "precision"),
    ],
)
def test_judgements_by_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any, verdict: str, sort: str
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find_spec(name, *rest)
    )

    def record(name: str, mistakes: dict[str, Any]) -> Path:
        call = Writing(tmp_path / name, GOLDEN, mistakes)
        call("aten::mm", *torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0)))
        call.close()
        return tmp_path / name

    (comparison,) = compare_files(record("a.h5", {"aten::mm": wrong}), record("b.h5", {}))
    judgement = comparison.pairs[0].judgement
    assert (judgement.verdict.value, judgement.sort.value) == (verdict, sort)


def test_the_guides_rule_for_whole_networks(tmp_path: Path, golden: Path) -> None:
    fine = compared(tmp_path, golden, noise=1e-7)
    assert [(each.what, each.mean_abs < 1e-4) for each in fine.network] == [("output", True), ("loss", True)]
    far = compared(tmp_path, golden, noise=1e-1)
    assert [(each.what, each.mean_abs < 1e-4) for each in far.network] == [("output", False), ("loss", False)]


def test_curves_of_several_steps(tmp_path: Path) -> None:
    golden = write_network(tmp_path / "gpu.h5", steps=3)
    comparison = compared(tmp_path, golden, steps=3, wrong={"aten::mean": lambda loss: loss + 1})
    (curve,) = comparison.curves
    assert curve.name == "loss" and curve.steps == (1, 2, 3)
    for ours, theirs in zip(curve.mine, curve.golden, strict=True):
        assert ours is not None and theirs is not None and ours - theirs == pytest.approx(1.0)


def test_ranks_are_compared_with_their_like(tmp_path: Path) -> None:
    for name, header in (("gpu", GOLDEN), ("npu", MINE)):
        for rank in (0, 1):
            wrong = {"aten::relu": zero_tail} if (name, rank) == ("npu", 1) else {}
            write_network(tmp_path / f"{name}.rank{rank}.h5", replace(header, rank=rank, world=2), wrong)
    comparisons = compare_files(tmp_path / "npu.h5", tmp_path / "gpu.h5")
    assert [(each.mine.rank, each.culprit) for each in comparisons] == [(0, None), (1, 1)]


def test_a_rank_that_one_side_has_is_left_out_and_said(tmp_path: Path) -> None:
    for name, ranks in (("gpu", (0,)), ("npu", (0, 1))):
        for rank in ranks:
            write_network(tmp_path / f"{name}.rank{rank}.h5", replace(GOLDEN, rank=rank, world=2))
    (comparison,) = compare_files(tmp_path / "npu.h5", tmp_path / "gpu.h5")
    assert any("ranks 1 are in only one of the recordings" in note.en for note in comparison.notes)


def test_a_record_that_was_cut_off_is_compared_as_far_as_it_goes(tmp_path: Path, golden: Path) -> None:
    mine = write_network(tmp_path / "npu.h5", MINE)
    data = mine.read_bytes()
    mine.write_bytes(data[: len(data) * 2 // 3])
    (comparison,) = compare_files(mine, golden)
    assert any("cut off" in note.en for note in comparison.notes)
    assert any(pair.mine and pair.golden for pair in comparison.pairs)


def test_records_with_nothing_in_common(tmp_path: Path, golden: Path) -> None:
    call = Writing(tmp_path / "other.h5", GOLDEN)
    call("aten::bernoulli", torch.rand(4))
    call.close()
    with pytest.raises(InputError, match="no operator in common"):
        compare_files(tmp_path / "other.h5", golden)


def test_statistics_need_a_second_record(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no elements of results; give a second recording"):
        compared(tmp_path, None, header=replace(MINE, kept=Kept.INPUTS))


def test_progress_and_threads_do_not_change_the_outcome(tmp_path: Path, golden: Path) -> None:
    mine = write_network(tmp_path / "npu.h5", MINE, {"aten::relu": zero_tail})
    seen: list[tuple[int, int]] = []
    (one,) = compare_files(mine, golden, ComparingPlan(1, lambda done, count: seen.append((done, count))))
    (many,) = compare_files(mine, golden, ComparingPlan(8))
    done, counts = zip(*seen, strict=True)
    assert len(set(counts)) == 1 and list(done) == sorted(set(done)) and done[-1] == counts[0]  # bytes
    assert one.pairs == many.pairs


def test_the_first_wrong_call_is_told_before_the_others_are_done(tmp_path: Path, golden: Path) -> None:
    """Only the first, and only once all before it have been judged."""
    mine = write_network(tmp_path / "npu.h5", MINE, {"aten::relu": zero_tail, "aten::exp": zero_tail})
    happened: list[str] = []
    plan = ComparingPlan(
        1,
        lambda done, count: happened.append("done" if done == count else "not done"),
        lambda pair: happened.append(pair.mine.operator if pair.mine else ""),
    )
    compare_files(mine, golden, plan)
    told = [each for each in happened if each.startswith("aten::")]
    assert len(told) == 1 and happened.index(told[0]) < happened.index("done")
    assert compare_files(mine, golden)[0].culprit is not None


def test_thoroughly_all_is_held_against_double_precision(tmp_path: Path, golden: Path) -> None:
    mine = write_network(tmp_path / "npu.h5", MINE, {"aten::exp": zero_tail})
    (quick,) = compare_files(mine, None)
    (thorough,) = compare_files(mine, None, ComparingPlan(is_thorough=True))
    bases = [[pair.judgement.basis for pair in each.pairs] for each in (quick, thorough)]
    assert "bits" in bases[0] and set(bases[1]) == {"float64"}
    assert [pair.judgement.verdict for pair in quick.pairs] == [
        pair.judgement.verdict for pair in thorough.pairs
    ]


def test_what_is_kept_does_not_grow_with_the_records(
    tmp_path: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a limit, figures are kept of calls that are not as they should be, and the report says so."""
    monkeypatch.setattr("torchferry.accuracy.compare.model.DIFFERENCES", 2)
    comparison = compared(tmp_path, golden, wrong={"aten::exp": zero_tail})
    assert [bool(pair.outputs) for pair in comparison.pairs] == [True, False, False, True, False]
    assert "only the verdict is reported" in comparison.notes[0].en


def test_what_makes_two_records_hard_to_compare_is_noted() -> None:
    mine = RecordHeader(Kept.TENSORS, "/home/a/train.py --lr 1", "npu", "2.12.1+cpu")
    same = replace(mine, program="train.py", torch="2.12.1+cu130")
    other = replace(mine, program="gan.py", torch="2.13.0")
    assert notes_of_comparison(mine, same, PairRows()) == ()
    said = [note.en for note in notes_of_comparison(mine, other, PairRows())]
    assert said[0] == "the recordings are of different programs: /home/a/train.py --lr 1 and gan.py"
    assert said[1].endswith("2.12.1+cpu here, 2.13.0 in golden")


def test_what_is_read_for_curves_is_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(network, "_READ_AT_ONCE", 0)
    write_network(tmp_path / "a.h5")
    released = 0
    with open_record(tmp_path / "a.h5") as record:
        calls = [each for each in record.calls if each.outputs]
        gathering = network.Gathering()
        losses = [
            replace(each, step=step, phase="forward", operator="aten::mean", outputs=(scalar,))
            for step, each in enumerate(calls[:3], 1)
            for scalar in [replace(each.outputs[0], shape=(), stride=(), dtype="float32")]
        ]
        list(gathering.passing(losses))

        def release() -> None:
            nonlocal released
            released += 1

        monkeypatch.setattr(record, "release", release)
        assert len(gathering.losses(record)) == 3 and released == 4
