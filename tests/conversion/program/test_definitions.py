"""What a name stands for: whoever asks, the inference or a pass, gets the same answer."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conversion.rewriting import target
from torchferry.conversion.program.callees import callee_of
from torchferry.conversion.program.definitions import ProjectDefinition
from torchferry.conversion.program.module import PassModule, ProgramModule
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.program.slots import mentions
from torchferry.conversion.program.training_program import TrainingProgram
from torchferry.conversion.site import FileContext

FILES = {
    "nets.py": """
from functools import partial
class Base:
    def __init__(self, width): pass
    def run(self, x): pass
    @staticmethod
    def size(x): pass
    @classmethod
    def build(cls, x): pass
class Net(Base):
    def step(self, x): pass
def train(model, loader): pass
fit = train
quick = partial(train, None)
try:
    from fast import train as best
except ImportError:
    best = None
""",
    "fast.py": "def train(model): pass\n",
    "lib/__init__.py": "from .deep import *\nfrom ..nets import Net as Model\n",
    "lib/deep.py": "from .. import nets\ndef go(x): pass\n",
    "lib/up.py": "from . import *\nhere = go\n",
    "star.py": "from nets import *\n",
}

# The module, the expression that is called in it, and what that is: where, its name, parameters not written.
FOUND = [
    ("def f(x): pass\nf(1)", "f", "train.py f 0"),
    ("def f(x): pass\ng = f\ng(1)", "g", "train.py f 0"),
    ("from nets import train\ntrain(1)", "train", "nets.py train 0"),
    ("import nets\nnets.train(1)", "nets.train", "nets.py train 0"),
    ("from nets import train\nrun = train\nrun(1)", "run", "nets.py train 0"),
    ("from nets import fit\nfit(1)", "fit", "nets.py train 0"),
    ("from nets import quick\nquick(1)", "quick", "nets.py train 1"),
    ("from functools import partial\ndef f(x, y): pass\ng = partial(f, 1)\ng(2)", "g", "train.py f 1"),
    ("import functools\nfrom nets import Net\nnew = functools.partial(Net, 1)\nnew()", "new", "nets.py Net 1"),
    ("from nets import *\ntrain(1)", "train", "nets.py train 0"),
    ("from star import *\ntrain(1)", "train", "nets.py train 0"),
    ("from lib import go\ngo(1)", "go", "lib/deep.py go 0"),
    ("from lib.up import here\nhere(1)", "here", "lib/deep.py go 0"),
    ("from lib.deep import nets\nnets.train(1)", "nets.train", "nets.py train 0"),
    ("from lib import Model\nModel(1)", "Model", "nets.py Net 0"),
    ("from nets import best\nbest(1)", "best", "fast.py train 0"),
    ("from nets import Net\nNet.size(1)", "Net.size", "nets.py size 0"),
    ("from nets import Net\nNet.build(1)", "Net.build", "nets.py build 1"),
    ("from nets import Net\nNet.run(net, 1)", "Net.run", "nets.py run 0"),
    ("class A:\n    def f(self): pass\nA.f(a)", "A.f", "train.py f 0"),
    ("from nets import Net\nclass A(Net):\n    def f(self):\n        self.run(1)", "self.run", "nets.py run 1"),
    ("from nets import Net\nclass A(Net):\n    def run(self):\n        super().run(1)", "super().run", "nets.py run 1"),
    ("def f(x): pass\n[f(x) for x in range(3)]", "f", "train.py f 0"),
    ("def f(x): pass\n[x for x in f(3)]", "f", "train.py f 0"),
    (
        "def make():\n    from nets import Net\n    class A(Net): pass\n    A.run(1, 2)\nmake()",
        "A.run",
        "nets.py run 0",
    ),
]  # fmt: skip
UNKNOWN = [
    ("def f(x): pass\n[f(1) for f in fs]", "f"),
    ("def f(x): pass\ng = lambda f: f(1)", "f"),
    ("f(1)", "f"),
    ("import torch\ntorch.relu(1)", "torch.relu"),
    ("class A: pass\nA.f(1)", "A.f"),
    ("from nets import Net\nclass A(Net):\n    def f(self):\n        self.nothing(1)", "self.nothing"),
    ("f = f\nf(1)", "f"),
    ("class A(A):\n    def f(self):\n        self.g(1)", "self.g"),
    ("f = a if b else c\nf(1)", "f"),
]


def call_of(tree: ast.Module, function: str) -> ast.Call:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return next(node for node in calls if ast.unparse(node.func) == function)


def answers(folder: Path, source: str, function: str) -> list[str]:
    """What the inference, a pass over one module and a pass over the program say."""
    for path, text in {**FILES, "train.py": source}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    neighbours = Neighbours(folder, frozenset({"torch"}), [*FILES, "train.py"])
    program = TrainingProgram("train.py", neighbours)
    assert program.main is not None
    module = program.main.module
    context = FileContext(module, "train.py", target("ascend"), neighbours=neighbours)
    wanted = call_of(module.tree, function).func
    (site,) = [site for site in mentions(context, function.rpartition(".")[2]) if site.node is wanted]
    alone = PassModule(context)
    routine = alone.routine_of(alone.statement_of(wanted))
    found = (
        callee_of(site, wanted),
        alone.callee(wanted, routine),
        program.definition(program.main, wanted),
    )
    return [shown(item) for item in found]


def shown(found: ProjectDefinition[FileContext] | ProjectDefinition[ProgramModule] | None) -> str:
    return f"{found.file.path} {found.node.name} {found.given}" if found else ""


@pytest.mark.parametrize(("source", "function"), UNKNOWN)
def test_what_nobody_knows(source: str, function: str, tmp_path: Path) -> None:
    assert answers(tmp_path, source, function) == ["", "", ""]


@pytest.mark.parametrize(("source", "function", "expected"), FOUND)
def test_all_find_the_same(source: str, function: str, expected: str, tmp_path: Path) -> None:
    assert answers(tmp_path, source, function) == [expected] * 3
