"""How a vendor's table is read, and PyTorch's list with and without PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchferry.operators import native_functions
from torchferry.operators.names import CALLED_BEFORE, CALLED_ELSEWHERE, EQUIVALENTS, PROVEN_BY
from torchferry.operators.native_functions import load_operator_facts, read_native_functions
from torchferry.operators.support import (
    OperatorStanding,
    SupportBasis,
    VendorTable,
    reported_as,
    served_by,
    standing,
)
from torchferry.vendors.ops import Ops


def table(*names: str, complete: bool = True) -> VendorTable:
    kernels = dict.fromkeys(names, ("2.1",))
    return VendorTable(Ops(complete, ("2.1",), kernels, {}, {}, ()), "2.1")


@pytest.mark.parametrize(
    ("name", "listed", "expected"),
    [
        ("lgamma.out", ("lgamma.out",), OperatorStanding(SupportBasis.LISTED, "lgamma.out")),
        ("lgamma", ("lgamma.out",), OperatorStanding(SupportBasis.SAME_KERNEL, "lgamma.out")),
        ("lgamma.out", ("lgamma_",), OperatorStanding(SupportBasis.SAME_KERNEL, "lgamma_")),
        (
            "gelu_backward.grad_input",
            ("gelu_backward",),
            OperatorStanding(SupportBasis.SAME_KERNEL, "gelu_backward"),
        ),
        ("vdot", ("dot",), OperatorStanding(SupportBasis.EQUIVALENT, "dot")),
        ("empty.memory_format", (), OperatorStanding(SupportBasis.ALWAYS_THERE)),
        ("embedding", (), OperatorStanding(SupportBasis.COMPOSITE)),
        ("lgamma", ("digamma.out",), OperatorStanding(SupportBasis.ABSENT)),
    ],
)
def test_a_complete_table(name: str, listed: tuple[str, ...], expected: OperatorStanding) -> None:
    facts = native_functions.operator_facts()
    assert standing(facts[name], served_by(facts).get(name, ()), table(*listed)) == expected


def test_a_table_of_reports_calls_nothing_missing() -> None:
    fact = native_functions.operator_facts()["lgamma"]
    assert standing(fact, (), table(complete=False)) == OperatorStanding(SupportBasis.UNKNOWN)
    assert standing(fact, (), table("lgamma", complete=False)) == OperatorStanding(
        SupportBasis.LISTED, "lgamma"
    )


def test_a_missing_operator_is_reported_under_the_overload_that_does_the_work() -> None:
    facts = native_functions.operator_facts()
    assert reported_as(facts["lgamma"]) == "aten::lgamma.out"
    assert reported_as(facts["huber_loss"]) == "aten::huber_loss"


@pytest.mark.parametrize(
    "names", [EQUIVALENTS, CALLED_ELSEWHERE, PROVEN_BY], ids=["device", "elsewhere", "reports"]
)
def test_names_of_operators_are_those_of_pytorch(names: dict[str, object]) -> None:
    bases = {name.partition(".")[0] for name in native_functions.operator_facts()}
    assert {name.partition(".")[0] for name in names} <= bases
    assert set(CALLED_ELSEWHERE.values()) <= set(native_functions.operator_facts())


def test_old_names_are_gone_and_lead_to_present_ones() -> None:
    present = {name.partition(".")[0] for name in native_functions.operator_facts()}
    assert not present & set(CALLED_BEFORE)
    assert set(CALLED_BEFORE.values()) <= present


def test_the_shipped_table_is_that_of_its_release() -> None:
    assert native_functions.installed_release() == native_functions.SHIPPED_RELEASE, (
        "make docs with the new torch, and name its release"
    )
    source = native_functions.installed_list_file()
    assert source is not None
    assert load_operator_facts(native_functions.SHIPPED_TABLE) == read_native_functions(
        source.read_text("utf-8")
    )


def test_the_list_is_the_same_without_torch() -> None:
    program = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'torchgen'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from torchferry.operators.native_functions import installed_release, operator_facts\n"
        "print(repr(installed_release()), len(operator_facts()), operator_facts()['lgamma'].structured_delegate)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["''", str(len(native_functions.operator_facts())), "lgamma.out"]


@pytest.mark.parametrize(
    ("installed", "wanted", "shipped"),
    [
        ("2.13", "", False),
        ("2.13", "2.13.0+cpu", False),
        ("2.4", "2.13.0", True),
        ("2.4", "2.1.0", False),
        ("", "2.1", True),
    ],
)
def test_which_list_answers(
    installed: str, wanted: str, shipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_functions, "installed_release", lambda: installed)
    monkeypatch.setattr(native_functions, "_installed_list", lambda: {"installed": None})
    monkeypatch.setattr(native_functions, "_shipped_list", lambda: {"shipped": None})
    assert list(native_functions.operator_facts(wanted)) == ["shipped" if shipped else "installed"]


def test_nothing_here_imports_torch() -> None:
    program = (
        "import sys, pathlib, importlib\n"
        "for name in ('names', 'native_functions', 'support', 'compositions'):\n"
        "    importlib.import_module(f'torchferry.operators.{name}')\n"
        "import torchferry.readiness.judge\n"
        "torchferry.operators.native_functions.operator_facts()\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_shipped_table_lies_in_the_package() -> None:
    assert native_functions.SHIPPED_TABLE.parent == Path(native_functions.__file__).parent
