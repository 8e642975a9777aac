"""Which modules move models or images, told from their bytes."""

from __future__ import annotations

import pytest

from torchferry.conversion.rules.channels_last import moves_models_or_images


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = y\n", id="no move"),
        pytest.param("ids = ids.to(device)\nrun(ids)\n", id="given to something else"),
        pytest.param("def f(x):\n    return x.to(x.dtype)\n", id="not assigned"),
        pytest.param("mask = torch.ones(\n    3,\n).to(device)\nmodel = 1\n", id="another variable"),
        pytest.param("f(model, x.to(device))\n", id="an argument"),
    ],
)
def test_none(source: str) -> None:
    assert not moves_models_or_images(source.encode())


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("model = Net().to(device)\n", id="model"),
        pytest.param("    self.net.cuda()\n", id="in place"),
        pytest.param("images, labels = images.to(d), labels.to(d)\n", id="two at once"),
        pytest.param("Model = Net(\n    3,\n    [4],\n).to(device)\r\n", id="several lines"),
        pytest.param("encoder = E().cuda()\nopt = SGD(encoder.parameters())\n", id="with parameters"),
        pytest.param("x = x.to(device)\ny = model(\n    x, 1)\n", id="given to a model"),
        pytest.param(
            "x = x.to(device)\nf(enc.parameters())\ny = enc(x)\n", id="given to what has parameters"
        ),
    ],
)
def test_some(source: str) -> None:
    assert moves_models_or_images(source.encode())
