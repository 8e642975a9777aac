"""Mistakes in rule files: the line, the key, what is wrong, and what is allowed; all of them at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conversion.custom.rule_files import KNOWN, loaded, outcome
from torchferry.conversion.custom.json_format import load_custom_rules
from torchferry.errors import RuleFileError


def mistakes(folder: Path, rules: Any, name: str = "") -> list[str]:
    """The lines of the error, without the folder."""
    if name:
        (folder / name).write_text(rules, "utf-8")
    with pytest.raises(RuleFileError) as caught:
        load_custom_rules(folder / name, vendors=KNOWN) if name else loaded(folder, rules)
    return [line.replace(f"{folder}/", "") for line in caught.value.lines]


_PLACE = "rules.json:1: rules.ArgsModifyRule[0]"


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        pytest.param(
            "{", "rules.json:1:2: not JSON: Expecting property name enclosed in double quotes", id="not JSON"
        ),
        pytest.param("", "rules.json:1:1: not JSON: Expecting value", id="empty"),
        pytest.param(
            "\n\n{}", 'rules.json:1: expected {"rules": {...}} with any of ArgsModifyRule,', id="no rules"
        ),
        pytest.param("[" * 100_000, "rules.json: nested too deeply", id="deeply nested"),
        pytest.param(
            '{"rules":\n{"ArgModifyRule": []}}',
            "rules.json:2: rules.ArgModifyRule: unknown; did you mean ArgsModifyRule?; allowed are ArgsModifyRule, "
            "FuncNameModifyRule, ModuleNameModifyRule",
            id="kind",
        ),
        pytest.param(
            '{"rules": {"FuncNameModifyRule": [],\n"FuncNameModifyRule": []}}',
            "rules.json:2: rules.FuncNameModifyRule: is given twice",
            id="a key twice",
        ),
        pytest.param(
            {"ArgsModifyRule": {}},
            "rules.json:1: rules.ArgsModifyRule: expected a list, found dict",
            id="no list",
        ),
        pytest.param(
            {"ArgsModifyRule": ["x"]},
            f"{_PLACE}: expected an object with func_name, arg_idx, arg_new",
            id="text",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": 0}]},
            f"{_PLACE}: arg_new is missing (expected str)",
            id="missing",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": "0", "arg_new": "x"}]},
            f"{_PLACE}.arg_idx: expected int, found str",
            id="wrong type",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": True, "arg_new": "x"}]},
            f"{_PLACE}.arg_idx: expected int, found bool",
            id="a truth value is no position",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": -1, "arg_new": "x"}]},
            f"{_PLACE}.arg_idx: -1 is not a position counted from 0",
            id="a negative position",
        ),
        pytest.param(
            {"ArgsModifyRule": [{"func_name": "f", "arg_idx": 0, "arg_new": "x) + ("}]},
            f"{_PLACE}.arg_new: 'x) + (' is not one argument of a Python call",
            id="no argument",
        ),
        pytest.param(
            '{"rules": {\n "FuncNameModifyRule": [\n  {"old_name": "f",\n   "new_name": "g h"}]}}',
            "rules.json:4: rules.FuncNameModifyRule[0].new_name: 'g h' is not a dotted Python name",
            id="no name",
        ),
        pytest.param(
            {"ModuleNameModifyRule": [{"old_name": "f", "new_name": "g", "parent": "h"}]},
            "rules.json:1: rules.ModuleNameModifyRule[0].parent: unknown; did you mean parent_module?; allowed are old_name,",
            id="unknown key",
        ),
    ],
)
def test_json(tmp_path: Path, rules: Any, line: str) -> None:
    (found,) = mistakes(tmp_path, rules, "rules.json" if isinstance(rules, str) else "")
    assert found.startswith(line)


_RULE = '[[rule]]\nmatch = "a.f"\n'


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        pytest.param("", "1: has no rules; begin each with [[rule]]", id="empty"),
        pytest.param("\n[[rule]\n", "2:", id="not TOML"),
        pytest.param(f'{_RULE}rename = "x', "3: not TOML: Unterminated string", id="a string without an end"),
        pytest.param("[rule]\n", "1: rule: expected tables; begin each with [[rule]]", id="one bracket"),
        pytest.param("[[rules]]\n", "1: rules: unknown; did you mean rule?; allowed are rule", id="table"),
        pytest.param(
            f"{_RULE}",
            "1: rule: has no action; add one of rename, import, arguments, wrap",
            id="nothing",
        ),
        pytest.param('[[rule]]\nrename = "b"\n', "1: rule: match is missing", id="no match"),
        pytest.param(
            f'{_RULE}\nrenam = "b"\n',
            "4: rule.renam: unknown; did you mean rename?; allowed are match, rename, import,",
            id="a misspelt key",
        ),
        pytest.param(f"{_RULE}rename = 1\n", "3: rule.rename: expected a string, found 1", id="a number"),
        pytest.param(
            f"{_RULE}rename = true\n", "3: rule.rename: expected a string, found true", id="a truth value"
        ),
        pytest.param(
            '[[rule]]\nmatch = "a f"\nrename = "b"\n', '2: rule.match: "a f" is neither', id="no match name"
        ),
        pytest.param(
            '[[rule]]\nmatch = "*.a.b"\nrename = "b"\n', '2: rule.match: "*.a.b" is neither', id="a star"
        ),
        pytest.param(
            f'{_RULE}rename = "b-c"\n', '3: rule.rename: "b-c" is not a dotted Python name', id="no name"
        ),
        pytest.param(
            f'{_RULE}rename = "a.class"\n', '3: rule.rename: "a.class" is not a dotted', id="a keyword"
        ),
        pytest.param(f'{_RULE}rename = "a.f"\n', "3: rule.rename: is the current name", id="the same"),
        pytest.param(
            '[[rule]]\nmatch = "*.f"\nrename = "a.b"\n',
            '3: rule.rename: "a.b" is not a name without dots',
            id="dots",
        ),
        pytest.param(
            f'{_RULE}[rule.arguments]\nad = {{k = "1"}}\n',
            "4: rule.arguments.ad: unknown; did you mean add?; allowed are add, remove, rename, replace",
            id="an unknown action",
        ),
        pytest.param(
            f"{_RULE}[rule.arguments]\nadd = {{k = 1}}\n",
            "4: rule.arguments.add: expected a table of strings, found a table",
            id="a value that is no string",
        ),
        pytest.param(
            f'{_RULE}[rule.arguments.add]\nj = "1"\nk = "1 +"\n',
            '5: rule.arguments.add.k: "1 +" is not a Python expression',
            id="no expression",
        ),
        pytest.param(
            f'{_RULE}arguments.add = {{k = "{{value}} + 1"}}\n',
            "3: rule.arguments.add.k: {value} has no meaning here",
            id="no value yet",
        ),
        pytest.param(
            f'{_RULE}arguments.replace = {{k = "[{{value}}, {{value}}]"}}\n',
            '3: rule.arguments.replace.k: "[{value}, {value}]" must contain {value} only once',
            id="twice",
        ),
        pytest.param(
            f'{_RULE}arguments.remove = [\n  "a",\n  "b c",\n]\n',
            '5: rule.arguments.remove: "b c" is neither the name of an argument nor a position',
            id="no argument",
        ),
        pytest.param(
            f'{_RULE}arguments.rename = {{a = "b.c"}}\n',
            '3: rule.arguments.rename.a: "b.c" is not the name of an argument',
            id="a dotted argument",
        ),
        pytest.param(
            f"{_RULE}arguments = {{}}\n",
            "3: rule.arguments: has no action; allowed are add,",
            id="no action",
        ),
        pytest.param(
            f'{_RULE}wrap = "g()"\n',
            '3: rule.wrap: "g()" must contain {call} in place of the call',
            id="no hole",
        ),
        pytest.param(
            f'{_RULE}wrap = "g({{call}}"\n', '3: rule.wrap: "g({call}" is not a Python expression', id="open"
        ),
        pytest.param(
            f"{_RULE}wrap = \"g('{{call}}')\"\n",
            "3: rule.wrap: \"g('{call}')\" must contain {call} as an expression",
            id="text",
        ),
        pytest.param(
            f'{_RULE}wrap = "{{call}}"\n', "3: rule.wrap: puts nothing around {call}", id="nothing around"
        ),
        pytest.param(
            f'{_RULE}wrap = "torch.cuda.f({{call}})"\n',
            "3: rule.wrap: `cuda` in it would be converted as well",
            id="converted",
        ),
        pytest.param(
            f'{_RULE}rename = "b"\nvendors = ["ascend", "asend"]\n',
            '4: rule.vendors: unknown vendor "asend"; allowed are ascend, cambricon, portable',
            id="vendor",
        ),
        pytest.param(
            f'{_RULE}kind = "tod"\nmessage = "x"\nrename = "b"\n',
            '3: rule.kind: "tod" is unknown; allowed are change, todo, risk, info',
            id="kind",
        ),
        pytest.param(f'{_RULE}kind = "todo"\n', '3: rule.kind: "todo" needs a message', id="no message"),
        pytest.param(
            f'{_RULE}rename = "b"\nkind = "info"\nmessage = "x"\n',
            '4: rule.kind: "info" only reports its message; remove rename',
            id="both",
        ),
        pytest.param(
            f'{_RULE}rename = "b"\nid = "TF101"\n', '4: rule.id: "TF101" is not USER with a number', id="id"
        ),
        pytest.param(
            f'{_RULE}rename = "b"\nneeds = "torch"\n', '4: rule.needs: "torch" is not an import', id="needs"
        ),
        pytest.param(
            f'{_RULE}signature = "f(a, b"\narguments.add = {{k = "1"}}\n',
            '3: rule.signature: "f(a, b" is not a signature like "f(a, b, c=1)"',
            id="signature",
        ),
        pytest.param(
            f'{_RULE}rename = "b"\nsignature = "f(a)"\n',
            "4: rule.signature: is only useful with",
            id="for nothing",
        ),
        pytest.param(
            '[[rule]]\nimport = {replace = "a.b", by = "c"}\n',
            "2: rule.import.by: unknown; allowed are replace, with",
            id="import",
        ),
        pytest.param(
            f'{_RULE}import = {{replace = "a.b", with = "c"}}\n',
            "3: rule.import: replaces match and rename",
            id="import and match",
        ),
    ],
)
def test_toml(tmp_path: Path, rules: str, line: str) -> None:
    found = mistakes(tmp_path, rules, "rules.toml")[0]
    assert found.startswith(f"rules.toml:{line}")


def test_all_mistakes_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    rules = '# 注释 "[[rule]]"\n[[rule]]\nmatch = "a"\nrenam = "b"\n\n[[rule]]\nmatch = """\n[[rule]]\n"""\nrename = "c"\n'
    assert [line.partition(": ")[0] for line in mistakes(tmp_path, rules, "rules.toml")] == [
        "rules.toml:4",
        "rules.toml:7",
    ]
    entries = [{"old_name": "a"}, {"old_name": "a", "new_name": 1}, {"old_name": "a", "new_name": "b"}, 5]
    text = json.dumps({"rules": {"FuncNameModifyRule": entries}}, indent=1)
    assert [line.partition(": ")[0] for line in mistakes(tmp_path, text, "rules.json")] == [
        "rules.json:4",
        "rules.json:9",
        "rules.json:15",
    ]


def test_a_mistake_made_a_thousand_times(tmp_path: Path) -> None:
    lines = mistakes(tmp_path, '[[rule]]\nmatch = "a"\nto = "b"\n' * 1000, "rules.toml")
    assert len(lines) == 21
    assert lines[-1] == "rules.toml: and 980 more mistakes"


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b'\xef\xbb\xbf[[rule]]\r\nmatch = "a.f"\r\nrename = "a.g"\r\n')
    (tmp_path / "r.json").write_bytes(b'\xef\xbb\xbf{"rules":\r\n{"X": []}}\r\n')
    (rule,) = load_custom_rules(tmp_path / "r.toml").rules
    assert rule.rename == "a.g"
    with pytest.raises(RuleFileError, match=r"r\.json:2: rules\.X: unknown"):
        load_custom_rules(tmp_path / "r.json")


@pytest.mark.parametrize("suffix", [".json", ".toml"])
def test_files_that_cannot_be_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rules{suffix}"
    with pytest.raises(RuleFileError, match="no such rule file"):
        load_custom_rules(path)
    path.write_bytes("# 规则\n".encode("gbk"))
    with pytest.raises(RuleFileError, match="not UTF-8"):
        load_custom_rules(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(RuleFileError, match="is a folder"):
        load_custom_rules(path)


def test_another_suffix(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text('{"rules": {}}')
    with pytest.raises(
        RuleFileError, match=r"rules\.yaml: unknown kind of rule file; it must end in \.json or \.toml"
    ):
        load_custom_rules(tmp_path / "rules.yaml")
    assert not load_custom_rules(tmp_path / "rules.yaml", other=".json").rules


def test_ten_thousand_rules(tmp_path: Path) -> None:
    many = "".join(f'[[rule]]\nmatch = "pkg.m{i}.f{i}"\nrename = "pkg.m{i}.g{i}"\n' for i in range(10_000))
    source = "import pkg\n" + "".join(f"pkg.m{i}.f{i}(x{i})\n" for i in range(0, 10_000, 500))
    result = outcome(tmp_path, loaded(tmp_path, many), source)
    assert result is not None and result.new_data == source.replace(".f", ".g").encode()
