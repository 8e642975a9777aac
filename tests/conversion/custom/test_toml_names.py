"""[[rule]] tables that rename, replace imports, or only say something; for all vendors or some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.custom.rule_files import converted, findings_of, loaded, outcome, said


def rename(match: str, new: str, more: str = "") -> str:
    return f'[[rule]]\nmatch = "{match}"\nrename = "{new}"\n{more}'


ADAM = rename("fast.optimizers.FusedAdam", "torch.optim.AdamW")
HALF = rename("*.half", "bfloat16")
IMPORT = '[[rule]]\nimport = {replace = "a.b", with = "c.d"}\n'


@pytest.mark.parametrize(
    ("rules", "source"),
    [
        pytest.param(ADAM, "import fast\nx = fast.optimizers.FusedSGD()\n", id="another name"),
        pytest.param(ADAM, "FusedAdam()\n", id="a name that is not imported"),
        pytest.param(ADAM, "from fast.optimizers import *\n", id="a star import"),
        pytest.param(HALF, "x.half\nhalf(x)\ndef half(x): ...\n", id="not called as a method"),
        pytest.param(HALF, "x.half()  # ferry: ignore\n", id="told to leave it"),
        pytest.param(IMPORT, "import a.bc\nfrom a import bc\nfrom .a import b\n", id="another module"),
        pytest.param(
            rename("accuracy", "m.accuracy"), "def accuracy(): ...\naccuracy()\n", id="the file's own"
        ),
        pytest.param(
            rename("a.f", "g.f", 'vendors = ["cambricon"]'), "import a\na.f()\n", id="another vendor"
        ),
    ],
)
def test_noop(tmp_path: Path, rules: str, source: str) -> None:
    assert converted(tmp_path, rules, source) == source


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [
        (
            ADAM,
            "import torch, fast\nx = fast.optimizers.FusedAdam(p)\n",
            "import torch, fast\nx = torch.optim.AdamW(p)\n",
        ),
        (
            ADAM,
            "import torch.optim as o, fast\nx = fast.optimizers.FusedAdam(p)\n",
            "import torch.optim as o, fast\nimport torch.optim\nx = torch.optim.AdamW(p)\n",
        ),
        (
            ADAM,
            "from fast import optimizers\nx = [optimizers.FusedAdam]\n",
            "from fast import optimizers\nimport torch.optim\nx = [torch.optim.AdamW]\n",
        ),
        (
            ADAM,
            "from fast.optimizers import FusedAdam\nFusedAdam(p)\n",
            "from torch.optim import AdamW as FusedAdam\nFusedAdam(p)\n",
        ),
        (
            ADAM,
            "def f():\r\n    from fast.optimizers import FusedAdam as A, FusedSGD\r\n    return A\r\n",
            "def f():\r\n    from torch.optim import AdamW as A\r\n    from fast.optimizers import FusedSGD\r\n    return A\r\n",
        ),
        (HALF, "y = model.half().eval()\n", "y = model.bfloat16().eval()\n"),
        (HALF, "y = f(x)[0].half().half()\n", "y = f(x)[0].bfloat16().bfloat16()\n"),
        (HALF, "import lib\nlib.half(x)\n", "import lib\nlib.bfloat16(x)\n"),
        (rename("accuracy", "metrics.top1"), "accuracy(x)\n", "import metrics\nmetrics.top1(x)\n"),
        (rename("load", "my_load"), "x = load(1)\n", "x = my_load(1)\n"),
        (rename("mylib", "yourlib"), "import mylib\nmylib.f()\n", "import yourlib\nyourlib.f()\n"),
        (rename("a.K.m", "b.K.m"), "import a\na.K.m()\n", "import a\nimport b\nb.K.m()\n"),
        (IMPORT, "import a.b\na.b.f()\n", "import c.d\nc.d.f()\n"),
        (IMPORT, "import a.b as x\nx.f()\n", "import c.d as x\nx.f()\n"),
        (IMPORT, "from a import b\nb.f()\n", "from c import d as b\nb.f()\n"),
        (IMPORT, "from a.b import f\nf()\n", "from c.d import f\nf()\n"),
        (IMPORT, "from a.b.e import f\nf()\n", "from c.d.e import f\nf()\n"),
        (IMPORT, "import a\na.b.f()\n", "import a\nimport c.d\nc.d.f()\n"),
        (IMPORT, "import a.b\na.b.f()\na.g()\n", "import a, c.d\nc.d.f()\na.g()\n"),
        (IMPORT, "import a.b\nimport a.x\na.b.f()\na.x.g()\n", "import c.d\nimport a.x\nc.d.f()\na.x.g()\n"),
        (
            rename("a.f", "ops.g", 'needs = "from pkg import ops"\n'),
            "import a\na.f()\n",
            "import a\nfrom pkg import ops\nops.g()\n",
        ),
    ],
)
def test_rename(tmp_path: Path, rules: str, before: str, after: str) -> None:
    assert converted(tmp_path, rules, before) == after


def test_a_vendor_of_its_own(tmp_path: Path) -> None:
    rules = rename("a.f", "a.npu_f", 'vendors = ["ascend"]\n') + rename("a.f", "a.other_f")
    assert converted(tmp_path, rules, "import a\na.f()\n") == "import a\na.npu_f()\n"
    assert converted(tmp_path, rules, "import a\na.f()\n", to="cambricon") == "import a\na.other_f()\n"
    assert converted(tmp_path, rules, "import a\na.f()\n", to="portable") == "import a\na.other_f()\n"


def test_user_rules_come_before_ours(tmp_path: Path) -> None:
    rules = rename("torch.cuda.synchronize", "mysync.wait")
    source = "import torch\ntorch.cuda.synchronize()\ntorch.cuda.empty_cache()\n"
    after = "import torch\nimport torch_npu\nimport mysync\nmysync.wait()\ntorch.npu.empty_cache()\n"
    assert converted(tmp_path, rules, source) == after


TODO = '[[rule]]\nmatch = "lib.old"\nkind = "todo"\nmessage = "write it anew"\nmessage_zh = "请重写"\n'
RISK = '[[rule]]\nid = "USER9"\nmatch = "*.sort"\nkind = "risk"\nmessage = "not stable"\n'


@pytest.mark.parametrize(
    ("rules", "source", "expected"),
    [
        (TODO, "import lib\nlib.old(1)\nlib.old.x\n", [("USER3", "todo", 2), ("USER3", "todo", 3)]),
        (TODO, "from lib import old\nold()\n", [("USER3", "todo", 1), ("USER3", "todo", 2)]),
        (TODO, "import lib\nlib.new()\n", []),
        (RISK, "x.sort()\nx.sort\n", [("USER9", "risk", 1)]),
        (RISK, "x.sort()  # ferry: ignore[USER9]\nx.sort()\n", [("USER9", "risk", 2)]),
        (RISK, "x.sort()  # ferry: ignore[USER3]\n", [("USER9", "risk", 1)]),
    ],
)
def test_rules_that_only_say_something(
    tmp_path: Path, rules: str, source: str, expected: list[tuple[str, str, int]]
) -> None:
    assert converted(tmp_path, rules, source) == source
    assert [item[:3] for item in said(tmp_path, rules, source)] == expected


def test_messages(tmp_path: Path) -> None:
    found = findings_of(outcome(tmp_path, loaded(tmp_path, TODO), "import lib\nlib.old()\n"))
    assert [tuple(item.message) for item in found] == [("write it anew", "请重写")]
    rules = (
        rename("a.f", "a.g", 'message = "g is faster"\n')
        + '[[rule]]\nmatch = "*.h"\narguments.add = {k = "1"}\n'
    )
    assert said(tmp_path, rules, "import a\na.f()\nx.h()\n") == [
        ("USER3", "change", 2, "g is faster"),
        ("USER3", "change", 3, "Your rule for `h` (rules.toml:5)"),
    ]


def test_several_files_in_their_order(tmp_path: Path) -> None:
    from torchferry.conversion.custom.json_format import load_custom_rules

    (tmp_path / "one.toml").write_text(rename("a.f", "a.g"))
    (tmp_path / "two.json").write_text(
        '{"rules": {"ArgsModifyRule": [{"func_name": "g", "arg_idx": 0, "arg_new": "1"}]}}'
    )
    (tmp_path / "three.toml").write_text(rename("a.f", "a.h"))
    rules = load_custom_rules(*(tmp_path / name for name in ("one.toml", "two.json", "three.toml")))
    result = outcome(tmp_path, rules, "import a\na.f(0)\n")
    assert result is not None and result.new_data == b"import a\na.g(1)\n"
