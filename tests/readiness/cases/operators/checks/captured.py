"""Every operator of a training step, as a capture has seen it, makes a case that holds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import nn

from tests.readiness.cases.trying import facts_of, frame_for, outcome_of
from tests.sim.checking import Target
from torchferry.readiness import capture_json
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.cases.building import CaseRequest, build, listed, uses
from torchferry.readiness.cases.model import CaseVerdict
from torchferry.readiness.model import Capture


class Block(nn.Module):
    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(inner, outer, 3, 2, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(True)
        )
        self.second = nn.Sequential(nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        self.shortcut = nn.Conv2d(inner, outer, 1, 2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.shortcut(x))


def _training_step() -> Capture:
    """A residual network, small: the operators of ResNet-18."""
    torch.manual_seed(0)
    stem = [
        nn.Conv2d(3, 4, 7, 2, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    model = nn.Sequential(
        *stem, Block(4, 6), Block(6, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    mode = CapturingMode()
    with mode.switched_on():
        for _ in range(2):  # the second step has momentum
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(4, 3, 32, 32)), torch.arange(4)).backward()
            optimizer.step()
    return Capture("train.py", "program", "cpu", uses=mode.folded.uses())


def check_training_step(target: Target) -> None:
    frame = frame_for(target.vendor)
    failed, kinds = [], []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "capture.json"
        source.write_text(capture_json.dump(_training_step()))
        names = list(dict.fromkeys(use.operator for use in uses(source)))
        assert len(names) > 25, names
        assert {"aten::convolution_backward", "aten::max_pool2d_with_indices_backward"} <= set(names)
        assert len(listed(source, "aten::convolution", "")) > 3
        for name in names:
            case = build(CaseRequest(name, source=source))
            outcome = outcome_of(case, facts_of(case, frame), frame)
            kinds.append(outcome.kind)
            if outcome.kind not in (CaseVerdict.EQUAL, CaseVerdict.FALLS_BACK):
                failed.append(f"{name}: {outcome}")
    assert not failed, "\n".join(failed)
    assert CaseVerdict.EQUAL in kinds
