"""The tables of the emulated toolkit: what is written in them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from torchferry.emulate.cann import entries
from torchferry.errors import BuildError

_ATEN = re.compile(r'const Aten \w+\("aten::(\w+)", "(\w*)"\)')


def test_every_operator_of_the_tables_exists(tmp_path: Path) -> None:
    known = {
        (schema.name.removeprefix("aten::"), schema.overload_name)
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::")
    }
    called = {
        (source.name, *found)
        for source in entries.write_entries(tmp_path)
        for found in _ATEN.findall(source.read_text("utf-8"))
    }
    assert len(called) > 300
    assert sorted(one for one in called if one[1:] not in known) == []


def test_a_function_is_written_once() -> None:
    names = [
        name
        for table in entries.TABLES.glob("*.ops")
        for name in re.findall(r"^def (aclnn\w+)\(", table.read_text("utf-8"), re.MULTILINE)
    ]
    in_cpp = [
        name
        for source in entries.SOURCES.glob("*.cpp")
        for name in re.findall(r"^OPERATOR\((aclnn\w+)\)", source.read_text("utf-8"), re.MULTILINE)
    ]
    everything = [*names, *in_cpp]
    assert sorted({name for name in everything if everything.count(name) > 1}) == []
    assert entries.implemented() == frozenset(everything)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("def aclnnAbs(self):\n    abs(self)\n", "one.ops:1: aclnnAbs has 2 arguments: self, out"),
        ("def aclnnNoSuch(self, out):\n    abs(self)\n", "one.ops:1: interfaces.tsv lacks aclnnNoSuch; annotate"),
        ("def aclnnNoSuch(self: tensors, out: stream):\n    pass\n", "an argument is of no kind"),
        ("def aclnnAbs(self, out):\n    out = abs(self)\n", r"one.ops:2: write out\[:\] = ..."),
        ("def aclnnAbs(self, out):\n    out[:] = abs(other)\n", "one.ops:2: nothing is called other"),
        ("def aclnnAbs(self, out):\n    while self:\n        pass\n", "one.ops:2: no While in a table"),
        ("def aclnnAbs(self, out:\n", "one.ops:1: "),
        ("x = 1\n", "one.ops:1: only functions stand in a table"),
    ],
)
def test_a_mistake_in_a_table_has_its_line(
    table: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.ops").write_text(table)
    monkeypatch.setattr(entries, "TABLES", tmp_path)
    with pytest.raises(BuildError, match=complaint):
        entries.write_entries(tmp_path)


def test_the_interfaces_are_those_of_the_facts() -> None:
    interfaces = entries.read_interfaces(entries.INTERFACES.read_text("utf-8"))
    assert len(interfaces) > 800
    assert interfaces["aclnnAdds"] == (
        entries.Argument("self", "tensor"),
        entries.Argument("other", "scalar"),
        entries.Argument("alpha", "scalar"),
        entries.Argument("out", "tensor"),
    )
