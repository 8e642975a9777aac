"""TF701 (opt-in): which models and which inputs of whole programs go into channels_last."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.rewriting import rewritten, said, target
from torchferry.conversion.project import Plan, examine_project

_OPTION = "channels_last"
_CNN = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 8, 3)

class Net(nn.Module):
    def __init__(self):
        self.block = Block()
        self.fc = nn.Linear(8, 10)
"""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("labels = labels.to(device)\nout = model(images)", id="labels"),
        pytest.param(
            "images = images.reshape(-1, 784).to(device)\nout = model(images)", id="images as vectors"
        ),
        pytest.param("data = data.view(-1, 784).to(device)\nout = model(data)", id="data as vectors"),
        pytest.param("other = other.to(device)\nout = model(data)", id="not given to the model"),
        pytest.param(
            "image = image.to(device)\nout = model(image.unsqueeze(0))", id="one image, not a batch"
        ),
        pytest.param("image = image.to(device)\nout = model(image[None])", id="one image, indexed"),
        pytest.param("img = torch.rand(3, 8, 8).to(device)", id="made on the spot"),
        pytest.param("images = images.to(device)  # a video", id="perhaps a video"),
        pytest.param("data = data.to(torch.float16)\nout = model(data)", id="a cast"),
        pytest.param(
            "images = images.to(device)\nimages = images.contiguous(memory_format=torch.channels_last)",
            id="done",
        ),
    ],
)
def test_left(body: str) -> None:
    source = f"{_CNN}\nmodel = Net()\n{body}\n"
    assert "to(memory_format" not in rewritten(source, "tecorigin", _OPTION)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param("nn.Sequential(nn.Linear(8, 8), nn.ReLU())", id="layers without a convolution"),
        pytest.param("Mlp()", id="an own class without a convolution"),
    ],
)
def test_a_model_without_convolutions(model: str) -> None:
    source = f"""
import torch
from torch import nn
class Mlp(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(8, 8)
model = {model}
model = model.cuda()
images = images.cuda()
out = model(images)
"""
    assert "channels_last" not in rewritten(source, "tecorigin", _OPTION)
    assert [(kind, text) for _, kind, text in said(source, "tecorigin", _OPTION, rule="TF701")] == [
        ("info", "model.cuda()")
    ]


def test_training_and_evaluation() -> None:
    source = (
        _CNN
        + """
def train(model, loader, device):
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        output = model(data)

def evaluate(model, loader):
    for data, target in loader:
        data = data.cuda(non_blocking=True)
        output = model(data)

def main():
    model = Net()
    model.cuda()
    net_g = Net().to("cuda:0")
    optimizer = torch.optim.SGD(net_g.parameters(), 0.1)
"""
    )
    after = rewritten(source, "tecorigin", _OPTION)
    channels_last = ".to(memory_format=torch.channels_last)"
    assert f"data, target = data.to(device){channels_last}, target.to(device)\n" in after
    assert f"data = data.sdaa(non_blocking=True){channels_last}\n" in after
    assert f"    model.sdaa(){channels_last}\n" in after
    assert f'net_g = Net().to("sdaa:0"){channels_last}\n' in after


def test_volumes_are_left() -> None:
    source = (
        _CNN.replace("Conv2d", "Conv3d") + "\nnetwork = Net().cuda()\ndata = data.cuda()\nnetwork(data)\n"
    )
    assert "channels_last" not in rewritten(source, "tecorigin", _OPTION)


@pytest.mark.parametrize(
    "line", ["from nets import Net", "from nets import *", "import nets\nNet = nets.Net"]
)
def test_a_model_of_another_module(line: str, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(_CNN)
    (tmp_path / "train.py").write_text(
        f"import torch\n{line}\nclassifier = Net().cuda()\n"
        "optimizer = torch.optim.SGD(classifier.parameters(), 0.1)\nfor x in data:\n    x = x.cuda()\n    classifier(x)\n"
    )
    outcome = examine_project(tmp_path, Plan(target("cambricon"), options=frozenset({_OPTION})))
    (train,) = (item for item in outcome.outcomes if item.path == "train.py")
    assert train.new_data is not None
    assert b"classifier = Net().mlu().to(memory_format=torch.channels_last)\n" in train.new_data
    assert b"x = x.mlu().to(memory_format=torch.channels_last)\n" in train.new_data


def test_a_vendor_that_does_not_ask_for_it() -> None:
    source = "import torch, torchvision\nmodel = model.cuda()\n"
    assert "channels_last" not in rewritten(source, "ascend", _OPTION)
    assert [kind for _, kind, _ in said(source, "ascend", _OPTION, rule="TF701")] == ["info"]
    assert said(source, "tecorigin", _OPTION, rule="TF701") == []


def test_a_model_out_of_sight_beside_three_dimensions() -> None:
    source = "import torch\nfrom nets import UNet\nmodel = UNet(spatial_dims=3).cuda()\n"
    assert "channels_last" not in rewritten(source, "tecorigin", _OPTION)


def test_a_model_of_two_dimensions_or_three() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, spatial_dims):
            super().__init__()
            self.conv = (nn.Conv2d if spatial_dims == 2 else conv(spatial_dims))(1, 2, 3)

    model = Net(spatial_dims=dims).cuda()
    """
    assert "channels_last" not in rewritten(source, "tecorigin", _OPTION)
    assert [kind for _, kind, _ in said(source, "tecorigin", _OPTION, rule="TF701")] == ["todo"]


@pytest.mark.parametrize(("dimensions", "is_changed"), [(2, True), (3, False)])
def test_a_model_that_is_told_its_dimensions(dimensions: int, is_changed: bool) -> None:
    source = f"import torch\nfrom nets import UNet\nmodel = UNet(spatial_dims={dimensions}).cuda()\n"
    assert ("channels_last" in rewritten(source, "tecorigin", _OPTION)) is is_changed
