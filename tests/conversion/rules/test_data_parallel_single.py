"""TF711: DataParallel becomes the model on one card."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, findings, said_with

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
        ("m = torch.nn.DataParallel(m).cuda()", "m = m.npu()\n{hook}"),
        ("m = torch.nn.DataParallel(Net(), device_ids=[0, 1])", "m = Net()\n{hook}"),
        ("if a:\n    m = torch.nn.DataParallel(m)", "if a:\n    {hook}"),
        ("if a: m = torch.nn.DataParallel(Net())", "if a: m = Net(); {hook}"),
    ],
)
def test_the_model_itself(source: str, expected: str) -> None:
    text = expression(source, "ascend", SINGLE)
    assert text.endswith(expected.replace("{hook}", "m.register_forward_pre_hook(inputs_to_device)"))
    assert "item.npu() if isinstance(item, torch.Tensor) else item for item in inputs" in text


def test_a_part_of_a_model() -> None:
    source = "if a:\n    m.features = torch.nn.DataParallel(m.features)\n    m.cuda()"
    text = expression(source, "ascend", SINGLE)
    assert text.endswith("if a:\n    m.features.register_forward_pre_hook(inputs_to_device)\n    m.npu()")


def test_one_definition_for_several_models() -> None:
    text = expression("a = torch.nn.DataParallel(a)\nb = torch.nn.DataParallel(b)", "ascend", SINGLE)
    assert text.count("def inputs_to_device") == 1


def test_inputs_that_nobody_moves_are_told() -> None:
    found = said_with("def f(m):\n    return torch.nn.DataParallel(m)", SINGLE)
    assert [kind for rule, kind, _ in found if rule == "TF711"] == ["todo"]


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
