"""Rules in the JSON format of the Ascend guide: what they change, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conversion.custom.rule_files import converted, findings_of, loaded, outcome

_GUIDE = """\
{
    "rules": {
        "ArgsModifyRule": [
            {"func_name": "name1", "arg_idx": 0, "arg_new": "agrs0"},
            {"func_name": "name2", "arg_idx": 0, "arg_new": "agrs0"}
        ],
        "FuncNameModifyRule": [
            {"old_name": "func", "new_name": "new_func"}
        ],
        "ModuleNameModifyRule": [
            {"old_name": "module", "new_name": "new_module", "parent_module":"parent_module"}
        ]
    }
}
"""


def test_the_guides_example_is_read(tmp_path: Path) -> None:
    rules = loaded(tmp_path, _GUIDE).rules
    assert [(rule.id, rule.match.name, rule.rename) for rule in rules] == [
        ("USER1", "name1", ""),
        ("USER1", "name2", ""),
        ("USER2", "parent_module.module", "parent_module.new_module"),
        ("USER2", "func", "new_func"),
    ]


_NAME1 = {"ArgsModifyRule": [{"func_name": "name1", "arg_idx": 0, "arg_new": "args0"}]}
_SECOND = {"ArgsModifyRule": [{"func_name": "a.b.f", "arg_idx": 1, "arg_new": "x=1"}]}
_FUNC = {"FuncNameModifyRule": [{"old_name": "func", "new_name": "new_func"}]}
_DOTTED = {"FuncNameModifyRule": [{"old_name": "a.b.func", "new_name": "a.c.new"}]}
_MODULE = {"ModuleNameModifyRule": [{"old_name": "amp", "new_name": "amp2", "parent_module": "my.cuda"}]}
_TOP = {"ModuleNameModifyRule": [{"old_name": "mylib", "new_name": "yourlib"}]}


@pytest.mark.parametrize(
    ("rules", "source"),
    [
        pytest.param(_NAME1, "name1()\n", id="too few arguments"),
        pytest.param(_NAME1, "name1(args0, 2)\n", id="the argument is there already"),
        pytest.param(_NAME1, "name12(1)\nmy_name1(1)\n", id="another function"),
        pytest.param(_NAME1, "# name1(1)\nprint('name1(1)')\n", id="comments and messages"),
        pytest.param(_FUNC, "functional()\nx = 'func'\n", id="a longer name and a string"),
        pytest.param(_MODULE, "import my\nmy.amp.f()\n", id="another parent"),
        pytest.param(_MODULE, "amp = 1\nuse(amp)\n", id="a variable of that name"),
        pytest.param(_TOP, "from .mylib import x\n", id="a relative import"),
        pytest.param(_NAME1, "name1(1)  # ferry: ignore[USER1]\n", id="told to leave it"),
        pytest.param(_FUNC, "import lib\nlib.func(1)  # ferry: ignore[USER2]\n", id="told to leave the name"),
        pytest.param(_FUNC, "x.func(1)\n", id="a method of an object"),
        pytest.param(_NAME1, "name1(*values)\n", id="positions that nobody knows"),
        pytest.param(_SECOND, "import a.b\na.b.f(1, 2, 3)\n", id="a keyword before a positional argument"),
    ],
)
def test_noop(tmp_path: Path, rules: Any, source: str) -> None:
    assert converted(tmp_path, rules, source) == source


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [
        (_NAME1, "name1(old, 2)\n", "name1(args0, 2)\n"),
        (_NAME1, "x.name1(f(1)[2])\n", "x.name1(args0)\n"),
        (_SECOND, "from a import b\nb.f(1, 2)\n", "from a import b\nb.f(1, x=1)\n"),
        (_SECOND, "from a.b import f as g\ng(1, 2)\n", "from a.b import f as g\ng(1, x=1)\n"),
        (_NAME1, "name1(x for x in y)\n", "name1(args0)\n"),
        (_NAME1, "name1((old), 2)\n", "name1((args0), 2)\n"),
        (_NAME1, "name1(name1(1))\n", "name1(args0)\n"),
        (_FUNC, "import lib\nlib.func(1)\n", "import lib\nlib.new_func(1)\n"),
        (_FUNC, "from lib import func\nfunc(1)\n", "from lib import new_func as func\nfunc(1)\n"),
        (_DOTTED, "import a.b\na.b.func()\n", "import a.b\na.c.new()\n"),
        (_MODULE, "import my.cuda\nmy.cuda.amp.f()\n", "import my.cuda\nmy.cuda.amp2.f()\n"),
        (_MODULE, "from my.cuda import amp\namp.f()\n", "from my.cuda import amp2 as amp\namp.f()\n"),
        (_MODULE, "from my.cuda.amp import f\nf()\n", "from my.cuda.amp2 import f\nf()\n"),
        (_MODULE, "import my.cuda.amp as amp\namp.f()\n", "import my.cuda.amp2 as amp\namp.f()\n"),
        (_TOP, "import mylib\nmylib.f()\n", "import yourlib\nyourlib.f()\n"),
        (_TOP, "import mylib as m\nm.f()\n", "import yourlib as m\nm.f()\n"),
        (_TOP, "from mylib.sub import x\n", "from yourlib.sub import x\n"),
    ],
)
def test_rewrites(tmp_path: Path, rules: Any, before: str, after: str) -> None:
    assert converted(tmp_path, rules, before) == after


def test_a_function_of_the_module_itself_is_called_by_its_new_name(tmp_path: Path) -> None:
    source = "def run():\n    return func(1)\n"
    assert converted(tmp_path, _FUNC, source) == source.replace("func", "new_func")


def test_user_rules_come_before_ours(tmp_path: Path) -> None:
    rules = {"FuncNameModifyRule": [{"old_name": "torch.cuda.synchronize", "new_name": "my.sync"}]}
    source = "import torch, my\ntorch.cuda.synchronize()\ntorch.cuda.empty_cache()\n"
    text = converted(tmp_path, rules, source)
    assert "\nmy.sync()\ntorch.npu.empty_cache()\n" in text


def test_beside_our_rules(tmp_path: Path) -> None:
    rules = {"ArgsModifyRule": [{"func_name": "init_process_group", "arg_idx": 0, "arg_new": "'gloo'"}]}
    source = "import torch\ntorch.distributed.init_process_group('nccl')\nx.cuda()\n"
    text = converted(tmp_path, rules, source)
    assert "init_process_group('gloo')" in text
    assert text.endswith("x.npu()\n")


def test_findings_are_the_users(tmp_path: Path) -> None:
    (finding,) = findings_of(outcome(tmp_path, loaded(tmp_path, _NAME1), "name1(\n    old,\n)\n"))
    assert (finding.rule, finding.line, finding.before, finding.after) == ("USER1", 2, "old", "args0")
    assert finding.message.en == "Your rule: argument 0 of `name1`"
