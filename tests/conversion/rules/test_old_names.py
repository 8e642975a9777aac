"""TF123: old names of the vendor's own plugin."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, said_of, target
from torchferry.vendors.calls import load_old_names

WITH_TABLE = [name for name in VENDORS if load_old_names(target(name).vendor.folder)]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("y = torch_npu.npu_format_cast(x, 0)", id="today's form"),
        pytest.param("with torch.autograd.profiler.profile(use_device='npu'): pass", id="today's profiler"),
        pytest.param("profile(use_npu=True)", id="another profile"),
        pytest.param("import dumper\ndumper.dump(x)", id="another dumper"),
        pytest.param("# x.npu_format_cast(0)", id="a comment"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize("name", [name for name in VENDORS if name not in WITH_TABLE] + ["portable"])
def test_other_vendors_know_nothing_of_them(name: str) -> None:
    assert expression("y = x.npu_format_cast(0)", name) == "y = x.npu_format_cast(0)"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("y = x.npu_format_cast(0)", "y = torch_npu.npu_format_cast(x, 0)"),
        ("y = (a + b).npu_format_cast(2).half()", "y = torch_npu.npu_format_cast((a + b), 2).half()"),
        (
            "with torch.autograd.profiler.profile(use_npu=True) as p: pass",
            'with torch.autograd.profiler.profile(use_device="npu") as p: pass',
        ),
        (
            "with torch.autograd.profiler.profile(use_npu=on) as p: pass",
            'with torch.autograd.profiler.profile(use_device="npu" if on else None) as p: pass',
        ),
        (
            "from apex.optimizers import NpuFusedSGD\no = NpuFusedSGD(p)",
            "from torch_npu.optim import NpuFusedSGD\no = NpuFusedSGD(p)",
        ),
        (
            "from torch.contrib.npu.optimized_lib import PreLoader",
            "from torchferry.perf.affinity import PreLoader",
        ),
    ],
)
def test_todays_names(source: str, expected: str) -> None:
    assert expression(source) == expected


def test_the_dumper_of_torchferry() -> None:
    text = rewritten("import torch\nwith torch.utils.dumper(use_dump=True) as d: pass\n")
    assert "import torchferry.accuracy\n" in text
    assert "with torchferry.accuracy.dumper(use_dump=True)" in text


def test_what_has_another_form_today_is_reported() -> None:
    assert said_of("with torch.npu.profile('out'): pass", rule="TF123") == [
        ("TF123", "todo", "torch.npu.profile")
    ]


def test_todays_names_exist() -> None:
    import torchferry.perf.affinity as affinity

    names = [old.new for name in WITH_TABLE for old in load_old_names(target(name).vendor.folder)]
    own = [new.rpartition(".")[2] for new in names if new.startswith("torchferry.perf.affinity.")]
    assert own
    assert all(name in affinity.__all__ for name in own)
