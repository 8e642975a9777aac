"""TF107: torch.backends.cuda and torch.backends.cudnn."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_of, vendor
from torchferry.vendors.model import Support


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("cudnn = True", id="a flag"),
        pytest.param("print('torch.backends.cudnn.benchmark')", id="a message"),
        pytest.param("# torch.backends.cudnn.benchmark", id="a comment"),
        pytest.param("torch.backends.mkldnn.enabled", id="another backend"),
        pytest.param("mylib.backends.cudnn.benchmark = True", id="another library"),
        pytest.param("import torch.backends.cudnn as cudnn", id="the import alone"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF107") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark"),
        ("import torch.backends.cudnn as cudnn\ncudnn.deterministic = True", "cudnn.deterministic"),
        ("from torch.backends import cudnn\ncudnn.benchmark = a", "cudnn.benchmark"),
    ],
)
def test_flags_stay(name: str, source: str, place: str) -> None:
    assert expression(source, name) == source
    assert said_of(source, name) == [("TF107", "info", place)]


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(
    "function", ["sdp_kernel", "enable_flash_sdp", "enable_math_sdp", "preferred_linalg_library"]
)
def test_choices_among_kernels_of_cuda_run_everywhere(name: str, function: str) -> None:
    source = f"torch.backends.cuda.{function}(True)"
    assert {kind for _, kind, _ in said_of(source, name)} <= {"info"}


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("function", ["is_built", "cufft_plan_cache"])
def test_functions_by_the_vendors_table(name: str, function: str) -> None:
    old = f"torch.backends.cuda.{function}"
    api = vendor(name).api(old)
    kinds = {Support.SAME: "info", Support.UNSUPPORTED: "unsupported", Support.UNKNOWN: "unknown"}
    if api.support is Support.RENAMED:
        assert expression(f"{old}()", name) == f"{api.name}()"
    else:
        assert expression(f"{old}()", name) == f"{old}()"
        assert said_of(f"{old}()", name) == [("TF107", kinds[api.support], old)]
