"""The table that the profiler prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.readiness.trace.making import calls, the
from torchferry.errors import InputError
from torchferry.readiness.model import Phase, TensorSpec
from torchferry.readiness.trace import read_trace

OF_2020 = """\
epoch 1 loss 0.3
-----------------------------------  ---------------  ---------------  ---------------  ---------------
Name                                 Self CPU total %  Self CPU total   CPU total %      Number of Calls
-----------------------------------  ---------------  ---------------  ---------------  ---------------
mkldnn_convolution                   60.00%           1.500ms          60.00%           4
conv2d                               0.10%            10.000us         70.00%           4
MkldnnConvolutionBackward            0.10%            10.000us         70.00%           4
threshold_backward                   20.00%           2.000s           20.00%           3
max_pool2d_with_indices_back...      20.00%           5.000us          20.00%           2
-----------------------------------  ---------------  ---------------  ---------------  ---------------
Self CPU time total: 2.500ms
aten::not_in_the_table               1%               1us              1%               1
"""
ON_A_GPU = """\
---------------  ------------  ------------  ------------  ------------
           Name      Self CPU     Self CUDA   # of Calls  Input Shapes
---------------  ------------  ------------  ------------  ------------
       aten::mm       5.000us       1.000ms             3  [[2, 3], [3, 4]]
   aten::linear       5.000us       0.000us             3  [[2, 3]]
---------------  ------------  ------------  ------------  ------------
"""


def _write(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "table.txt"
    path.write_text(text, encoding)
    return path


def test_the_table_of_the_guide(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    with torch.autograd.profiler.profile() as recorded:
        model(torch.randn(2, 3, 8, 8)).sum().backward()
    printed = recorded.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1)
    capture = read_trace(_write(tmp_path, f"some output\n{printed}\nmore output\n"))
    found = calls(capture)
    assert found["aten::relu"] == found["aten::threshold_backward"] == 1
    assert "aten::conv2d" not in found
    assert the(capture, "aten::convolution").expanded
    assert not the(capture, "aten::mkldnn_convolution").expanded
    assert the(capture, "aten::relu").seconds > 0
    assert {"flat", "no_shapes", "no_places", "no_step"} <= set(capture.notes)
    assert capture.judged()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_table_of_2020(encoding: str, tmp_path: Path) -> None:
    capture = read_trace(_write(tmp_path, OF_2020, encoding))
    assert calls(capture) == {
        "aten::mkldnn_convolution": 4,
        "aten::threshold_backward": 3,
        "aten::max_pool2d_with_indices_backward": 2,
    }
    assert the(capture, "aten::mkldnn_convolution").seconds == pytest.approx(1.5e-3)
    assert the(capture, "aten::threshold_backward").seconds == pytest.approx(2)
    assert the(capture, "aten::threshold_backward").site.phase is Phase.BACKWARD
    assert "short_names" not in capture.notes


def test_names_that_are_cut_and_could_be_several(tmp_path: Path) -> None:
    text = OF_2020.replace("max_pool2d_with_indices_back...", "aten::max_pool2d_with_...      ")
    capture = read_trace(_write(tmp_path, text))
    assert len(capture.uses) == 2
    assert "short_names" in capture.notes


def test_lines_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes(OF_2020.replace("\n", "\r\n").encode())
    assert len(read_trace(path).uses) == 3


def test_the_devices_time_and_shapes(tmp_path: Path) -> None:
    capture = read_trace(_write(tmp_path, ON_A_GPU))
    use = the(capture, "aten::mm")
    assert capture.device == "cuda"
    assert use.seconds == pytest.approx(1e-3)
    assert use.signature.inputs == [
        TensorSpec("", (2, 3), device="cuda"),
        TensorSpec("", (3, 4), device="cuda"),
    ]
    assert [each.operator for each in capture.judged()] == ["aten::mm"]


def test_a_table_of_other_things(tmp_path: Path) -> None:
    other = "----  -----------\nName  # of Calls\n----  -----------\nread  4\n----  -----------\n"
    with pytest.raises(InputError, match="a table without PyTorch operators"):
        read_trace(_write(tmp_path, other))
