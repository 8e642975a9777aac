"""TF701 (opt-in): channels_last."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import VENDORS, expression, vendor

_OPTION = "channels_last"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("loss = loss.npu()", id="not a model, not images"),
        pytest.param("model.npu()", id="not assigned"),
        pytest.param(
            "model = model.npu(memory_format=torch.channels_last)", id="there already, as an argument"
        ),
        pytest.param("model = model.half()", id="not a move"),
        pytest.param("model = model.npu().to(memory_format=torch.channels_last)", id="there already"),
        pytest.param("args.model = 'cuda model'", id="a string"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "ascend", _OPTION) == source


def test_off_unless_asked_for() -> None:
    assert expression("model = model.cuda()") == "model = model.npu()"


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("variable", ["model", "net", "images", "img"])
def test_moves(name: str, variable: str) -> None:
    assert (
        expression(f"{variable} = {variable}.cuda()", name, _OPTION)
        == f"{variable} = {variable}.{vendor(name).tensor_method}().to(memory_format=torch.channels_last)"
    )


def test_to() -> None:
    after = "model = Net().to('npu').to(memory_format=torch.channels_last)"
    assert expression("model = Net().to('cuda')", "ascend", _OPTION) == after
