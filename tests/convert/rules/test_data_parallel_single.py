"""TF711: DataParallel becomes the model on one card."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import expression, findings, said_with

SINGLE = "data_parallel"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("m = torch.nn.parallel.DistributedDataParallel(m)", id="DistributedDataParallel"),
        pytest.param("from mine import DataParallel\nm = DataParallel(m)", id="the user's own"),
        pytest.param("if isinstance(m, torch.nn.DataParallel): pass", id="a question"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "portable", SINGLE) == source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("m = torch.nn.DataParallel(m).cuda()", "m = m.npu()"),
        ("m = torch.nn.DataParallel(Net(), device_ids=[0, 1])", "m = Net()"),
        ("from torch import nn\nm = nn.DataParallel(m.cuda())", "from torch import nn\nm = m.npu()"),
        (
            "if a:\n    m.features = torch.nn.DataParallel(m.features)\n    m.cuda()",
            "if a:\n    m.npu()",
        ),
        ("if a:\n    m = torch.nn.DataParallel(m)", "if a:\n    pass"),
    ],
)
def test_the_model_itself(source: str, expected: str) -> None:
    assert expression(source, "ascend", SINGLE) == expected


def test_only_on_request() -> None:
    assert expression("m = torch.nn.DataParallel(m)") == "m = torch.nn.DataParallel(m)"


def test_what_else_changes_is_said() -> None:
    found = said_with("m = torch.nn.DataParallel(m)\ntorch.save(m.module.state_dict(), f)", SINGLE)
    assert ("TF711", "todo", "m.module") in found


def test_the_advice_where_processes_are_there_already() -> None:
    (item,) = findings(
        "import torch\nif several:\n    m = torch.nn.parallel.DistributedDataParallel(m)\n"
        "else:\n    m = torch.nn.DataParallel(m)\n",
        rule="TF204",
    )
    assert "--distributed --main" not in item.message.en
    assert "--data-parallel single" in item.message.en
