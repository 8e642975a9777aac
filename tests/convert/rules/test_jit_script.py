"""TF504: torch.jit.script."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import VENDORS, findings, said, said_of, vendor


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
    expected = [("TF504", "risk", place)] if name != "portable" and vendor(name).jit_script else []
    assert said_of(source, name, "TF504") == expected


def test_imported_name() -> None:
    assert [kind for _, kind, _ in said("from torch.jit import script\nm = script(m)\n")][:1] == ["risk"]


def test_message_is_the_vendors() -> None:
    (item,) = findings("import torch\nm = torch.jit.script(m)\n", "cambricon")
    assert item.message.en.startswith("on Cambricon: torch.jit.script returns the object unchanged")
