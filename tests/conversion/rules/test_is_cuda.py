"""TF104: tensor.is_cuda."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, said, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("# x.is_cuda", id="a comment"),
        pytest.param("print('x.is_cuda')", id="a message"),
        pytest.param("is_cuda = True\nif is_cuda:\n    pass", id="a variable"),
        pytest.param("def f(is_cuda=True):\n    return is_cuda", id="a parameter"),
        pytest.param("use(is_cuda=True)", id="a keyword"),
        pytest.param("parser.add_argument('--is_cuda')", id="a command-line flag"),
        pytest.param("x.is_cuda_tensor", id="a longer name"),
        pytest.param("state['is_cuda']", id="a key"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if x.is_cuda: pass", "if x.is_npu: pass"),
        ("ok = not x.data.is_cuda and y.is_cuda", "ok = not x.data.is_npu and y.is_npu"),
        ("assert x.is_cuda, 'x.is_cuda'", "assert x.is_npu, 'x.is_cuda'"),
        ("d = next(model.parameters()).is_cuda", "d = next(model.parameters()).is_npu"),
        ("f = torch.Tensor.is_cuda", "f = torch.Tensor.is_npu"),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before) == after


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    assert expression("y = x.is_cuda", name) == f"y = x.{vendor(name).is_attribute}"


@pytest.mark.parametrize(
    "definition",
    [
        "    is_cuda = False\n",
        "    def __init__(self):\n        self.is_cuda = False\n",
        "    @property\n    def is_cuda(self):\n        return False\n",
    ],
)
def test_an_is_cuda_of_the_class_is_left(definition: str) -> None:
    source = f"class A:\n{definition}    def f(self):\n        return self.is_cuda\n"
    assert "return self.is_cuda\n" in rewritten(source)
    assert said(source, rule="TF104") == [("TF104", "info", "self.is_cuda")]


def test_a_command_line_flag_is_not_renamed() -> None:
    source = "parser.add_argument('--is_cuda')\nargs = parser.parse_args()\nif args.is_cuda:\n    pass"
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if x.is_cuda: pass", 'if (x.device.type != "cpu"): pass'),
        ("if not x.is_cuda: pass", 'if not (x.device.type != "cpu"): pass'),
        ("y = f(x).is_cuda", 'y = (f(x).device.type != "cpu")'),
        pytest.param("x.is_cuda and f()", '(x.device.type != "cpu") and f()', id="first in a statement"),
    ],
)
def test_portable(before: str, after: str) -> None:
    assert expression(before, "portable") == after
    assert said_of(before, "portable") == []
