"""TF701 (opt-in): channels_last."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, said_with, vendor

_OPTION = "channels_last"
_IMAGES = "import torchvision\n"
# Where nothing is known against it; the others' adapters want, or accept, contiguous tensors only.
_WANTED = [name for name in VENDORS if vendor(name).channels_last or not vendor(name).memory_format]


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


@pytest.mark.parametrize("name", _WANTED)
@pytest.mark.parametrize("variable", ["model", "net"])
def test_models(name: str, variable: str) -> None:
    before = f"{_IMAGES}{variable} = {variable}.cuda()"
    moved = f"{variable} = {variable}.{vendor(name).tensor_method}()"
    assert expression(before, name, _OPTION) == f"{_IMAGES}{moved}.to(memory_format=torch.channels_last)"


@pytest.mark.parametrize("name", _WANTED)
@pytest.mark.parametrize("variable", ["images", "img"])
def test_images(name: str, variable: str) -> None:
    use = f"\noutput = model({variable})"
    moved = f"{variable} = {variable}.{vendor(name).tensor_method}()"
    after = f"{moved}.to(memory_format=torch.channels_last){use}"
    assert expression(f"{variable} = {variable}.cuda(){use}", name, _OPTION) == after


def test_images_that_no_model_gets_may_have_any_shape() -> None:
    assert expression("img = img.cuda()\nresult = mean(img)", "tecorigin", _OPTION) == (
        "img = img.sdaa()\nresult = mean(img)"
    )


def test_to() -> None:
    after = f"{_IMAGES}model = Net().to('mlu').to(memory_format=torch.channels_last)"
    assert expression(f"{_IMAGES}model = Net().to('cuda')", "cambricon", _OPTION) == after


def test_a_model_out_of_sight_with_nothing_of_images_is_left_to_the_user() -> None:
    assert expression("model = model.cuda()", "tecorigin", _OPTION) == "model = model.sdaa()"
    assert said_with("model = model.cuda()", _OPTION, to="tecorigin") == [
        ("TF701", "todo", "model.cuda()"),
    ]


def test_a_module_without_torch_gets_its_import() -> None:
    after = rewritten("import torchvision\n\nmodel.cuda()\n", "portable", _OPTION)
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
