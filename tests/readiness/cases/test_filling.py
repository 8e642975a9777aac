"""Contents that nobody has named, and sizes that no machine has."""

from __future__ import annotations

import pytest

from torchferry.errors import InputError
from torchferry.readiness.cases.building import CaseRequest, build
from torchferry.readiness.cases.contents import check_fits
from torchferry.readiness.cases.notation import described


@pytest.mark.parametrize(
    ("operator", "inputs", "contents"),
    [
        ("torch.index_select", ("5x6", "1", "4:int64"), "4:int64:ints(0,5)"),
        ("torch.index_select", ("scalar", "0", "1:int64"), "1:int64:ints(0,1)"),  # as a row of one
        ("aten::linalg_lu_solve", ("3x3", "3:int32", "3x2"), "3:int32:ints(1,3)"),
        ("aten::bitwise_not", ("3:int32",), "3:int32:ints(-10,10)"),
        ("aten::bitwise_not", ("3:uint8",), "3:uint8:ints(0,20)"),
        ("aten::bitwise_not", ("3:bool",), "3:bool:ints(0,2)"),
    ],
)
def test_whole_numbers(operator: str, inputs: tuple[str, ...], contents: str) -> None:
    case = build(CaseRequest(operator, inputs))
    assert contents in [described(tensor) for tensor in case.tensors]


@pytest.mark.parametrize(
    "text",
    [
        "100000x100000x100",
        "3x3:offset(999999999999999)",
        "2x2:strides(1,99999999999999)",
        "99999999999999999999x2",
    ],
)
def test_more_than_a_machine_has(text: str) -> None:
    with pytest.raises(InputError, match="iB; give smaller sizes"):
        build(CaseRequest("torch.abs", (text,)))


def test_the_copies_that_are_compared_count() -> None:
    case = build(CaseRequest("torch.add", ("256x4:float16", "256x4:float16")))  # 2 KiB each
    check_fits(case.tensors, 16384)
    with pytest.raises(InputError, match=r"has 16\.0 KiB"):
        check_fits(case.tensors, 16383)
