"""Modules that no person writes, but programs do: they must neither stop a run nor take for ever."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.conversion.rewriting import run, target
from torchferry.conversion.file import FileJob
from torchferry.conversion.project import convert_file
from torchferry.conversion.rule import Proposal, Rule, RuleSet, all_rules, prepared
from torchferry.conversion.site import Site
from torchferry.outcome import FileStatus
from torchferry.text import Text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("x = " + " + ".join(["'cuda:0'"] * 900), "'npu:0' + 'npu:0'", id="a sum of 900 strings"),
        pytest.param(
            "x = torch.device('cuda')" + ".f()" * 800, "torch.device('npu')", id="800 calls in a row"
        ),
        pytest.param(
            "x = {" + ", ".join(f"'device{i}': 'cuda'" for i in range(5000)) + "}",
            "'device4999': 'npu'",
            id="a dictionary of 5,000",
        ),
        pytest.param("devices = [" + "'cuda', " * 5000 + "]", "'npu', 'npu'", id="a list of 5,000"),
        pytest.param("x.cuda()\n" * 3000, "x.npu()\nx.npu()", id="3,000 moves"),
    ],
)
def test_large(source: str, expected: str) -> None:
    new_text = run(f"import torch\n{source}\n").new_text
    assert new_text is not None
    assert expected in new_text
    assert "cuda" not in new_text


@pytest.mark.parametrize(
    ("source", "count"),
    [
        pytest.param(
            "if x.is_cuda: pass\n" + "elif x.is_cuda: x.cuda()\n" * 500, 1001, id="a chain of 500 elifs"
        ),
        pytest.param("y = " + " + ".join(["x.cuda()"] * 3000), 3000, id="a sum of 3,000 terms"),
        pytest.param("y = x" + ".cuda()" * 3000, 3000, id="3,000 calls in a row"),
    ],
)
def test_deeper_than_the_stack(source: str, count: int) -> None:
    limit = sys.getrecursionlimit()
    data = f"import torch\n{source}\n".encode()
    rules = prepared((rule for rule in all_rules() if not rule.option), target("ascend"))
    outcome = convert_file("m.py", data, FileJob(target("ascend"), RuleSet(rules)))
    assert outcome.record.status is FileStatus.CHANGED, outcome.record.reason
    new = outcome.new_data or b""
    assert new == data.replace(b"cuda", b"npu").replace(
        b"import torch\n", b"import torch\nimport torch_npu\n"
    )
    assert new.count(b"npu") == count + 1
    assert sys.getrecursionlimit() == limit


def test_without_room_for_a_larger_stack_the_file_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    data = ("import torch\ny = " + " + ".join(["x.cuda()"] * 3000) + "\n").encode()
    outcome = convert_file("m.py", data, FileJob(target("ascend"), RuleSet(())))
    assert outcome.record.status is FileStatus.FAILED
    assert "no room for a larger stack" in outcome.record.reason


def test_what_python_itself_refuses_is_reported() -> None:
    data = ("import torch\nx = " + "(" * 300 + "'cuda:0'" + ")" * 300 + "\n").encode()
    outcome = convert_file("m.py", data, FileJob(target("ascend"), RuleSet(())))
    assert outcome.record.status is FileStatus.FAILED
    assert outcome.new_data is None


def test_a_mistake_in_a_rule_costs_one_file_only() -> None:
    def check(site: Site[ast.Call]) -> Iterator[Proposal]:
        raise KeyError("oops")
        yield

    broken = Rule("TF999", "broken", Text("", ""), triggers=("cuda",), nodes=(ast.Call,), check=check)
    outcome = convert_file("m.py", b"x.cuda()\n", FileJob(target("ascend"), RuleSet([broken])))
    assert outcome.record.status is FileStatus.FAILED
    assert outcome.new_data is None
    assert [item.rule for item in outcome.findings] == ["TF903"]
    assert "KeyError" in outcome.findings[0].message.en


@pytest.mark.parametrize(("size", "status"), [(1_600_000, FileStatus.FAILED), (20_000, FileStatus.CHANGED)])
def test_a_file_that_would_fill_the_memory_is_named_and_left(size: int, status: FileStatus) -> None:
    """Of one line, too: 10 MB of calls would take some 7 GB."""
    data = b"import torch\nx = [" + b"x.cuda()," * (size // 3) + b"]\n"
    rules = prepared((rule for rule in all_rules() if not rule.option), target("ascend"))
    outcome = convert_file("m.py", data, FileJob(target("ascend"), RuleSet(rules)))
    assert outcome.record.status is status
    if status is FileStatus.FAILED:
        assert [item.rule for item in outcome.findings] == ["TF902"]
        assert "too large to be taken apart" in outcome.record.reason


def test_commands_within_commands_do_not_fill_the_memory() -> None:
    """A shell script of 600 kB took gigabytes: each of its 200,000 levels held the text of those in it."""
    data = b"export CUDA_VISIBLE_DEVICES=0\n" + b"$(" * 200_000 + b"nvidia-smi" + b")" * 200_000 + b"\n"
    rules = prepared((rule for rule in all_rules() if not rule.option), target("ascend"))
    outcome = convert_file("run.sh", data, FileJob(target("ascend"), RuleSet(rules)))
    assert outcome.record.status is FileStatus.CHANGED, outcome.record.reason
    assert (outcome.new_data or b"").startswith(b"export ASCEND_RT_VISIBLE_DEVICES=0\n$($(")
