"""TF112: the method cuda without its call."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, said_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("use = args.cuda", id="a flag"),
        pytest.param("if args.cuda: pass", id="a flag that is tested"),
        pytest.param("run(args.cuda)", id="a flag that is passed on"),
        pytest.param("self.cuda = opt.cuda and ok", id="a flag that is kept"),
        pytest.param("use = opt.cuda\nif use: pass", id="a flag in a variable"),
        pytest.param("use = opt.cuda if opt.cuda else 0", id="a flag or a number"),
        pytest.param("def show(flag): print(flag)\nshow(opt.cuda)", id="a flag that a function prints"),
        pytest.param("v = torch.version.cuda", id="a version"),
        pytest.param("from . import backends\nf = backends.cuda\nf()", id="a name of an own module"),
        pytest.param("hasattr(x, 'cuda')", id="a question"),
        pytest.param("f = getattr(args, 'cuda')", id="a flag by name"),
        pytest.param("getattr(args, 'cuda', False)", id="a flag with a default"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF112") == []


@pytest.mark.parametrize(
    "source",
    [
        "move = x.cuda\ny = move()",
        "move = x.cuda if ok else x.cpu",
        "move = x.cpu if slow else x.cuda",
        "def run(f):\n    return f()\nrun(x.cuda)",
        "def run(f=None):\n    return f(0)\nrun(f=x.cuda)",
        "from functools import partial\nmove = partial(x.cuda, non_blocking=True)",
        "y = list(map(x.cuda, [0, 1]))",
        "y = getattr(x, 'cuda')()",
        "y = getattr(x.y, 'cuda')(0, non_blocking=True)",
        "from operator import methodcaller\nmove = methodcaller('cuda')",
        "y = map(lambda t: t.cuda(), xs)",
    ],
)
def test_a_method_that_is_called_in_the_end(source: str) -> None:
    assert expression(source) == source.replace("cuda", "npu")


@pytest.mark.parametrize("source", ["move = x.cuda\ny = move()", "y = getattr(x, 'cuda')()"])
def test_portable_code_has_no_such_method(source: str) -> None:
    assert expression(source, "portable") == source
    assert [item[:2] for item in said_of(source, "portable")] == [("TF112", "todo")]


def test_a_class_with_a_cuda_of_its_own_is_left() -> None:
    source = "class A:\n    def cuda(self): pass\n    npu = cuda\na = A()\nmove = a.cuda\nmove()"
    assert expression(source) == source
    assert said_of(source) == [("TF112", "info", "a.cuda")]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("h = x.cuda", id="kept"),
        pytest.param("moves = {'a': x.cuda, 'b': x.cpu}", id="kept in a table"),
        pytest.param("run(model.cuda)", id="handed to a stranger"),
        pytest.param("def move(x):\n    return x.cuda", id="returned"),
    ],
)
def test_what_may_be_the_method_is_named(source: str) -> None:
    assert expression(source) == source
    assert [kind for _, kind, _ in said_of(source, rule="TF112")] == ["todo"]
    assert [kind for _, kind, _ in said_of(source, "portable", rule="TF112")] == ["todo"]


def test_a_flag_that_the_module_sets_is_no_method() -> None:
    assert said_of("run.cuda = True\nh = run.cuda", rule="TF112") == []
