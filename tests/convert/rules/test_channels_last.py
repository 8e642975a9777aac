"""TF701 (opt-in): channels_last."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import VENDORS, expression, rewritten, vendor

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


def test_a_module_without_torch_gets_its_import() -> None:
    after = rewritten("import tqdm\n\nmodel.cuda()\n", "portable", _OPTION)
    assert "import torch\n" in after
    assert ".to(memory_format=torch.channels_last)" in after


def test_a_module_with_another_torch_is_left() -> None:
    before = "torch = load()\nmodel.cuda()\n"
    assert "channels_last" not in rewritten(before, "ascend", _OPTION)


def test_the_device_says_nothing_of_the_model() -> None:
    before = """
    import torch
    from torch import nn

    class Sound(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(1, 2, 3)

    class Prediction:
        def __init__(self, gpu):
            self.model = Sound().cuda(gpu)
    """
    for name in (*VENDORS, "portable", "ascend+cuda"):
        assert "channels_last" not in rewritten(before, name, _OPTION)
