"""TrainingSteps steps whose losses, masks and gradients are in other modules of the project."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.conversion.amp.amping import converted
from torchferry.conversion.file import Conversion
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.finding import Kind

_ENGINE = """
import torch

def train(model, criterion, optimizer, x, y):
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path


def _converted(project: Path, source: str, **others: str) -> Conversion:
    """What becomes of module.py beside other modules."""
    for name, text in {"module": source, **others}.items():
        (project / f"{name}.py").write_text(textwrap.dedent(text))
    return converted(source, neighbours=Neighbours(project))


def _todos(conversion: Conversion) -> list[tuple[str, str]]:
    return [(item.before, item.message.en) for item in conversion.findings if item.kind is Kind.TODO]


@pytest.mark.parametrize("line", ["from losses import bce", "from losses import *"])
def test_a_loss_that_is_imported(line: str, project: Path) -> None:
    source = f"""
        import torch
        import losses
        {line}

        def train(model, optimizer, x, y):
            out = model(x)
            loss = bce(out, y) + losses.bce(out, 1 - y)
            loss.backward()
            optimizer.step()
        """
    text = _converted(project, source, losses="from torch import nn\nbce = nn.BCELoss()\n").new_text
    assert text is not None
    assert "    loss = bce(out.float(), y.float()) + losses.bce(out.float(), (1 - y).float())\n" in text


def test_a_method_of_a_base_in_another_module_is_looked_into(project: Path) -> None:
    source = """
        import torch
        from engine import Engine

        class Trainer(Engine):
            def step(self, data):
                x, y = self.parse_data(data)
                out = self.model(x)
                loss = out.sum()
                loss.backward()
                self.optimizer.step()
        """
    engine = "class Engine:\n    def parse_data(self, data):\n        return data['x'], data['y']\n"
    text = _converted(project, source, engine=engine).new_text
    assert text is not None
    assert "        x, y = self.parse_data(data)\n        with torch.cuda.amp.autocast():\n" in text


def test_a_loss_that_is_handed_to_a_function_by_another_name(project: Path) -> None:
    source = """
        import torch
        from torch import nn

        def train(model, optimizer, criterion, x, y):
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()

        run = train
        run(model, optimizer, nn.BCELoss(), x, y)
        """
    text = _converted(project, source).new_text
    assert text is not None
    assert "    loss = criterion(out.float(), y.float())\n" in text


@pytest.mark.parametrize(
    "call",
    [
        "import torch\nfrom module import train\nbce = torch.nn.BCELoss()\ntrain(net, bce, opt, x, y)\n",
        "import torch\nimport module\nmodule.train(net, opt=1, criterion=torch.nn.BCELoss().cuda())\n",
    ],
)
def test_a_loss_that_another_module_hands_over(call: str, project: Path) -> None:
    text = _converted(project, _ENGINE, main=call).new_text
    assert text is not None
    assert "    loss = criterion(out.float(), y.float())\n" in text


def test_a_loss_that_another_module_does_not_hand_over(project: Path) -> None:
    main = "import torch\nfrom module import train\nmse, bce = torch.nn.MSELoss(), f()\ntrain(net, mse, opt, x, y)\n"
    text = _converted(project, _ENGINE, main=main + "unused = torch.nn.BCELoss()\n").new_text
    assert text is not None
    assert "        loss = criterion(out, y)\n" in text


_LOSSES = """
    import torch.nn as nn
    import torch.nn.functional as F

    class Pixels(nn.Module):
        def __init__(self):
            super().__init__()
            self.bce = nn.BCELoss()

        def forward(self, out, y):
            return self.bce(F.sigmoid(out), y)
    """


def test_a_loss_function_of_a_module_that_does_not_train(project: Path) -> None:
    conversion = _converted(project, _LOSSES, main=f"from module import Pixels\n{_ENGINE}")
    assert conversion.new_text == textwrap.dedent(
        """
        import torch
        import torch.nn as nn
        import torch.nn.functional as F

        class Pixels(nn.Module):
            def __init__(self):
                super().__init__()
                self.bce = nn.BCELoss()

            def forward(self, out, y):
                prediction = F.sigmoid(out)
                with torch.cuda.amp.autocast(enabled=False):
                    return self.bce(prediction.float(), y.float())
        """
    )


@pytest.mark.parametrize(
    "main",
    [
        pytest.param("from module import Pixels\n", id="nothing trains"),
        pytest.param(_ENGINE, id="nobody imports it"),
        pytest.param(
            f"from module import Pixels\nscaler = GradScaler()\n{_ENGINE}", id="has its own precision"
        ),
    ],
)
def test_a_loss_function_that_no_new_autocast_meets(main: str, project: Path) -> None:
    assert _converted(project, _LOSSES, main=main).new_text is None


def test_a_factory_of_losses_is_left_to_the_user(project: Path) -> None:
    source = """
        import torch
        def build(name):
            return torch.nn.BCELoss() if name == 'bce' else torch.nn.MSELoss()
        """
    ((place, message),) = _todos(_converted(project, source, main=f"from module import build\n{_ENGINE}"))
    assert place == "torch.nn.BCELoss"
    assert message.startswith("autocast refuses BCELoss")


def test_a_mask_that_half_precision_does_not_hold(project: Path) -> None:
    source = """
        import torch
        LOW = -1e9
        def attend(scores, mask):
            scores = scores.masked_fill(mask, LOW)
            scores.masked_fill_(mask, value=float('-inf'))
            scores.masked_fill_(mask, -1e4)
            return scores.fill_diagonal_(-9e15)
        """
    conversion = _converted(project, source, main=f"from module import attend\n{_ENGINE}")
    assert conversion.new_text is None
    places = [place for place, message in _todos(conversion) if "65504" in message]
    assert places == ["scores.masked_fill(mask, LOW)", "scores.fill_diagonal_(-9e15)"]


def test_gradients_that_a_function_of_another_module_takes(project: Path) -> None:
    source = """
        import torch
        from penalty import penalty

        def train(model, optimizer, x):
            loss = model(x).mean() + penalty(model, x)
            loss.backward()
            optimizer.step()
        """
    other = """
        from torch import autograd

        def penalty(model, x):
            return autograd.grad(model(x).sum(), x, create_graph=True)[0].norm()
        """
    conversion = _converted(project, source, penalty=other)
    assert conversion.new_text is None
    ((place, message),) = _todos(conversion)
    assert place == "penalty(model, x)"
    assert "torch.autograd.grad" in message
