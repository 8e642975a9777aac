"""What names mean, and where things are."""

from __future__ import annotations

import ast
import textwrap

import pytest

from torchferry.source.decode import DecodedText
from torchferry.source.module import ParseError, PythonModule
from torchferry.source.walk import WalkState, walk_lines


def parsed(source: str) -> PythonModule:
    return PythonModule(DecodedText(source, "utf-8"), frozenset({"torch"}))


def meaning(source: str) -> str:
    """What the chain that ends in `.HERE` stands for, without that ending; "" for nothing known."""
    module = parsed(textwrap.dedent(source))
    found: list[str] = []

    def visit(node: ast.AST, place: WalkState) -> None:
        assert isinstance(node, ast.Attribute)
        if node.attr == "HERE":
            resolved = module.resolve(node, place.scope, place.shadowed)
            found.append(resolved.qualified.removesuffix(".HERE") if resolved else "")

    walk_lines(module, list(range(1, len(module.line_starts) + 1)), {ast.Attribute: visit})
    (only,) = found
    return only


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.HERE", "torch"),
        ("import torch as th\nth.cuda.HERE", "torch.cuda"),
        ("import torch.cuda\ntorch.cuda.HERE", "torch.cuda"),
        ("import torch.cuda as c\nc.HERE", "torch.cuda"),
        ("import torch.cuda.amp as amp\namp.HERE", "torch.cuda.amp"),
        ("import os, torch as t\nt.HERE", "torch"),
        ("from torch import cuda\ncuda.HERE", "torch.cuda"),
        ("from torch import cuda as c\nc.HERE", "torch.cuda"),
        ("from torch.cuda.amp import autocast as ac\nac.HERE", "torch.cuda.amp.autocast"),
        ("from torch import *\ncuda.HERE", "torch.cuda"),
        ("from torch.cuda import *\nStream.HERE", "torch.cuda.Stream"),
        pytest.param("torch.cuda.HERE", "torch.cuda", id="never imported, but well known"),
        pytest.param("from .cuda import x\nx.HERE", ".cuda.x", id="relative import"),
        pytest.param("from . import cuda\ncuda.HERE", ".cuda", id="relative import of the package"),
        pytest.param("from ..torch import cuda\ncuda.HERE", "..torch.cuda", id="relative: another torch"),
        pytest.param("import mylib\nmylib.cuda.HERE", "mylib.cuda", id="another library"),
    ],
)
def test_imports(source: str, expected: str) -> None:
    assert meaning(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("import torch\ncuda = torch.cuda\ncuda.HERE", "torch.cuda", id="alias"),
        pytest.param(
            "import torch\na = torch\nb = a.cuda\nc = b\nc.HERE", "torch.cuda", id="aliases of aliases"
        ),
        pytest.param("import torch\na = b = torch.cuda\nb.HERE", "torch.cuda", id="two targets"),
        pytest.param("import torch\ntorch.cuda = 3\ntorch.cuda.HERE", "torch.cuda", id="a set attribute"),
        pytest.param("a = b\nb = a\na.HERE", "", id="aliases in a circle"),
        pytest.param("import torch\ncuda = f(torch)\ncuda.HERE", "", id="the result of a call"),
        pytest.param("cuda = True\ncuda.HERE", "", id="a flag"),
        pytest.param("import torch\ntorch = mine()\ntorch.HERE", "", id="bound again before use"),
        pytest.param("import torch\ntorch.HERE\ntorch = mine()", "torch", id="bound again after use"),
        pytest.param("import torch\nfor torch in xs:\n    torch.HERE", "", id="a loop variable"),
        pytest.param("import torch\nwith f() as torch:\n    torch.HERE", "", id="with ... as"),
        pytest.param("import torch\na, torch = 1, 2\ntorch.HERE", "", id="unpacking"),
        pytest.param("import torch\nx.torch = 3\ntorch.HERE", "torch", id="an attribute of the same name"),
        pytest.param("class torch:\n    pass\ntorch.HERE", "", id="a class of that name"),
        pytest.param("def torch():\n    pass\ntorch.HERE", "", id="a function of that name"),
        pytest.param(
            "try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.HERE",
            "torch",
            id="fallback None",
        ),
        pytest.param(
            "try:\n    import torch\nexcept ImportError:\n    import mytorch as torch\ntorch.HERE",
            "torch",
            id="fallback module",
        ),
        pytest.param(
            "try:\n    from apex import amp\nexcept ImportError:\n    from torch.cuda import amp\namp.HERE",
            "apex.amp",
            id="the first choice counts",
        ),
        pytest.param(
            "torch = None\ntry:\n    import torch\nexcept ImportError:\n    pass\ntorch.HERE",
            "torch",
            id="None first",
        ),
        pytest.param("match x:\n    case [torch]:\n        torch.HERE", "", id="a captured name"),
    ],
)
def test_rebinding(source: str, expected: str) -> None:
    assert meaning(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("import torch\ndef f():\n    torch.HERE", "torch", id="from the module"),
        pytest.param("def f():\n    torch.HERE\nimport torch", "torch", id="imported later in the module"),
        pytest.param("def f():\n    import torch as t\n    t.HERE", "torch", id="imported inside"),
        pytest.param(
            "def f():\n    import torch as t\ndef g():\n    t.HERE", "", id="imported in another function"
        ),
        pytest.param("import torch\ndef f(torch):\n    torch.HERE", "", id="a parameter"),
        pytest.param("import torch\ndef f(*torch):\n    torch.HERE", "", id="*args"),
        pytest.param("import torch\ndef f(**torch):\n    torch.HERE", "", id="**kwargs"),
        pytest.param("import torch\ndef f(a, /, *, torch=1):\n    torch.HERE", "", id="keyword only"),
        pytest.param("import torch\nasync def f(torch):\n    torch.HERE", "", id="async"),
        pytest.param("import torch\ndef f(torch=torch.HERE):\n    pass", "torch", id="a default is outside"),
        pytest.param(
            "import torch\n@torch.HERE\ndef f(torch):\n    pass", "torch", id="a decorator is outside"
        ),
        pytest.param(
            "import torch\ndef f(torch) -> torch.HERE:\n    pass", "torch", id="annotations are outside"
        ),
        pytest.param("import torch\ndef f(torch):\n    def g():\n        torch.HERE", "", id="two deep"),
        pytest.param("import torch\ndef f():\n    torch = 3\n    torch.HERE", "", id="a local variable"),
        pytest.param(
            "import torch\ndef f():\n    torch = 3\ndef g():\n    torch.HERE", "torch", id="another's local"
        ),
        pytest.param("import torch\nclass A:\n    torch = 3\n    torch.HERE", "", id="class body"),
        pytest.param(
            "import torch\nclass A:\n    torch = 3\n    def f(self):\n        torch.HERE",
            "torch",
            id="methods don't see the class body",
        ),
        pytest.param(
            "import torch\ndef f():\n    global torch\n    torch = g(torch.HERE)", "torch", id="global"
        ),
        pytest.param("import torch\nf = lambda torch: torch.HERE", "", id="lambda"),
        pytest.param("import torch\nf = lambda *torch: torch.HERE", "", id="lambda *args"),
        pytest.param("import torch\nf = lambda **torch: torch.HERE", "", id="lambda **kwargs"),
        pytest.param("import torch\nf = lambda x: torch.HERE", "torch", id="lambda of another name"),
        pytest.param("import torch\nx = [torch.HERE for torch in y]", "", id="list comprehension"),
        pytest.param("import torch\nx = {k: torch.HERE for k, torch in y}", "", id="dict comprehension"),
        pytest.param("import torch\nx = [y for y in torch.HERE]", "torch", id="a comprehension's source"),
        pytest.param(
            "import torch\nx = [torch for torch in torch.HERE]", "torch", id="the first source is outside"
        ),
        pytest.param("import torch\nx = [torch.HERE for y in z]", "torch", id="a comprehension's element"),
    ],
)
def test_scopes(source: str, expected: str) -> None:
    assert meaning(source) == expected


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("a = 1\nb = 2\n", id="LF"),
        pytest.param("a = 1\r\nb = 2\r\n", id="CRLF"),
        pytest.param("a = 1\rb = 2\r", id="CR"),
        pytest.param("a = 1\rb = 2\r\nc = 3\n", id="mixed"),
        pytest.param("if a:\n\tb = 2\n", id="tabs"),
        pytest.param("a = 1\n\f\nb = 2\n\f", id="form feeds"),
        pytest.param("a = 1; s = '设备é'; b = ", id="non-ASCII before on the line"),
        pytest.param("s = '''\r\n\r\n\n'''\n", id="newlines in a string"),
        pytest.param("s = 'a\u2028b\x0bc\x1cd\x85e'\n", id="characters that only str.splitlines splits at"),
        pytest.param("s = 'a' + \\\r\n  'b'\r\n", id="a continued line"),
    ],
)
@pytest.mark.parametrize("tail", ["", "\n", "\r\n", "\r"], ids=["no final newline", "LF", "CRLF", "CR"])
def test_positions(head: str, tail: str) -> None:
    module = parsed(f"{head}torch.cuda.f(x){tail}")
    (call,) = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    assert module.segment(call) == "torch.cuda.f(x)"
    assert isinstance(call.func, ast.Attribute)
    assert module.attribute_span(call.func) == (module.end(call) - 4, module.end(call) - 3)
    start = module.start(call)
    assert module.offset(call.lineno, call.col_offset) == start
    assert module.line_of(start) == call.lineno
    assert module.lines_with([b"torch.cuda"]) == {call.lineno}
    assert module.line_text(call.lineno).endswith("torch.cuda.f(x)")
    assert module.column_of(start) == module.line_text(call.lineno).index("torch") + 1


@pytest.mark.parametrize(
    ("source", "newline"),
    [("", "\n"), ("a", "\n"), ("a\r\nb\n", "\r\n"), ("a\rb\n", "\r"), ("a\nb\r\n", "\n")],
)
def test_newline_is_that_of_the_first_line(source: str, newline: str) -> None:
    assert parsed(source).newline == newline


def test_lines_with_names_wants_whole_names() -> None:
    module = parsed("cuda\nmycuda\ncuda_x\nx.cuda\n'cuda'\n")
    assert module.lines_with_names(["cuda"]) == {1, 4, 5}
    assert module.lines_with([b"cuda"]) == {1, 2, 3, 4, 5}
    assert module.lines_with_names([]) == set()


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param("x = 1\nprint 'a'\n", 2, id="Python 2"),
        pytest.param("x = '\n", 1, id="open string"),
        pytest.param("x = 1\n  y = 2\n", 2, id="indentation"),
        pytest.param("x = 1\0", 1, id="null byte"),
        pytest.param("(" * 500, 1, id="too deep"),
    ],
)
def test_parse_error_names_the_line(source: str, line: int) -> None:
    with pytest.raises(ParseError) as caught:
        parsed(source)
    assert caught.value.line == line
    assert str(caught.value)
