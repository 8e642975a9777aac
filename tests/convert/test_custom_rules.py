"""The user's own rules, in the JSON format of the Ascend guide."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.convert.rewriting import target
from torchferry.convert.custom import CustomRules, load_custom_rules
from torchferry.convert.project import Plan, examine_project
from torchferry.errors import RuleFileError

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


def loaded(folder: Path, rules: Any) -> CustomRules:
    path = folder / "rules.json"
    path.write_text(rules if isinstance(rules, str) else json.dumps({"rules": rules}), "utf-8")
    return load_custom_rules(path)


def converted(folder: Path, rules: Any, source: str, to: str = "ascend") -> str:
    project = folder / "project"
    project.mkdir()
    text = textwrap.dedent(source)
    (project / "module.py").write_text(text, "utf-8")
    plan = Plan(target(to), custom=loaded(folder, rules))
    outcomes = examine_project(project, plan).outcomes
    data = outcomes[0].new_data if outcomes else None
    return text if data is None else data.decode()


def test_the_guides_example_is_read(tmp_path: Path) -> None:
    rules = loaded(tmp_path, _GUIDE)
    assert [rule.function for rule in rules.arguments] == ["name1", "name2"]
    assert [(rule.old, rule.new) for rule in rules.functions] == [("func", "new_func")]
    assert [(rule.old, rule.new) for rule in rules.modules] == [
        ("parent_module.module", "parent_module.new_module")
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
    project = tmp_path / "p"
    project.mkdir()
    (project / "m.py").write_text("name1(1)\n")
    outcome = examine_project(project, Plan(target("ascend"), custom=loaded(tmp_path, _NAME1)))
    (finding,) = outcome.report("scan").findings
    assert finding.rule.startswith("USER")
    assert finding.message.en == "your rule: argument 0 of name1"


_PLACE = "rules.json: rules.ArgsModifyRule[0]"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        pytest.param("{", ["rules.json:1:", "not JSON"], id="not JSON"),
        pytest.param("[]", ["expected", "rules", "ArgsModifyRule"], id="a list"),
        pytest.param("{}", ["expected", "rules"], id="no rules"),
        pytest.param(
            {"ArgModifyRule": []}, ["rules.ArgModifyRule", "ArgsModifyRule", "FuncNameModifyRule"], id="kind"
        ),
        pytest.param({"ArgsModifyRule": {}}, ["rules.ArgsModifyRule", "list", "dict"], id="no list"),
        pytest.param({"ArgsModifyRule": ["x"]}, [_PLACE, "func_name", "arg_idx", "arg_new"], id="no object"),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": 0}]},
            [_PLACE, "arg_new is missing", "str"],
            id="missing",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": "0", "arg_new": "x"}]},
            [f"{_PLACE}.arg_idx", "int", "str"],
            id="wrong type",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": True, "arg_new": "x"}]},
            [f"{_PLACE}.arg_idx", "int", "bool"],
            id="a truth value is no position",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": -1, "arg_new": "x"}]},
            [f"{_PLACE}.arg_idx", "counted from 0"],
            id="a negative position",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": 0, "arg_new": "x) + ("}]},
            [f"{_PLACE}.arg_new", "one argument"],
            id="no argument",
        ),
        pytest.param(
            {"FuncNameModifyRule": [{"old_name": "f", "new_name": "g h"}]},
            ["rules.FuncNameModifyRule[0].new_name", "dotted Python name"],
            id="no name",
        ),
        pytest.param(
            {"ModuleNameModifyRule": [{"old_name": "f", "new_name": "g", "parent": "h"}]},
            ["rules.ModuleNameModifyRule[0].parent", "parent_module"],
            id="unknown key",
        ),
    ],
)
def test_mistakes_name_the_place_and_what_is_allowed(tmp_path: Path, rules: Any, said: list[str]) -> None:
    with pytest.raises(RuleFileError) as caught:
        loaded(tmp_path, rules)
    for word in said:
        assert word in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuleFileError, match="no such rule file"):
        load_custom_rules(tmp_path / "none.json")


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_bytes('{"rules": {"函数": []}}'.encode("gbk"))
    with pytest.raises(RuleFileError, match="UTF-8"):
        load_custom_rules(path)
