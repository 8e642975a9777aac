"""What CANN refuses is refused on the emulated device too: at the call, in words that `ferry explain` knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.emulate.running import answer, run_python
from tests.explanation.explaining import explained
from torchferry.emulate.cann.entries import (
    LIMITS,
    SOURCES,
    ArgumentLimit,
    implemented,
    implemented_interfaces,
    read_limits,
)

PROGRAM = Path(__file__).with_name("limits.py")
DOCS = [
    Path(__file__).parents[2] / "docs" / language / "how-it-works/emulated.md" for language in ("en", "zh")
]
# What machines with an Ascend 910B have printed, in public reports: function, argument, its list of dtypes.
PRINTED = {
    # sgl-project/sglang, Ascend/pytorch#83
    (
        "aclnnCat",
        "tensors",
    ): "FLOAT,INT32,INT64,FLOAT16,INT16,INT8,UINT8,DOUBLE,COMPLEX64,BFLOAT16,BOOL",
    # flagos-ai/FlagGems#3267
    (
        "aclnnInplaceNormal",
        "selfRef",
    ): "FLOAT16,FLOAT,DOUBLE,INT16,INT32,INT64,INT8,UINT8,BOOL,BFLOAT16",
    # huggingface/diffusers#10428
    (
        "aclnnRepeatInterleaveIntWithDim",
        "self",
    ): "UINT8,INT8,INT16,INT32,INT64,BOOL,FLOAT16,FLOAT,BFLOAT16",
}
# Cases of limits.py that are refused: function, argument, and what is wrong with it.
REFUSED = {
    "mm float64": ("aclnnMatmul", "self", "DT_DOUBLE"),
    "mm int64": ("aclnnMatmul", "self", "DT_INT64"),
    "layer_norm float64": ("aclnnLayerNorm", "input", "DT_DOUBLE"),
    "conv2d float64": ("aclnnConvolution", "input", "DT_DOUBLE"),
    "cat uint16": ("aclnnCat", "tensors", "DT_UINT16"),
    "add 9 dimensions": ("aclnnAdd", "self", "larger than 8 dimensions"),
    "repeat_interleave float64": ("aclnnRepeatInterleaveInt", "self", "DT_DOUBLE"),
    "roll complex64": ("aclnnRoll", "x", "DT_COMPLEX64"),
}
_MESSAGE = re.compile(
    r"^RuntimeError: .*call (?P<function>\w+) failed, error code is 161002\n.*AclNN_Parameter_Error\(EZ1001\): "
    r"(?:Tensor (?P<argument>\w+) not implemented for (?P<dtype>\w+), should be in dtype support list \[[\w,]+\]"
    r"|The (?P<ranked>\w+) tensor cannot be (?P<rank>.+))\.$",
    re.DOTALL,
)
ONE_REFUSED = """\
import torch
x = torch.ones(2, 2, dtype=torch.float64, device="npu")
y = x @ x  # here
torch.npu.synchronize()
"""


def table() -> dict[str, tuple[ArgumentLimit, ...]]:
    return read_limits(LIMITS.read_text("utf-8"))


def test_limits_are_of_tensors_that_the_functions_have() -> None:
    interfaces = implemented_interfaces()
    for function, limits in table().items():
        tensors = [one.name for one in interfaces[function] if one.kind in ("tensor", "tensors")]
        named = [limit.argument for limit in limits]
        assert named and named == [name for name in tensors if name in named], function


def test_every_limit_can_be_kept_and_means_something() -> None:
    known = set(re.findall(r"^CANN_DTYPE\((\w+),", (SOURCES / "argument_limits.h").read_text("utf-8"), re.M))
    for function, limits in table().items():
        for limit in limits:
            assert set(limit.dtypes) <= known, function
            assert limit.dtypes or limit.dims, function
            assert limit.dims is None or 0 <= limit.dims[0] <= limit.dims[1] <= 8, function


def test_the_table_says_where_it_is_from() -> None:
    sources = re.findall(
        r"^# source: (\S+) \| [0-9a-f]{40} \d{4}-\d\d-\d\d$", LIMITS.read_text("utf-8"), re.M
    )
    assert sources == ["ops-cv", "ops-math", "ops-nn", "ops-transformer"]


@pytest.mark.parametrize(("function", "argument"), PRINTED)
def test_the_table_has_what_machines_have_printed(function: str, argument: str) -> None:
    (limit,) = (one for one in table()[function] if one.argument == argument)
    assert set(limit.dtypes) == set(PRINTED[function, argument].split(","))


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.parent.parent.name)
def test_the_docs_name_how_many_functions_are_limited(page: Path) -> None:
    interfaces, limits = implemented_interfaces(), table()
    tensors = sum(one.kind in ("tensor", "tensors") for function in limits for one in interfaces[function])
    limited = sum(map(len, limits.values()))
    (line,) = (line for line in page.read_text("utf-8").splitlines() if "limits.tsv" in line)
    numbers = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", line)}
    assert {len(limits), len(implemented()), limited, tensors} <= numbers


def _essence(words: str) -> tuple[str, str, str]:
    found = _MESSAGE.match(words)
    assert found, words
    return found["function"], found["argument"] or found["ranked"], found["dtype"] or found["rank"]


@pytest.mark.usefixtures("emulation")
def test_what_cann_takes_computes_and_what_it_refuses_is_refused() -> None:
    raised: dict[str, str] = answer(PROGRAM.read_text("utf-8"))
    assert {name: _essence(words) for name, words in raised.items() if words} == REFUSED
    assert len(raised) > len(REFUSED)


@pytest.mark.usefixtures("emulation")
def test_it_is_refused_at_its_line_and_explained() -> None:
    done = run_python(ONE_REFUSED)
    assert done.returncode != 0
    assert "line 3, in <module>" in done.stderr
    found = explained(done.stderr).cause
    assert found is not None and found.id == "ascend.aclnn-parameter"
    assert "DT_DOUBLE" in found.text
