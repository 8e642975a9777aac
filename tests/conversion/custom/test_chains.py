"""Rules that build on each other: they are applied until nothing changes; what would never end is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conversion.custom.rule_files import converted, loaded, outcome, said
from torchferry.errors import RuleFileError


def names(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"FuncNameModifyRule": [{"old_name": old, "new_name": new} for old, new in pairs]}


def arguments(*rules: tuple[str, int, str]) -> dict[str, Any]:
    keys = ("func_name", "arg_idx", "arg_new")
    return {"ArgsModifyRule": [dict(zip(keys, rule, strict=True)) for rule in rules]}


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [
        pytest.param(
            names(("x", "y"), ("y", "z")), "import a\na.x()\na.y()\n", "import a\na.z()\na.z()\n", id="names"
        ),
        pytest.param(
            names(("y", "z"), ("x", "y")), "x()\n", "z()\n", id="names, in whichever order they stand"
        ),
        pytest.param(
            {**names(("f", "g")), **arguments(("f", 0, "new"))},
            "import a\na.f(1)\n",
            "import a\na.g(new)\n",
            id="the argument of a function that is renamed",
        ),
        pytest.param(
            {**names(("f", "g")), **arguments(("g", 0, "new"))},
            "import a\na.f(1)\n",
            "import a\na.g(new)\n",
            id="the argument of what a function is renamed to",
        ),
        pytest.param(
            arguments(("f", 0, "g(1)"), ("g", 0, "2")),
            "f(0)\n",
            "f(g(2))\n",
            id="a new argument that another matches",
        ),
        pytest.param(
            arguments(("device", 0, "'cuda:1'")),
            "import torch\ntorch.device(x)\n",
            "import torch\nimport torch_npu\ntorch.device('npu:1')\n",
            id="a new argument that a built-in rule changes",
        ),
        pytest.param(
            names(("func", "lib.func")),
            "import a\na.func()\n",
            "import a\na.lib.func()\n",
            id="the new name ends with the old one",
        ),
        pytest.param(
            names(("a.f", "a.f.g")),
            "import a\na.f()\n",
            "import a\na.f.g()\n",
            id="the new name begins with the old one",
        ),
        pytest.param(names(("f", "f")), "import a\na.f()\n", "import a\na.f()\n", id="is the current name"),
        pytest.param(
            arguments(("f", 0, "1"), ("f", 0, "2")),
            "f(0)\n",
            "f(1)\n",
            id="of two for one argument the first",
        ),
        pytest.param(
            arguments(("a.f", 0, "1"), ("f", 0, "2")),
            "import a\na.f(0)\nb.f(0)\n",
            "import a\na.f(1)\nb.f(2)\n",
            id="of two for one argument the first that matches",
        ),
        pytest.param(arguments(("f", 0, "1"), ("f", 0, "1")), "f(0)\n", "f(1)\n", id="the same twice"),
    ],
)
def test_rules_are_applied_until_nothing_changes(tmp_path: Path, rules: Any, before: str, after: str) -> None:
    assert converted(tmp_path, rules, before) == after


def test_the_built_in_rules_go_on_with_what_a_rule_writes(tmp_path: Path) -> None:
    rules = {**names(("mylib.sync", "torch.cuda.synchronize")), **arguments(("torch.device", 0, "'cuda:1'"))}
    source = "import torch, mylib\nmylib.sync()\nd = torch.device('cpu')\n"
    after = "import torch, mylib\nimport torch_npu\ntorch.npu.synchronize()\nd = torch.device('npu:1')\n"
    assert converted(tmp_path, rules, source) == after


def test_a_rule_may_match_what_the_built_in_rules_write(tmp_path: Path) -> None:
    rules = names(("torch.npu.synchronize", "my.sync"))
    source = "import torch, my\ntorch.cuda.synchronize()\n"
    assert converted(tmp_path, rules, source).endswith("\nmy.sync()\n")


def test_each_step_is_reported_at_its_line(tmp_path: Path) -> None:
    rules = names(("x", "y"), ("y", "z"))
    assert said(tmp_path, rules, "import a\n\na.x()\n") == [
        ("USER2", "change", 3, "Your rule: `a.x` changed to `a.y`"),
        ("USER2", "change", 3, "Your rule: `a.y` changed to `a.z`"),
    ]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        pytest.param(
            names(("a.x", "a.y"), ("a.y", "a.x")),
            ["a.x → a.y", "a.y → a.x", "form a loop"],
            id="there and back",
        ),
        pytest.param(names(("x", "b.y"), ("y", "c.x")), ["form a loop"], id="a name that grows"),
        pytest.param(
            names(*((f"f{i}", f"f{i + 1}") for i in range(30))), ["form a loop"], id="more than anyone needs"
        ),
        pytest.param(
            arguments(("f", 0, "f(1)")), ["calls f again", "f(1)"], id="an argument that calls the function"
        ),
        pytest.param(
            '[[rule]]\nmatch = "a.f"\nwrap = "a.f({call})"\n',
            ["calls a.f again", "rules.toml:1"],
            id="wrapped in itself",
        ),
        pytest.param(
            '[[rule]]\nmatch = "a"\nrename = "b"\n[[rule]]\nmatch = "b"\nrename = "a"\nvendors = ["ascend"]\n',
            ["rules.toml:1", "rules.toml:4", "form a loop"],
            id="for one vendor alone",
        ),
    ],
)
def test_what_would_never_end_is_refused(tmp_path: Path, rules: Any, words: list[str]) -> None:
    with pytest.raises(RuleFileError) as caught:
        loaded(tmp_path, rules)
    for word in words:
        assert word in str(caught.value)


def test_different_vendors_may_go_different_ways(tmp_path: Path) -> None:
    rules = (
        '[[rule]]\nmatch = "a.x"\nrename = "a.y"\nvendors = ["ascend"]\n'
        '[[rule]]\nmatch = "a.y"\nrename = "a.x"\nvendors = ["cambricon"]\n'
    )
    source = "import a\na.x()\na.y()\n"
    assert converted(tmp_path, rules, source) == "import a\na.y()\na.y()\n"
    assert converted(tmp_path, rules, source, to="cambricon") == "import a\na.x()\na.x()\n"
    assert converted(tmp_path, rules, source, to="portable") == source


def test_what_is_found_out_too_late_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    rules = '[[rule]]\nmatch = "a.f"\nwrap = "a.g({call})"\n[[rule]]\nmatch = "a.g"\nwrap = "a.f({call})"\n'
    with pytest.raises(AssertionError, match=r"again and again: .*a\.f` \(rules\.toml:1\).*a\.g` \(rules"):
        outcome(tmp_path, loaded(tmp_path, rules), "import a\na.f()\n")
