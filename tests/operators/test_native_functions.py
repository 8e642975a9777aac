"""The reader of PyTorch's operator list, held against the dispatcher of the installed PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import _C

from torchferry.building.toolchain import find_torch
from torchferry.errors import BuildError
from torchferry.operators.native_functions import (
    LIST_IN_TORCHGEN,
    DeviceCheck,
    OperatorFacts,
    load_operator_facts,
    read_native_functions,
    write_operator_facts,
)

SMALL = """\
# a comment
- func: plain(Tensor self) -> Tensor
  variants: function, method

- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  device_check: NoCheck   # TensorIterator
  structured_delegate: add.out
  dispatch:
    SparseCPU, SparseCUDA: add_sparse
    # a comment between
    ZeroTensor: add_zerotensor
  tags: [core, pointwise]

- func: add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  ufunc_inner_loop:
    Generic: add (AllAndComplex)
  dispatch:
    MkldnnCPU: add_mkldnn_out

- func: copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)
  device_check: NoCheck
  dispatch: # two of them
    CompositeExplicitAutograd: copy_
    MkldnnCPU: copy_mkldnn_
  autogen: copy.out, copy

- func: prelu(Tensor self, Tensor weight) -> Tensor
  autogen: prelu.out
"""


def test_a_small_list() -> None:
    facts = read_native_functions(SMALL)
    assert facts == {
        "plain": OperatorFacts(
            "plain", False, "", DeviceCheck.SAME, ("CompositeImplicitAutograd",), generated=False
        ),
        "add.Tensor": OperatorFacts(
            "add.Tensor",
            False,
            "add.out",
            DeviceCheck.ITERATOR,
            ("SparseCPU", "SparseCUDA", "ZeroTensor"),
            generated=False,
        ),
        "add.out": OperatorFacts(
            "add.out", True, "", DeviceCheck.SAME, ("CPU", "CUDA", "MkldnnCPU"), generated=False
        ),
        "copy_": OperatorFacts(
            "copy_", False, "", DeviceCheck.NONE, ("CompositeExplicitAutograd", "MkldnnCPU"), generated=False
        ),
        "copy.out": OperatorFacts(
            "copy.out", False, "", DeviceCheck.NONE, ("CompositeExplicitAutograd",), generated=True
        ),
        "copy": OperatorFacts(
            "copy", False, "", DeviceCheck.NONE, ("CompositeExplicitAutograd",), generated=True
        ),
        "prelu": OperatorFacts(
            "prelu", False, "", DeviceCheck.SAME, ("CompositeImplicitAutograd",), generated=False
        ),
    }


def test_the_table_gives_back_what_was_written(tmp_path: Path) -> None:
    facts = read_native_functions(SMALL)
    write_operator_facts(facts, tmp_path / "operators.tsv")
    assert load_operator_facts(tmp_path / "operators.tsv") == facts


def test_an_unknown_kind_of_entry_is_an_error() -> None:
    with pytest.raises(BuildError, match="operator list"):
        read_native_functions("- operator: add\n")


@pytest.fixture(scope="module")
def facts() -> dict[str, OperatorFacts]:
    return read_native_functions((find_torch().torchgen / LIST_IN_TORCHGEN).read_text("utf-8"))


def test_every_operator_of_the_list_exists_and_none_is_forgotten(facts: dict[str, OperatorFacts]) -> None:
    registered = {
        name.removeprefix("aten::")
        for name in _C._dispatch_get_all_op_names()
        if name.startswith("aten::") and _C._dispatch_has_kernel(name)
    }
    assert facts.keys() <= registered
    by_hand = {name for name in registered - facts.keys() if not name.startswith("quantized_")}
    assert not [name for name in by_hand if _has_cpu_kernel(name)]


def test_kernels_are_those_of_the_dispatcher(facts: dict[str, OperatorFacts]) -> None:
    wrong = []
    for name, operator in facts.items():
        delegate = facts.get(operator.structured_delegate)
        kernels = {*operator.kernels, *(delegate.kernels if delegate else ())}
        if ("CPU" in kernels) != _has_cpu_kernel(name):
            wrong.append(name)
        for key in ("CompositeImplicitAutograd", "CompositeExplicitAutograd"):
            if key in operator.kernels and not _C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key):
                wrong.append(name)
    assert not wrong


def _has_cpu_kernel(name: str) -> bool:
    return bool(_C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CPU"))


def test_the_installed_torch_is_the_one_the_list_belongs_to() -> None:
    assert torch.__version__ == find_torch().version
