"""[[rule]] tables that change calls: their arguments, and what stands around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.custom.rule_files import converted, said

ADD = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nadd = {k = "1"}\n'
ADD_FIRST = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nadd = {0 = "ctx"}\n'
ADD_TWO = '[[rule]]\nmatch = "lib.f"\narguments.add = {k = "1", m = "2"}\n'
ADD_SIGNED = '[[rule]]\nmatch = "lib.f"\nsignature = "f(a, k=0)"\narguments.add = {k = "1"}\n'
REMOVE = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nremove = ["k"]\n'
REMOVE_TWO = '[[rule]]\nmatch = "lib.f"\nsignature = "f(a, b, c, d)"\narguments.remove = ["a", "b"]\n'
REMOVE_SIGNED = (
    '[[rule]]\nmatch = "lib.f"\nsignature = "lib.f(a, k, c=1)"\n[rule.arguments]\nremove = ["k"]\n'
)
REMOVE_SECOND = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nremove = [1]\n'
REMOVE_RENAMED = '[[rule]]\nmatch = "lib.f"\nrename = "lib.g"\n[rule.arguments]\nremove = [0]\n'
RENAME = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nrename = {old = "new"}\n'
REPLACE = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nreplace = {k = "True"}\n'
REPLACE_SIGNED = '[[rule]]\nmatch = "lib.f"\nsignature = "a, k=1"\n[rule.arguments]\nreplace = {k = "True"}\n'
HALF = (
    '[[rule]]\nmatch = "lib.f"\nsignature = "f(a, lr)"\n[rule.arguments]\nreplace = {lr = "{value} * 0.5"}\n'
)
CALLED = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nreplace = {0 = "tuple({value})"}\n'
DOTTED = '[[rule]]\nmatch = "lib.f"\n[rule.arguments]\nreplace = {0 = "{value}.real"}\n'
METHOD = '[[rule]]\nmatch = "*.load"\n[rule.arguments]\nadd = {map_location = "\'cpu\'"}\n'
OWN = '[[rule]]\nmatch = "accuracy"\n[rule.arguments]\nadd = {topk = "(1,)"}\n'
EVERYTHING = """\
[[rule]]
match = "lib.f"
rename = "other.g"
wrap = "math.sqrt({call})"
[rule.arguments]
add = {new = "0"}
remove = ["gone"]
rename = {old = "young"}
replace = {0 = "float({value})"}
"""


@pytest.mark.parametrize(
    ("rules", "call"),
    [
        pytest.param(ADD, "f(1, k=2)", id="added already"),
        pytest.param(ADD, "f(**options)", id="it may be among the options"),
        pytest.param(ADD, "other.f(1)", id="another function"),
        pytest.param(ADD, "g(1)\n# lib.f(1)\nx = 'lib.f(1)'", id="comments and strings"),
        pytest.param(ADD, "lib.f(1)  # ferry: ignore[USER3]", id="told to leave it"),
        pytest.param(ADD, "f(x for x in y)", id="a generator without parentheses"),
        pytest.param(ADD_SIGNED, "f(1, 2)", id="added already, by position"),
        pytest.param(ADD_SIGNED, "f(*values)", id="it may be among the values"),
        pytest.param(REMOVE, "f(1, 2)", id="nothing to remove"),
        pytest.param(REMOVE_SECOND, "f(1, 2, 3)", id="the third argument would move"),
        pytest.param(REMOVE_SIGNED, "f(1, 2, *rest)", id="the others would move"),
        pytest.param(RENAME, "f(1, old=2, new=3)", id="both names"),
        pytest.param(RENAME, "f(old)", id="a value of that name"),
        pytest.param(REPLACE, "f(1, 2)", id="nobody says which one it is"),
        pytest.param(HALF, "f(1, lr=x * 0.5)", id="written so already"),
        pytest.param(OWN, "def f(accuracy):\n    return accuracy", id="not called"),
    ],
)
def test_noop(tmp_path: Path, rules: str, call: str) -> None:
    source = f"import lib, other\nfrom lib import f\n{call}\n"
    assert converted(tmp_path, rules, source) == source


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [
        (ADD, "lib.f()", "lib.f(k=1)"),
        (ADD, "lib.f(1, 2)", "lib.f(1, 2, k=1)"),
        (ADD, "lib.f(\n    1,  # one, two\n)", "lib.f(\n    1, k=1,  # one, two\n)"),
        (ADD, "lib.f(lib.f(2))", "lib.f(lib.f(2, k=1), k=1)"),
        (ADD, "x = [lib.f(i) for i in y]", "x = [lib.f(i, k=1) for i in y]"),
        (ADD_TWO, "lib.f(a)", "lib.f(a, k=1, m=2)"),
        (ADD_TWO, "lib.f(a, k=3)", "lib.f(a, k=3, m=2)"),
        (ADD_FIRST, "lib.f(a, b)", "lib.f(ctx, a, b)"),
        (ADD_FIRST, "lib.f()", "lib.f(ctx)"),
        (ADD_FIRST, "lib.f(k=2)", "lib.f(ctx, k=2)"),
        (REMOVE, "lib.f(1, k=2)", "lib.f(1)"),
        (REMOVE, "lib.f(k=2)", "lib.f()"),
        (REMOVE, "lib.f(k=(2), a=1)", "lib.f(a=1)"),
        (REMOVE, "lib.f(\n    a,  # one\n    k=2,  # two\n)", "lib.f(\n    a,  # one\n      # two\n)"),
        (REMOVE, "lib.f(\n    a  # one\n    , k=2\n)", "lib.f(\n    a  # one\n    \n)"),
        (REMOVE, "lib.f(a,  # one\n    k=2)", "lib.f(a,  # one\n    )"),
        (REMOVE_SIGNED, "lib.f(1, 2, 3)", "lib.f(1, c=3)"),
        (REMOVE_SIGNED, "lib.f(1, 2)", "lib.f(1)"),
        (REMOVE_SIGNED, "lib.f(1, k=2, c=3)", "lib.f(1, c=3)"),
        (REMOVE_TWO, "lib.f(1, 2, 3, 4)", "lib.f(c=3, d=4)"),
        (REMOVE_TWO, "lib.f(1, 2)", "lib.f()"),
        (REMOVE_SECOND, "lib.f(1, 2)", "lib.f(1)"),
        (REMOVE_RENAMED, "lib.f(1, 2, 3)", "lib.g(2, 3)"),
        (RENAME, "lib.f(1, old=old)", "lib.f(1, new=old)"),
        (REPLACE, "lib.f(1, k=g(2))", "lib.f(1, k=True)"),
        (REPLACE_SIGNED, "lib.f(1, g(2))", "lib.f(1, True)"),
        (REPLACE_SIGNED, "lib.f(1, k=(2))", "lib.f(1, k=(True))"),
        (HALF, "lib.f(p, args.lr)", "lib.f(p, args.lr * 0.5)"),
        (HALF, "lib.f(p, lr=a + b)", "lib.f(p, lr=(a + b) * 0.5)"),
        (HALF, "lib.f(p, lr=-1)", "lib.f(p, lr=(-1) * 0.5)"),
        (HALF, "lib.f(p, lr=2)", "lib.f(p, lr=2 * 0.5)"),
        (DOTTED, "lib.f(2)", "lib.f((2).real)"),
        (DOTTED, "lib.f(x.y)", "lib.f(x.y.real)"),
        (CALLED, "lib.f(a + b)", "lib.f(tuple(a + b))"),
        (CALLED, "lib.f(lib.f(1))", "lib.f(tuple(lib.f(tuple(1))))"),
        (METHOD, "x.load(1)", "x.load(1, map_location='cpu')"),
        (METHOD, "a[0]().load()", "a[0]().load(map_location='cpu')"),
        (OWN, "accuracy(x)", "accuracy(x, topk=(1,))"),
    ],
)
def test_arguments(tmp_path: Path, rules: str, before: str, after: str) -> None:
    assert converted(tmp_path, rules, f"import lib\n{before}\n") == f"import lib\n{after}\n"


def test_a_function_of_the_file_itself(tmp_path: Path) -> None:
    source = "def accuracy(x, topk=()):\n    pass\n\naccuracy(1)\n"
    assert converted(tmp_path, OWN, source) == source.replace("(1)", "(1, topk=(1,))")


def test_whatever_the_function_is_called_here(tmp_path: Path) -> None:
    source = "from lib import f as g\nimport lib as l\ng(1)\nl.f(1)\n"
    after = "from lib import f as g\nimport lib as l\ng(1, k=1)\nl.f(1, k=1)\n"
    assert converted(tmp_path, ADD, source) == after


def test_line_endings_and_text_outside_stay(tmp_path: Path) -> None:
    source = "# 注释\r\nimport lib\r\n\tif_ = 1\r\nlib.f(\r\n    1 )\r\n".replace("\tif_", "if_")
    assert converted(tmp_path, ADD, source) == source.replace("1 )", "1 , k=1)")


WRAP = '[[rule]]\nmatch = "lib.f"\nwrap = "torch.sqrt({call})"\n'
WRAP_OPERATOR = '[[rule]]\nmatch = "lib.f"\nwrap = "{call} + 1"\n'
WRAP_METHOD = '[[rule]]\nmatch = "*.step"\nwrap = "timed({call})"\n'
WRAP_NEEDS = '[[rule]]\nmatch = "lib.f"\nwrap = "root({call})"\nneeds = "from math import sqrt as root"\n'


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [
        (WRAP, "import torch, lib\nx = lib.f(1).y\n", "import torch, lib\nx = torch.sqrt(lib.f(1)).y\n"),
        (WRAP, "import lib\nlib.f(1)\n", "import lib\nimport torch\ntorch.sqrt(lib.f(1))\n"),
        (
            WRAP,
            '"""Doc."""\nfrom __future__ import annotations\nimport lib\n\n\ndef g():\n    return lib.f()\n',
            '"""Doc."""\nfrom __future__ import annotations\nimport lib\nimport torch\n\n\ndef g():\n'
            "    return torch.sqrt(lib.f())\n",
        ),
        (
            WRAP,
            "import lib\nfrom torch import sqrt\nsqrt(lib.f(1))\nlib.f(lib.f(2))\n",
            "import lib\nfrom torch import sqrt\nimport torch\nsqrt(lib.f(1))\ntorch.sqrt(lib.f(torch.sqrt(lib.f(2))))\n",
        ),
        (WRAP_OPERATOR, "import lib\nx = lib.f(1).y\n", "import lib\nx = (lib.f(1) + 1).y\n"),
        (WRAP_METHOD, "a.step().step()\n", "timed(timed(a.step()).step())\n"),
        (
            WRAP_NEEDS,
            "import lib; x = lib.f()\n",
            "import lib; from math import sqrt as root; x = root(lib.f())\n",
        ),
        (
            EVERYTHING,
            "import lib, math\nx = lib.f(a, gone=1, old=2)\n",
            "import lib, math\nimport other\nx = math.sqrt(other.g(float(a), young=2, new=0))\n",
        ),
        (
            EVERYTHING,
            "import math\nfrom lib import f\nx = f(f(1))\n",
            "import math\nfrom other import g as f\nx = math.sqrt(f(float(math.sqrt(f(float(1), new=0))), new=0))\n",
        ),
    ],
)
def test_wrap(tmp_path: Path, rules: str, before: str, after: str) -> None:
    assert converted(tmp_path, rules, before) == after


@pytest.mark.parametrize(
    ("rules", "source", "kind", "words"),
    [
        pytest.param(ADD, "import lib\nlib.f(**o)\n", "todo", "`k` may be in `**`", id="options"),
        pytest.param(
            REMOVE_SECOND, "import lib\nlib.f(1, 2, 3)\n", "todo", "Give the rule a `signature`", id="moves"
        ),
        pytest.param(RENAME, "import lib\nlib.f(old=1, new=2)\n", "todo", "both `old` and `new`", id="both"),
        pytest.param(
            ADD,
            "import lib\nlib.f(x for x in y)\n",
            "todo",
            "Change the call by hand",
            id="cannot be written",
        ),
        pytest.param(
            WRAP, "import lib\ntorch = 1\nlib.f()\n", "todo", "`torch` means something else here", id="taken"
        ),
        pytest.param(
            METHOD,
            "x = f'{y.load()}'\n",
            "todo",
            "The rule (rules.toml:1) can't change a call",
            id="quotes in an f-string",
        ),
    ],
)
def test_what_a_rule_cannot_do_is_said(
    tmp_path: Path, rules: str, source: str, kind: str, words: str
) -> None:
    assert converted(tmp_path, rules, source) == source
    ((_, found, line, message),) = said(tmp_path, rules, source)
    assert (found, line) == (kind, source.count("\n"))
    assert words in message


@pytest.mark.parametrize("to", ["ascend", "cambricon", "tecorigin", "moorethreads", "intel", "portable"])
def test_every_target(tmp_path: Path, to: str) -> None:
    source = "import torch, lib\nx = lib.f(torch.cuda.current_device())\n"
    text = converted(tmp_path, EVERYTHING, source, to)
    assert "math.sqrt(other.g(float(" in text
    assert ", new=0))" in text and "torch.cuda" not in text
