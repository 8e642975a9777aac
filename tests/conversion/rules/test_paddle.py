"""TF605: PaddlePaddle programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.rewriting import VENDORS, rewritten, said, said_of, target
from torchferry.conversion.project import Plan, examine_project
from torchferry.report.findings import REPORTS

PROGRAM = """\
import paddle
paddle.set_device("gpu:0")
place = paddle.CUDAPlace(0)
paddle.device.cuda.empty_cache()
net = paddle.DataParallel(net)
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("from paddles import set_device\nset_device('gpu')", id="another package"),
        pytest.param("x = 'paddle'", id="a word"),
        pytest.param("# import paddle", id="a comment"),
    ],
)
def test_noop(source: str) -> None:
    assert said_of(source, rule="TF605") == []


@pytest.mark.parametrize("name", [*VENDORS, "portable"])
def test_no_all_clear(name: str) -> None:
    found = said(PROGRAM, name, rule="TF605")
    assert [kind for _, kind, _ in found] == ["todo"] * 5
    assert [place for _, _, place in found][1:] == [
        "paddle.set_device",
        "paddle.CUDAPlace",
        "paddle.device.cuda.empty_cache",
        "paddle.DataParallel",
    ]


def test_the_code_is_left_as_it_is() -> None:
    assert rewritten(PROGRAM) == PROGRAM


def test_launch_scripts(tmp_path: Path) -> None:
    line = "python -m paddle.distributed.launch --gpus 0,1 train.py -o Global.device=gpu\n"
    (tmp_path / "run.sh").write_text(f"export CUDA_VISIBLE_DEVICES=0,1\n{line}")
    report = examine_project(tmp_path, Plan(target("tecorigin"))).report("scan")
    found = [item.before for item in report.findings if item.rule == "TF605"]
    assert found == ["paddle.distributed.launch", "Global.device=gpu"]
    assert b"Nothing needs your attention" not in REPORTS.render(report, "text")
