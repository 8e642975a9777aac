"""TF720 (opt-in): programs with mixed precision of their own, programs that are not clear enough, and the rest."""

from __future__ import annotations

import pytest

from tests.conversion.amp.amping import amped, converted, left
from torchferry.finding import Kind

_STEP = """
def train(model, optimizer):
    for x in data:
        loss = model(x)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "import torch\nx = torch.ones(2, requires_grad=True)\nx.sum().backward()\n", id="no optimizer"
        ),
        pytest.param("import torch\noptimizer.step()\n# loss.backward()\n", id="no backward"),
        pytest.param(
            "import gtn\ngtn.backward(loss, False)\noptimizer.step()\n", id="a function of a library"
        ),
        pytest.param(
            "class F:\n    def backward(ctx, grad):\n        return grad\n# .backward(\n", id="defined"
        ),
    ],
)
def test_noop(source: str) -> None:
    assert amped(source) == source


@pytest.mark.parametrize(
    "head",
    [
        "from torch.cuda.amp import autocast",
        "import torch\nscaler = torch.cuda.amp.GradScaler()",
        "import torch\nscaler = torch.npu.amp.GradScaler()",
        "from apex import amp",
        "from accelerate import Accelerator",
        "import pytorch_lightning as pl",
        "import deepspeed",
        "from mmengine.optim import AmpOptimWrapper",
        "import torch\nmodel = Net().half()",
    ],
)
def test_mixed_precision_that_is_there(head: str) -> None:
    (found,) = left(head + _STEP)
    assert found[0] == "info"
    assert "stays unchanged" in found[2]


@pytest.mark.parametrize(
    ("body", "place", "reason"),
    [
        pytest.param(
            "def closure():\n    loss = model(x)\n    loss.backward()\n    return loss\noptimizer.step(closure)",
            "optimizer.step(closure)",
            "closure",
            id="LBFGS",
        ),
        pytest.param(
            "loss = model(x)\ng = torch.autograd.grad(loss, x)\nloss.backward()\noptimizer.step()",
            "torch.autograd.grad(loss, x)",
            "scaler.get_scale()",
            id="a gradient penalty",
        ),
        pytest.param(
            "loss = model(x)\nloss.backward(create_graph=True)\noptimizer.step()",
            "loss.backward(create_graph=True)",
            "gradients of gradients",
            id="double backward",
        ),
        pytest.param(
            "loss = model(x)\nloss.backward()\nx_adv = x + x.grad.sign()\noptimizer.step()",
            "x.grad",
            "something else than a parameter",
            id="the gradient of an input",
        ),
        pytest.param(
            "loss = model(x)\nloss.backward()\nclip_grad_norm_(model.parameters(), 1)\nif last:\n    optimizer.step()",
            "clip_grad_norm_(model.parameters(), 1)",
            "not right before",
            id="clipped more often than stepped",
        ),
        pytest.param(
            "loss.backward()\noptimizer.step()",
            "loss.backward()",
            "does not come from",
            id="a loss from elsewhere",
        ),
        pytest.param(
            "loss = model(x)\nloss.backward()\nif a:\n    opt_a.step()\nif b:\n    opt_b.step()",
            "opt_a.step()",
            "one update",
            id="two optimizers that step now and then",
        ),
        pytest.param(
            "loss = model(x)\nif torch_backend:\n    loss.backward()\n    optimizer.step()\nelse:\n    loss.backward()",
            "loss.backward()",
            "no step",
            id="a backward without a step",
        ),
        pytest.param(
            "x = 1; loss = model(x)\nloss.backward()\noptimizer.step()",
            "loss = model(x)",
            "share a line",
            id="a line",
        ),
        pytest.param(
            "loss = model(x)\nengine.backward(loss)\noptimizer.step()",
            "engine.backward(loss)",
            "something else than a loss",
            id="an engine",
        ),
    ],
)
def test_unclear(body: str, place: str, reason: str) -> None:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    source = f"import torch\ndef train(model, optimizer, x):\n    for i in data:\n{lines}\n"
    (found,) = left(source)
    assert found[0] == "todo"
    assert found[1] == place
    assert reason in found[2]
    assert "scaler.update() once per iteration" in found[2]  # the recipe


def test_an_own_class_around_an_optimizer() -> None:
    (found,) = left(
        """
        import torch
        class NoamOpt:
            def step(self):
                self.optimizer.step()
        optimizer = NoamOpt(torch.optim.Adam(p))
        for x in data:
            loss = model(x)
            loss.backward()
            optimizer.step()
        """
    )
    assert found[0] == "todo" and "NoamOpt" in found[2]


def test_an_own_optimizer_is_an_optimizer() -> None:
    text = amped(
        """
        import torch
        class Lion(torch.optim.Optimizer):
            pass
        optimizer = Lion(p)
        for x in data:
            loss = model(x)
            loss.backward()
            optimizer.step()
        """
    )
    assert "scaler.step(optimizer)" in text


def test_backward_and_step_in_unrelated_functions() -> None:
    (found,) = left(
        """
        import torch
        def compute(model, x):
            loss = model(x)
            loss.backward()
        def advance(optimizer):
            optimizer.step()
        """
    )
    assert found[0] == "todo" and "different functions" in found[2]


def test_schedulers_are_left_with_a_remark() -> None:
    said = converted("import torch" + _STEP + "        scheduler.step()\n").findings
    assert [item.before for item in said if item.kind is Kind.INFO] == ["scheduler.step()"]
