"""Large tensors of which slices were kept: compared by these and by the statistics of the whole, and judged where an
operator computes each slice by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchferry.accuracy.compare.comparing import compare_files
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.judge.model import CallPair, Verdict
from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record.recorder import Recorder
from torchferry.accuracy.record.slicing import Slicing

HEADER = RecordHeader(
    Kept.TENSORS, "test", "cpu", torch.__version__, in_part="4 slices of tensors over 4.0 KiB"
)
Change = Callable[[torch.Tensor], object]


class Changed(TorchDispatchMode):
    """One operator computes something else."""

    def __init__(self, operator: str, change: Change) -> None:
        super().__init__()
        self._operator, self._change = operator, change

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.name() == self._operator:
            self._change(result)
        return result


def recorded(path: Path, operator: str = "", change: Change = lambda _: None) -> Path:
    """Gelu, a convolution, a sum of all elements."""
    torch.manual_seed(0)
    x, weight = torch.randn(32, 3, 8, 8), torch.randn(5, 3, 3, 3)
    recorder = Recorder(path, HEADER, slicing=Slicing(4096, 4))
    with Changed(operator, change):
        recorder.start()
        torch.conv2d(torch.nn.functional.gelu(x), weight).sum()
        recorder.stop()
    return path


def compared(
    tmp_path: Path, operator: str = "", change: Change = lambda _: None, *, alone: bool = False
) -> RankComparison:
    """The changed run against the right one."""
    golden = recorded(tmp_path / "golden.h5")
    mine = recorded(tmp_path / "mine.h5", operator, change)
    (found,) = compare_files(mine, None if alone else golden)
    return found


def pair_of(comparison: RankComparison, operator: str) -> CallPair:
    """The pair of the only call of an operator."""
    (found,) = (each for each in comparison.pairs if each.mine and each.mine.operator == operator)
    return found


def test_what_is_right(tmp_path: Path) -> None:
    found = compared(tmp_path)
    assert found.culprit is None and {pair.judgement.verdict for pair in found.pairs} <= {
        Verdict.EQUAL,
        Verdict.NORMAL,
    }
    assert found.notes[0].en == "mine: recorded in part: 4 slices of tensors over 4.0 KiB"
    pair = pair_of(found, "aten::gelu")
    assert pair.outputs[0].metrics is not None and pair.outputs[0].metrics.count == 4 * 3 * 8 * 8
    assert pair.judgement.why is not None and "4 slices were judged" in pair.judgement.why.en


def test_what_is_wrong_everywhere_is_a_fault(tmp_path: Path) -> None:
    for operator in ("aten::gelu", "aten::convolution"):
        for alone in (False, True):
            found = compared(tmp_path, operator, lambda result: result.mul_(1.01), alone=alone)
            assert found.culprit is not None
            culprit = found.pairs[found.culprit]
            assert culprit.mine is not None and culprit.mine.operator == operator
            assert culprit.judgement.verdict is Verdict.FAULT and "1.01 times" in culprit.judgement.why.en  # type: ignore[union-attr]


def test_what_is_wrong_in_slices_that_were_not_kept_is_seen_in_the_statistics(tmp_path: Path) -> None:
    found = compared(tmp_path, "aten::gelu", lambda result: result[3].mul_(1.5))
    assert found.culprit is not None
    culprit = found.pairs[found.culprit]
    assert culprit.mine is not None and culprit.mine.operator == "aten::gelu"
    assert culprit.judgement.verdict is Verdict.SUSPICIOUS
    assert culprit.judgement.why is not None and "that were not recorded differ" in culprit.judgement.why.en
    assert pair_of(found, "aten::sum").judgement.verdict is Verdict.INHERITED


def test_files_that_another_tool_has_rewritten(tmp_path: Path) -> None:
    golden = recorded(tmp_path / "golden.h5")
    mine = recorded(tmp_path / "mine.h5", "aten::convolution", lambda result: result.mul_(1.01))
    for path in (golden, mine):
        rewritten(path)
    (found,) = compare_files(mine, golden)
    assert found.culprit is not None
    culprit = found.pairs[found.culprit]
    assert culprit.mine is not None and culprit.mine.operator == "aten::convolution"
    assert pair_of(found, "aten::gelu").judgement.verdict is Verdict.EQUAL


def rewritten(path: Path) -> None:
    """As h5repack does, which compresses."""
    aside = path.with_suffix(".aside")
    with h5py.File(path) as old, h5py.File(aside, "w") as new:
        new.attrs.update(old.attrs)
        for name in old:
            old.copy(name, new)
    aside.replace(path)


def test_what_does_not_depend_on_the_slices_alone_is_not_judged_by_them(tmp_path: Path) -> None:
    found = compared(tmp_path, alone=True)
    judgement = pair_of(found, "aten::sum").judgement
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.why is not None and "recorded in part" in judgement.why.en
    assert pair_of(found, "aten::gelu").judgement.verdict is Verdict.NORMAL
