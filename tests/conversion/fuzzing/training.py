"""Made-up training scripts: what the passes behind --amp, --distributed and --channels-last look for, in many shapes."""

from __future__ import annotations

import textwrap
from random import Random

from tests.conversion.fuzzing import grammar

_IMPORTS = (
    "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch.utils.data import DataLoader",
    "import os, torch\nfrom torch import nn, optim\nimport torch.utils.data\nF = nn.functional",
    "from __future__ import annotations\nimport torch; import torch.nn as nn\nimport torch.nn.functional as F",
    "import argparse\nimport torch\nfrom torch import nn\nfrom torch.nn import functional as F\nfrom data import build",
)
_MODELS = (
    "model = Net().cuda()",
    "model = Net().to(device)",
    "model = Net()\nif torch.cuda.is_available():\n    model = model.cuda()",
    "model = nn.DataParallel(Net()).cuda()",
    "model = torchvision.models.resnet18(); model.cuda()",
)
_OPTIMIZERS = (
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)",
    "optimizer = torch.optim.Adam([{'params': model.parameters(), 'lr': 0.1}])",
)
_LOADERS = (
    "loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, pin_memory=True)",
    "loader = torch.utils.data.DataLoader(dataset, 8)",
    "loader = build(args)",
)
_MOVES = (
    "x, y = x.cuda(non_blocking=True), y.cuda()",
    "x = x.to(device); y = y.to('cuda:0')",
    "x = x.cuda()\ny = y.cuda().long()",
)
_LOSSES = (
    "loss = criterion(out, y)",
    "loss = F.cross_entropy(out, y)\nloss = loss + 0.1 * model.penalty()",
    "if mode == 1:\n    loss = F.binary_cross_entropy(out, y)\nelif mode == 2:\n    loss = F.mse_loss(out, y)\nelse:\n    raise ValueError",
    "loss = F.binary_cross_entropy(torch.sigmoid(out), y) + F.mse_loss(\n    out, y)  # two",
    "loss = 0\nfor part in out:\n    loss += criterion(part, y)",
)
_BACKWARDS = (
    "loss.backward()",
    "(loss / 4).backward()",
    "criterion(model(x), y).backward()",
    "loss.backward(retain_graph=True)\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
)
_ENDS = (
    "print(loss.item())",
    "scheduler.step()",
    "torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, 'a.pth')",
    "if epoch % 2 == 0: torch.save(model.state_dict(), f'{epoch}.pth')",
    "with torch.no_grad():\n    model.eval(); model(x)",
)


def script(random: Random) -> str:
    """A training script; some have a statement of any sort somewhere."""
    unit = random.choice(("    ", "    ", "  ", "\t"))
    step = [random.choice(part) for part in (_MOVES, ("out = model(x)", "out = model(\n    x)"), _LOSSES)]
    step += ["optimizer.zero_grad()", random.choice(_BACKWARDS), "optimizer.step()"]
    if random.random() < 0.4:
        step.insert(random.randrange(len(step)), grammar.statement(random, "", 1))
    after = [random.choice(_ENDS) for _ in range(random.randrange(3))]
    epoch = "for x, y in loader:\n" + _indented(step, unit)
    loop = "for epoch in range(9):\n" + _indented([epoch, *after], unit)
    made = [random.choice(part) for part in (_LOADERS, _MODELS, _OPTIMIZERS)]
    made.insert(random.randrange(4), "criterion = nn.CrossEntropyLoss().cuda()")
    net = "class Net(nn.Module):\n" + _indented(
        ["def forward(self, x):\n    return F.relu(self.conv(x))"], unit
    )
    return "\n".join([random.choice(_IMPORTS), net, _framed([*made, loop], unit, random)]) + "\n"


def _framed(parts: list[str], unit: str, random: Random) -> str:
    """The parts as they are, in a function, below the guard of a script, or as methods of a class."""
    frame = random.randrange(4)
    if frame == 0:
        return "\n".join(parts)
    if frame == 1:
        return (
            "def main(args, mode=1):\n"
            + _indented(parts, unit)
            + "\nif __name__ == '__main__':\n    main(None)"
        )
    if frame == 2:
        return "if __name__ == '__main__':\n" + _indented(parts, unit)
    names = ("model", "optimizer", "criterion", "loader")
    own = list(parts)
    for name in names:
        own = [
            item.replace(f"{name} = ", f"self.{name} = ").replace(f"{name}(", f"self.{name}(") for item in own
        ]
        own = [
            item.replace(f"{name}.", f"self.{name}.").replace(f"in {name}", f"in self.{name}") for item in own
        ]
    own = [item.replace("self.self.", "self.") for item in own]
    methods = (
        "def __init__(self):\n"
        + _indented(own[:-1], unit)
        + "\ndef train(self):\n"
        + _indented(own[-1:], unit)
    )
    return "class Trainer:\n" + _indented([methods], unit)


def _indented(parts: list[str], unit: str) -> str:
    return textwrap.indent("\n".join(parts).replace("    ", unit), unit)
