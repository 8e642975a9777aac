"""A bad edit is caught, a good one is not."""

from __future__ import annotations

import pytest

from torchferry.conversion.verify import VerificationError, check_rewrite
from torchferry.source.decode import DecodedText
from torchferry.source.edits import Edit, apply_edits
from torchferry.source.module import ParseError, PythonModule

_SOURCE = """\
import torch
a = f(x)
def g(y):
    b = y
    if b:
        c = 1
    return b
class A:
    d = 1
    def h(self):
        return 2
e = '''text'''
"""


def check(source: str, *edits: Edit) -> None:
    old = PythonModule(DecodedText(source, "utf-8"))
    text = apply_edits(old.data, list(edits)).decode()
    check_rewrite(old, PythonModule(DecodedText(text, "utf-8")), list(edits))


def replace(old: str, new: str) -> Edit:
    start = _SOURCE.index(old)
    return Edit(start, start + len(old), new)


def before(old: str, new: str) -> Edit:
    start = _SOURCE.index(old)
    return Edit(start, start, new)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([replace("f(x)", "g(y, z)")], id="an expression"),
        pytest.param([before("a = f", "import os\n")], id="a new line"),
        pytest.param([before("    b = y", "    import os\n")], id="a new line inside"),
        pytest.param([replace("import torch", "import torch; import os")], id="a statement beside"),
        pytest.param([replace("import torch", "from a import b\nfrom c import d")], id="a statement as two"),
        pytest.param([Edit(len(_SOURCE), len(_SOURCE), "f = 1\n")], id="a line at the end"),
        pytest.param([replace("y)", "设备)"), replace("= y", "= 设备")], id="text of another length"),
        pytest.param([before("class A", "    npu = 1\n")], id="the end of a block grows"),
        pytest.param([before("a = f", "z = ")], id="a statement begins earlier"),
        pytest.param([before("a = f", "import os\nz = ")], id="a new line, and a statement begins earlier"),
        pytest.param([before("b = y", "import os\r\n    z = ")], id="the same inside"),
        pytest.param([before("f(x)", "("), replace("(x)", "(x))")], id="brackets around"),
        pytest.param([], id="nothing"),
    ],
)
def test_good(edits: list[Edit]) -> None:
    check(_SOURCE, *edits)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([replace("f(x)", "'''"), replace("'''text'''", "x '''")], id="opens a string"),
        pytest.param([before("    d = 1", "    pass #")], id="comments a statement out"),
        pytest.param([before("    return b", "    ")], id="moves a statement into a block"),
        pytest.param([before("e = ", "if x: ")], id="puts a condition before"),
        pytest.param(
            [before("    b = y", "    y = '''\n"), before("    if b", "    '''\n")], id="swallows a statement"
        ),
    ],
)
def test_bad(edits: list[Edit]) -> None:
    with pytest.raises(VerificationError, match="reads differently near line"):
        check(_SOURCE, *edits)


def test_a_rewrite_that_does_not_parse() -> None:
    with pytest.raises(ParseError):
        check(_SOURCE, replace("f(x)", "f(x"))
