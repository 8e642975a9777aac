"""The scaler's state beside the optimizer's, where checkpoints are saved and loaded."""

from __future__ import annotations

import pytest

from tests.convert.amp.amping import amped, converted
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
