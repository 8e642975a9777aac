"""Dumps of msprobe, held against each other and against our records: the first API that differs is named."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import torchferry.accuracy
from tests.accuracy.file.test_api_dump import EXAMPLES, REAL, described, write_dump
from tests.accuracy.file.test_dumps import write
from torchferry.accuracy.compare.comparing import compare_files
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.judge.model import ErrorKind, Verdict
from torchferry.accuracy.model import Kept
from torchferry.cli.main import main
from torchferry.report.safe import one_line


def compared(mine: Path, golden: Path) -> RankComparison:
    (comparison,) = compare_files(mine, golden)
    return comparison


def named(comparison: RankComparison) -> str:
    """The culprit, by its name in the dump."""
    if comparison.culprit is None:
        return ""
    pair = comparison.pairs[comparison.culprit]
    call = pair.mine or pair.golden
    return "" if call is None else one_line(call.node)


def verdicts(comparison: RankComparison) -> dict[str, Verdict]:
    return {pair.mine.node: pair.judgement.verdict for pair in comparison.pairs if pair.mine is not None}


def call(*outputs: dict[str, Any], inputs: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"input_args": list(inputs), "input_kwargs": {}, "output": list(outputs)}


def test_tensors_name_the_first_api_that_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(EXAMPLES / "npu"), str(EXAMPLES / "gpu"), "-q"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Functional::linear computes wrong results")
    assert "train.py:20, Functional.linear.0.forward" in out
    assert "called from  train.py:20 forward: return self.head(features.flatten(1)) <" in out
    found = verdicts(compared(EXAMPLES / "npu", EXAMPLES / "gpu"))
    assert found["Functional.gelu.0.forward"] is Verdict.EQUAL


@pytest.mark.parametrize("version", ["1.0", "8.1"])
def test_statistics_of_other_versions_name_it_too(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = REAL / "statistics_26.2", REAL / f"statistics_{version}"
    assert main(["compare", str(mine), str(golden), "-q"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("the runs diverge at step 1, head.0: Functional::linear, the values differ")
    assert '"step": [0], "tensor": {"list": ["Functional.linear.0.forward"]}' in out


def test_equal_checksums_are_equal_bits_and_equal_figures_are_not() -> None:
    same = compared(REAL / "md5_26.2", REAL / "md5_26.2")
    assert {pair.judgement.verdict for pair in same.pairs if pair.outputs} == {Verdict.EQUAL}
    alike = compared(REAL / "statistics_8.1", REAL / "statistics_1.0")
    assert {pair.judgement.verdict for pair in alike.pairs if pair.mine and pair.golden} == {Verdict.NORMAL}


def test_of_checksums_alone_only_the_first_difference_is_told(tmp_path: Path) -> None:
    def dump(name: str, *sums: str) -> Path:
        tensors = [{"dtype": "torch.float32", "shape": [3], "md5": each} for each in sums]
        calls = [call(out, inputs=(given,)) for given, out in pairwise(tensors)]
        return write_dump(
            tmp_path / name, {f"Tensor.add.{at}.forward": each for at, each in enumerate(calls)}
        )

    comparison = compared(dump("mine", "aa", "bb", "c0", "d0"), dump("golden", "aa", "bb", "cc", "dd"))
    assert list(verdicts(comparison).values()) == [Verdict.EQUAL, Verdict.UNEXPLAINED, Verdict.INHERITED]
    assert named(comparison) == "Tensor.add.1.forward"


def test_a_nan_on_one_side_is_named(tmp_path: Path) -> None:
    x = torch.arange(4.0)
    bad = {**described(x), **dict.fromkeys(("Max", "Min", "Mean", "Norm"), math.nan)}
    golden = write_dump(
        tmp_path / "golden", {"Torch.log.0.forward": call(described(x), inputs=(described(x),))}
    )
    mine = write_dump(tmp_path / "mine", {"Torch.log.0.forward": call(bad, inputs=(described(x),))})
    comparison = compared(mine, golden)
    assert comparison.culprit is not None
    assert comparison.pairs[comparison.culprit].judgement.sort is ErrorKind.NAN
    assert named(compared(mine, mine)) == ""  # on both sides it is none's fault


def test_other_values_of_an_argument_are_named_before_their_consequences(tmp_path: Path) -> None:
    x = torch.arange(1.0, 5.0)

    def dump(name: str, factor: float) -> Path:
        scalar = {"type": "float", "value": factor}
        return write_dump(
            tmp_path / name,
            {
                "Tensor.__mul__.0.forward": call(described(x * factor), inputs=(described(x), scalar)),
                "Tensor.exp.0.forward": call(described((x * factor).exp()), inputs=(described(x * factor),)),
            },
        )

    comparison = compared(dump("mine", 1.5), dump("golden", 1.0))
    assert named(comparison) == "Tensor.__mul__.0.forward"
    assert comparison.pairs[0].judgement.verdict is Verdict.PROGRAM
    assert comparison.pairs[1].judgement.verdict is Verdict.INHERITED


def _additions(folder: Path, chosen: Sequence[int], numbers: Sequence[int]) -> Path:
    """A dump of those of some additions that are chosen, with these numbers; each has a line of its own."""
    values = [torch.arange(1.0, 5.0) * at for at in range(1, 7)]
    data, stacks = {}, {}
    for at, number in zip(chosen, numbers, strict=True):
        name = f"Tensor.add.{number}.forward"
        scalar = {"type": "int", "value": at}
        data[name] = call(described(values[at + 1]), inputs=(described(values[at]), scalar))
        stacks[name] = [f"File /home/user/train.py, line {at}, in main, \n x = x + {at}"]
    return write_dump(folder, data, stack=stacks)


def test_one_call_more_does_not_misalign_the_others(tmp_path: Path) -> None:
    golden = _additions(tmp_path / "golden", range(5), range(5))
    mine = _additions(tmp_path / "mine", (0, 2, 3, 4), range(4))
    pairs = list(compared(mine, golden).pairs)
    assert [each.golden.node for each in pairs if each.mine is None and each.golden] == [
        "Tensor.add.1.forward"
    ]
    assert all(each.judgement.verdict is Verdict.NORMAL for each in pairs if each.mine)


def test_where_only_some_calls_were_dumped_their_numbers_tell_which(tmp_path: Path) -> None:
    golden = _additions(tmp_path / "golden", range(5), range(5))
    mine = _additions(tmp_path / "mine", (3,), (3,))
    (mine / "stack.json").unlink()
    (pair,) = [each for each in compared(mine, golden).pairs if each.mine]
    assert pair.golden is not None and pair.golden.node == "Tensor.add.3.forward"


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_what_a_backward_call_keeps_from_its_forward_call_explains_it(tmp_path: Path, task: str) -> None:
    """x.square() of other inputs has other gradients, though the gradient that comes in is the same."""

    def dump(name: str, x: torch.Tensor) -> Path:
        names = {"x": x, "y": x.square(), "one": torch.ones(4), "dx": 2 * x}
        (tmp_path / name / "dump_tensor_data").mkdir(parents=True)
        for file, values in names.items():
            torch.save(values, tmp_path / name / "dump_tensor_data" / f"{file}.pt")
        t = {file: described(values, data_name=f"{file}.pt") for file, values in names.items()}
        forward, backward = call(t["y"], inputs=(t["x"],)), {"input": [t["one"]], "output": [t["dx"]]}
        data = {"Tensor.square.0.forward": forward, "Tensor.square.0.backward": backward}
        return write_dump(tmp_path / name, data, task)

    x = torch.arange(1.0, 5.0)
    comparison = compared(dump("mine", x * 1.1), dump("golden", x))
    assert set(verdicts(comparison).values()) == {Verdict.INHERITED} and named(comparison) == ""


def test_gradients_that_are_rounding_alone_are_no_fault(tmp_path: Path) -> None:
    """As those of a bias before a batch norm: no two devices agree on them."""
    large, noise = torch.randn(64), torch.randn(4) * 1e-8

    def dump(name: str, bias: torch.Tensor) -> Path:
        entry = {"input": [described(large)], "output": [described(large * 2), described(bias)]}
        return write_dump(tmp_path / name, {"Functional.conv2d.0.backward": entry})

    assert named(compared(dump("a", noise), dump("b", noise.flip(0) * -1.5))) == ""
    assert named(compared(dump("c", noise + 0.1), dump("d", noise + 0.2))) == "Functional.conv2d.0.backward"


# A dump and a record of operators.


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.head = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 3))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(functional.gelu(self.conv(images)).flatten(1))
        return found


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the dumps in examples/msprobe, recorded."""
    torch.manual_seed(0)
    net = _Net()
    images = torch.randn(2, 1, 4, 4)
    path = tmp_path_factory.mktemp("record") / "gpu.h5"
    with torchferry.accuracy.dumper(use_dump=True, dump_path=path):
        functional.cross_entropy(net(images), torch.tensor([0, 2])).backward()  # type: ignore[no-untyped-call]
    return path


def test_a_record_and_a_right_dump_agree(record: Path) -> None:
    for mine, golden in ((record, EXAMPLES / "gpu"), (EXAMPLES / "gpu", record)):
        comparison = compared(mine, golden)
        assert named(comparison) == "" and comparison.mine.kept is Kept.TENSORS
        found = [(pair.mine, pair.golden, pair.judgement.verdict) for pair in comparison.pairs]
        assert len(found) == 5
        assert all(
            one and other and verdict in (Verdict.EQUAL, Verdict.NORMAL) for one, other, verdict in found
        )


def test_a_wrong_dump_is_found_with_a_record_as_golden(record: Path) -> None:
    assert named(compared(EXAMPLES / "npu", record)) == "Functional.linear.0.forward"


def test_statistics_of_a_dump_are_held_against_a_record(record: Path) -> None:
    comparison = compared(REAL / "statistics_26.2", record)
    assert named(comparison) == "Functional.linear.0.forward"
    right = compared(REAL / "statistics_8.1", record)
    assert named(right) == "" and right.mine.kept is Kept.STATISTICS
    matched = {pair.mine.node: pair.golden for pair in right.pairs if pair.mine}
    assert matched["Module.head.Sequential.forward.0"] is not None  # its last operator
    assert matched["Module.head.Sequential.forward.0"].operator == "aten::addmm"


def test_a_dump_alone_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(EXAMPLES / "gpu")]) == 2
    assert "give a second dump" in capsys.readouterr().err


def test_tensors_of_one_shape_in_files_of_other_tools_are_told_apart(tmp_path: Path) -> None:
    """They have no places in one file by which they could be known."""
    x = torch.arange(4.0)
    write(tmp_path / "golden", "relu", 0, [x], [x])
    write(tmp_path / "golden", "exp", 1, [x], [x + 1])
    write(tmp_path / "mine", "relu", 0, [x], [x])
    write(tmp_path / "mine", "exp", 1, [x], [x + 2])
    pairs = compared(tmp_path / "mine", tmp_path / "golden").pairs
    assert [each.outputs[0].metrics is not None and each.outputs[0].metrics.max_abs for each in pairs] == [
        0.0,
        1.0,
    ]


def test_json_tells_the_stack(capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", str(EXAMPLES / "npu"), str(EXAMPLES / "gpu"), "--format", "json", "-q"])
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert comparison["stack"][0].startswith("train.py:20 forward") and comparison["mine"]["apis"] is True


def test_modules_alone_are_held_against_their_last_operators(record: Path, tmp_path: Path) -> None:
    """As dumps of level L0 have them."""
    folder = REAL / "statistics_26.2/step0/proc100"
    data = json.loads((folder / "dump.json").read_text())["data"]
    chosen = {name: each for name, each in data.items() if name.startswith("Module.")}
    write_dump(tmp_path, chosen)
    comparison = compared(tmp_path, record)
    assert named(comparison) == "Module.head.0.Linear.forward.0"
    assert verdicts(comparison)["Module.conv.Conv2d.forward.0"] is Verdict.NORMAL
