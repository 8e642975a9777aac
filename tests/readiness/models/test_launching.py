"""Models in a process of their own: what becomes of it when it ends well, and when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.errors import RunError
from torchferry.readiness.models.request import ModelRequest
from torchferry.readiness.runs import capture_model

NET = """
import os

import torch
from torch import nn

print("a line that is not the report's")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)
        self.compiled = torch.compile(self.shown)

    def shown(self, x):
        return (x * 2).relu()

    def forward(self, x):
        return self.compiled(self.head(x))


def killed():
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET, "utf-8")


@pytest.mark.usefixtures("net")
def test_a_module_of_the_current_folder_is_found_and_compiled_code_shows(
    capfd: pytest.CaptureFixture[str],
) -> None:
    capture = capture_model(ModelRequest("net:Net", ("2x4",), backward=True, amp="bfloat16"))
    operators = {use.operator for use in capture.uses}
    assert {"aten::relu", "aten::threshold_backward", "aten::_foreach_add_.List"} <= operators
    assert "compiled" not in capture.notes
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("net")
def test_a_process_that_is_killed_is_told_of() -> None:
    with pytest.raises(RunError, match=r"--model net:killed: its process was killed.*--fake"):
        capture_model(ModelRequest("net:killed"))
