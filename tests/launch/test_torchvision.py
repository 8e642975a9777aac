"""torchvision beside a torch of another build: imported where the simulated device runs, explained elsewhere."""

from __future__ import annotations

from pathlib import Path

from tests.cli.commands import make

from .ways import ferry_run

# As torchvision's package is laid out: it describes an operator that its compiled half was to bring.
PACKAGE = """\
import torch
@torch.library.register_fake("torchvision::nms")
def nms(dets, scores, iou_threshold):
    return dets
"""
PROGRAM = "import torch, torchvision\nprint(torch.ones(2).cuda().device, torchvision.nms.__name__)\n"


def test_it_is_imported_on_the_simulated_device(tmp_path: Path) -> None:
    package = make(tmp_path / "torchvision", **{"_C.so": "for another torch"})
    (package / "__init__.py").write_text(PACKAGE)
    make(tmp_path, train=PROGRAM)
    result = ferry_run("-q", "--sim", "--to", "ascend", tmp_path / "train.py")
    assert result.stdout == "npu:0 nms\n", result.stderr


def test_it_is_explained_where_it_fails(tmp_path: Path) -> None:
    make(tmp_path, train="import torch\nraise RuntimeError('operator torchvision::nms does not exist')\n")
    result = ferry_run("--sim", "--to", "ascend", tmp_path / "train.py")
    assert "rule any.torchvision-operators" in result.stderr
