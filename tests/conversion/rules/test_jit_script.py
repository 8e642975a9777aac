"""TF504: torch.jit.script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.rewriting import VENDORS, findings, said, said_of, target, vendor
from torchferry.conversion.project import Plan, examine_project


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("m = torch.jit.trace(m, x)", id="tracing"),
        pytest.param("m = torch.jit.load(p)", id="loading"),
        pytest.param("jit.script(m)", id="the user's own"),
        pytest.param("from numba import jit\n@jit\ndef f(): pass", id="another jit"),
        pytest.param("# torch.jit.script(m)", id="a comment"),
        pytest.param("print('torch.jit.script')", id="a message"),
    ],
)
def test_noop(source: str) -> None:
    assert said_of(source, rule="TF504") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("m = torch.jit.script(m)", "torch.jit.script"),
        ("@torch.jit.script\ndef f(x): return x", "torch.jit.script"),
        ("import torch.jit as jit\nm = jit.script(m)", "jit.script"),
        ("class M(torch.jit.ScriptModule): pass", "torch.jit.ScriptModule"),
    ],
)
def test_risk_where_the_adapter_turns_it_off(name: str, source: str, place: str) -> None:
    holds = name != "portable" and vendor(name).jit_script and not vendor(name).jit_script_by_migration
    assert said_of(source, name, "TF504") == ([("TF504", "risk", place)] if holds else [])


@pytest.mark.parametrize("name", [name for name in VENDORS if vendor(name).jit_script_by_migration])
def test_risk_where_the_program_imports_the_vendors_migration(name: str) -> None:
    source = f"import {vendor(name).migrations[0]}\nm = torch.jit.script(m)"
    assert said_of(source, name, "TF504") == [("TF504", "risk", "torch.jit.script")]


def test_imported_name() -> None:
    source = "from torch.jit import script\nm = script(m)\n"
    assert [kind for _, kind, _ in said(source, "tecorigin")][:1] == ["risk"]


def test_message_is_the_vendors() -> None:
    source = "import torch\nimport torch_mlu.utils.gpu_migration\nm = torch.jit.script(m)\n"
    (item,) = findings(source, "cambricon", rule="TF504")
    assert item.why.en.startswith("torch.jit.script returns the object unchanged")


def test_once_per_project(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(
            "import torch\nf = torch.jit.script(f)\ng = torch.jit.script(g)\n"
        )
    report = examine_project(tmp_path, Plan(target("tecorigin"))).report("scan")
    (item,) = [item for item in report.findings if item.rule == "TF504"]
    assert (item.path, item.line) == ("a.py", 2)
    assert item.why.en.endswith("This project has 4 such places.")
