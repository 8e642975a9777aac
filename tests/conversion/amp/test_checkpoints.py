"""The scaler's state beside the optimizer's, where checkpoints are saved and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.amp.amping import amped, converted
from tests.conversion.rewriting import target
from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.settings import AmpForm, PassSettings
from torchferry.finding import Kind

_PROGRAM = """
import torch
def main():
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x in data:
        loss = model(x)
        loss.backward()
        optimizer.step()
    {lines}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.save({'net': net.state_dict(), 'optimizer': optimizer.state_dict()}, path)",
            "torch.save({'net': net.state_dict(), 'optimizer': optimizer.state_dict(), "
            "'scaler': scaler.state_dict()}, path)",
        ),
        (
            'state = {\n        "optim": optimizer.state_dict(),  # last\n    }',
            'state = {\n        "optim": optimizer.state_dict(),\n        "scaler": scaler.state_dict(),  # last\n    }',
        ),
        (
            "save(dict(epoch=3, optimizer=optimizer.state_dict()))",
            "save(dict(epoch=3, optimizer=optimizer.state_dict(), scaler=scaler.state_dict()))",
        ),
        (
            "state['optimizer'] = optimizer.state_dict()",
            "state['optimizer'] = optimizer.state_dict()\n    state['scaler'] = scaler.state_dict()",
        ),
        (
            "if resume:\n        optimizer.load_state_dict(checkpoint['optimizer'])",
            "if resume:\n        optimizer.load_state_dict(checkpoint['optimizer'])\n"
            "        if 'scaler' in checkpoint:\n            scaler.load_state_dict(checkpoint['scaler'])",
        ),
        ("torch.save(model.state_dict(), path)", "torch.save(model.state_dict(), path)"),
        ("best = {'model': model.state_dict()}", "best = {'model': model.state_dict()}"),
    ],
)
def test_saved_and_loaded(before: str, after: str) -> None:
    assert amped(_PROGRAM.format(lines=before)).endswith(f"    {after}\n")


def test_a_checkpoint_out_of_reach_is_said() -> None:
    source = _PROGRAM.format(lines="pass") + (
        "\ndef save(optimizer, path):\n    torch.save({'optimizer': optimizer.state_dict()}, path)\n"
    )
    todo = [item for item in converted(source).findings if item.kind is Kind.TODO]
    assert [item.before for item in todo] == ["{'optimizer': optimizer.state_dict()}"]
    assert "`scaler`" in todo[0].message.en


_ENGINE = """
import torch

def train(model, optimizer, loader):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
"""
_MAIN = """
import torch
from .engine import train

def main():
    optimizer.load_state_dict(checkpoint["optimizer"])
    train(model, optimizer, loader)
    torch.save({"optimizer": optimizer.state_dict()}, path)
"""


def project(folder: Path, files: dict[str, str]) -> dict[str, str]:
    """A project converted with --amp."""
    for name, text in files.items():
        (folder / name).write_text(text)
    plan = Plan(target("ascend"), options=frozenset({"amp"}), settings=PassSettings(amp=AmpForm.TORCH))
    outcome = examine_project(folder, plan)
    return {item.path: item.new_data.decode() for item in outcome.outcomes if item.new_data is not None}


def test_a_training_step_of_another_module(tmp_path: Path) -> None:
    changed = project(tmp_path, {"engine.py": _ENGINE, "main.py": _MAIN})
    assert "\nscaler = torch.npu.amp.GradScaler()\n" in changed["engine.py"]
    assert changed["main.py"] == _MAIN.replace(
        "from .engine import train\n", "from .engine import train\nfrom .engine import scaler\n"
    ).replace(
        '(checkpoint["optimizer"])\n',
        '(checkpoint["optimizer"])\n    if "scaler" in checkpoint:\n'
        '        scaler.load_state_dict(checkpoint["scaler"])\n',
    ).replace("optimizer.state_dict()}", 'optimizer.state_dict(), "scaler": scaler.state_dict()}')


def test_a_training_step_of_another_module_that_is_left(tmp_path: Path) -> None:
    engine = _ENGINE.replace("loss.backward()", "loss.backward(create_graph=True)")
    assert project(tmp_path, {"engine.py": engine, "main.py": _MAIN}) == {}
