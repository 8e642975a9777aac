"""TF202: names of torch.distributed that exist for NCCL only."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, said_of, vendor

_DIST = "import torch.distributed as dist\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("is_nccl_available()", id="the user's own function"),
        pytest.param("utils.is_nccl_available()", id="a method of something else"),
        pytest.param("print('ProcessGroupNCCL')", id="a message"),
        pytest.param("# dist.is_nccl_available()", id="a comment"),
        pytest.param("ProcessGroupNCCL = 1", id="the user's own name"),
        pytest.param(f"{_DIST}dist.is_gloo_available()", id="gloo"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF202") == []


@pytest.mark.parametrize("name", VENDORS)
def test_asks_for_the_vendors_backend(name: str) -> None:
    backend = vendor(name).dist_backend
    assert (
        expression(f"{_DIST}ok = dist.is_nccl_available()", name)
        == f'{_DIST}ok = dist.is_backend_available("{backend}")'
    )
    assert (
        rewritten("from torch.distributed import is_nccl_available\nis_nccl_available()\n", name)
        == f'from torch.distributed import is_backend_available as is_nccl_available\nis_nccl_available("{backend}")\n'
    )


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (f"{_DIST}o = dist.ProcessGroupNCCL.Options()", "dist.ProcessGroupNCCL"),
        ("from torch.distributed import ProcessGroupNCCL", "ProcessGroupNCCL"),
        ("g = torch._C._distributed_c10d.ProcessGroupNCCL", "torch._C._distributed_c10d.ProcessGroupNCCL"),
    ],
)
def test_classes_are_reported(source: str, place: str) -> None:
    assert expression(source) == source
    ((rule, kind, text),) = said_of(source)
    assert (rule, kind) == ("TF202", "todo")
    assert text.startswith(place)


def test_the_backend_constant_is_never_silent() -> None:
    source = f"{_DIST}if dist.get_backend() == dist.Backend.NCCL: pass"
    assert expression(source) != source or said_of(source)


def test_nccl_of_torch_cuda_is_the_api_tables_business() -> None:
    assert said_of("torch.cuda.nccl.version()") == [("TF102", "unsupported", "torch.cuda.nccl.version")]
