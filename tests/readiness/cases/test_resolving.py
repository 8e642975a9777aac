"""Which operator, function or module a user means."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from torchferry.errors import InputError
from torchferry.readiness.cases.model import CalleeKind
from torchferry.readiness.cases.notation import described, parse_input
from torchferry.readiness.cases.resolving import arranged, resolve


def _resolved(name: str, *inputs: str) -> tuple[str, str]:
    pairs = [parse_input(text) for text in inputs]
    args = tuple(value for key, value in pairs if not key)
    callee = resolve(name, args, tuple((key, value) for key, value in pairs if key))
    return callee.name, callee.expression


@pytest.mark.parametrize(
    ("name", "inputs", "found"),
    [
        ("aten::max.dim", ("3x4", "1"), "aten::max.dim"),
        ("aten.max.dim", ("3x4", "1"), "aten::max.dim"),
        ("max.dim", ("3x4", "1"), "aten::max.dim"),
        ("torch.ops.aten.max.dim", ("3x4", "1"), "aten::max.dim"),
        ("max", ("3x4",), "aten::max"),
        ("max", ("3x4", "1"), "aten::max.dim"),
        ("max", ("3x4", "3x4"), "aten::max.other"),
        ("aten::max", ("3x4", "dim=1", "keepdim=True"), "aten::max.dim"),
        ("aten::add", ("3x4", "2.0"), "aten::add.Scalar"),
        ("aten::add", ("3x4", "3x4", "alpha=2"), "aten::add.Tensor"),
        ("aten::pow", ("2", "3x4"), "aten::pow.Scalar"),
        ("aten::sum", ("3x4",), "aten::sum"),
        ("aten::sum", ("3x4", "[0]"), "aten::sum.dim_IntList"),
        ("aten::sum", ("3x4", "dtype=float64"), "aten::sum"),
        ("aten::any", ("3x4:bool",), "aten::any"),
        ("aten::index_put", ("3x4", "list(2:int64)", "2x4"), "aten::index_put"),
        ("aten::_foreach_add", ("list(3x4)", "2.0"), "aten::_foreach_add.Scalar"),
    ],
)
def test_overload(name: str, inputs: tuple[str, ...], found: str) -> None:
    shown, expression = _resolved(name, *inputs)
    assert shown == found
    assert expression == "torch.ops." + found.replace("::", ".") + ("" if "." in found else ".default")


@pytest.mark.parametrize(
    ("name", "expression", "kind"),
    [
        ("torch.max", "torch.max", CalleeKind.FUNCTION),
        ("F.gelu", "torch.nn.functional.gelu", CalleeKind.FUNCTION),
        ("Tensor.scatter_", "torch.Tensor.scatter_", CalleeKind.FUNCTION),
        ("nn.Conv2d", "torch.nn.Conv2d", CalleeKind.MODULE),
        ("torch.nn.Conv2d", "torch.nn.Conv2d", CalleeKind.MODULE),
    ],
)
def test_python(name: str, expression: str, kind: CalleeKind) -> None:
    callee = resolve(name, (), ())
    assert (callee.expression, callee.kind) == (expression, kind)


def test_in_place() -> None:
    assert resolve("Tensor.scatter_", (), ()).in_place
    assert resolve("aten::add_.Tensor", (), ()).in_place
    assert not resolve("aten::add.Tensor", (), ()).in_place


@pytest.mark.parametrize(
    ("name", "inputs", "said"),
    [
        ("aten::mx.dim", (), "aten::max"),
        ("aten::soft_max", (), "aten::softmax"),
        ("torch.maxx", (), "torch.max"),
        ("torch.nn.Conv2D", (), "torch.nn.Conv2d"),
        ("Tensor.scater_", (), "Tensor.scatter_"),
        ("aten::max.dims", ("3x4",), "has no overload `dims`; choose one of"),
        ("aten::max", ("3x4", "1", "True", "7"), "no overload accepts these arguments"),
        ("torch.Tensor", (), "no such operator"),
        ("no such thing", (), "no such operator"),
        ("no_module_of_this_name:Model", (), "can't be imported"),
        ("json:dump_it", (), "has no class or function `dump_it`"),
        ("pathlib:Path", (), "not a torch.nn.Module"),
    ],
)
def test_mistakes(name: str, inputs: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as error:
        _resolved(name, *inputs)
    assert said in str(error.value)


def test_ambiguous() -> None:
    with pytest.raises(InputError, match=r"match several overloads; name one of aten::std\.dim or "):
        _resolved("aten::std", "3x4", "1")


def test_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("")
    (tmp_path / "own" / "net.py").write_text("import torch\n\nclass Net(torch.nn.Module):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    callee = resolve("own.net:Net", (), ())
    assert callee.kind is CalleeKind.MODULE
    assert callee.imports == ("from own.net import Net",)
    assert callee.path == str(tmp_path)


def test_an_overload_that_is_a_word_of_python() -> None:
    assert _resolved("aten::random_.from", "4x", "0", "9") == (
        "aten::random_.from",
        'getattr(torch.ops.aten.random_, "from")',
    )


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "of_a_file_alone.py").write_text("def f(x): return x")
    callee = resolve(f"{tmp_path}/of_a_file_alone.py:f", (), ())
    assert (callee.imports, callee.path) == (("from of_a_file_alone import f",), str(tmp_path))
    with pytest.raises(InputError, match=r"no such file: absent\.py"):
        resolve("absent.py:f", (), ())
    (tmp_path / "not-a-name.py").write_text("")
    with pytest.raises(InputError, match="`not-a-name` is not a valid module name"):
        resolve(f"{tmp_path}/not-a-name.py:f", (), ())


def test_what_exists_is_not_what_was_meant() -> None:
    with pytest.raises(InputError) as error:
        resolve("torch.nn", (), ())
    assert "mean torch.nn " not in str(error.value)


def test_a_number_in_a_tensor_s_place() -> None:
    schema = torch.ops.aten.remainder.Tensor._schema
    args, _ = arranged(schema, {"self": parse_input("4x")[1], "other": 3})
    assert described(args[1]) == "scalar:int64:full(3)"
