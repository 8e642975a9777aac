"""Every built-in vendor: loads, is quick to load, is coherent, and says unknown where nothing is known."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from torchferry.vendors.error_patterns import load_errors
from torchferry.vendors.model import Support, Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, load_vendor, vendor_names
from torchferry.vendors.schema import (
    ERRORS_FILE,
    LIBRARIES_FILE,
    OFFLINE_FILE,
    OLD_NAMES_FILE,
    RECORDS,
    ZOO_FILE,
    read_table,
)

NAMES = vendor_names()
pytestmark = pytest.mark.parametrize("vendor", [get_vendor(name) for name in NAMES], ids=NAMES)


def test_identity(vendor: Vendor) -> None:
    assert vendor.name == Path(vendor.folder).name
    assert vendor.torch_module.startswith("torch.")
    assert vendor.is_attribute == f"is_{vendor.tensor_method}"
    assert vendor.env_map["CUDA_VISIBLE_DEVICES"] == vendor.visible_devices_env


def test_every_table_names_its_sources(vendor: Vendor) -> None:
    folder = Path(vendor.folder)
    for file in RECORDS:
        if file not in (ZOO_FILE, OFFLINE_FILE, LIBRARIES_FILE, OLD_NAMES_FILE) or (folder / file).exists():
            assert "[[sources]]" in (folder / file).read_text(encoding="utf-8"), file
    assert all(source.name for source in vendor.sources)
    assert load_ops(folder).sources or not load_ops(folder).kernels


def test_api_names(vendor: Vendor) -> None:
    for cuda, api in vendor.apis.items():
        if api.support is Support.UNSUPPORTED:
            assert api.name == "", cuda
            continue
        assert re.fullmatch(r"\w+(\.\w+)+", api.name), cuda
        if cuda.startswith("torch.cuda."):
            assert "cuda" not in api.name.split("."), cuda
        if api.support is Support.RENAMED:
            assert api.name != cuda


def test_set_device_is_known_everywhere(vendor: Vendor) -> None:
    assert vendor.api("torch.cuda.set_device").name == f"{vendor.torch_module}.set_device"
    assert vendor.api("torch.Tensor.get_device").name == "torch.Tensor.get_device"


def test_unlisted_name_is_unknown(vendor: Vendor) -> None:
    assert vendor.api("torch.cuda.no_such_name").support is Support.UNKNOWN


def test_automatic_replacements_are_dotted_names(vendor: Vendor) -> None:
    by_name = {entry.cuda: entry for entry in vendor.replacements}
    assert len(by_name) == len(vendor.replacements)
    assert by_name["apex.normalization.FusedLayerNorm"].automatic == "torch.nn.LayerNorm"
    assert by_name["apex.parallel.DistributedDataParallel"].automatic == ""
    assert by_name["pynvml"].use.startswith(vendor.smi)
    for entry in vendor.replacements:
        assert " " not in entry.automatic + entry.cuda
        module, _, name = entry.automatic.rpartition(".")
        if module and module == vendor.fused_optimizer_module:
            assert name in vendor.fused_optimizers


def test_reported_libraries_have_an_entry(vendor: Vendor) -> None:
    names = {entry.cuda for entry in vendor.replacements}
    assert names >= {
        *(
            "flash_attn",
            "xformers",
            "triton",
            "bitsandbytes",
            "apex.amp",
            "pynvml",
            "nvidia_smi",
            "nvidia.dali",
        ),
        *(
            "tensorrt",
            "torch_tensorrt",
            "cupy",
            "numba.cuda",
            "pycuda",
            "transformer_engine",
            "torch_scatter",
        ),
        *("torch.utils.cpp_extension.CUDAExtension", "torch.utils.cpp_extension.load_inline"),
        *("torch.nn.DataParallel", "torch.cuda.nvtx", "torch.cuda.CUDAGraph", "torch.jit.script"),
    }


def test_mapped_variables_are_real(vendor: Vendor) -> None:
    assert all(name == "" or re.fullmatch(r"[A-Z][A-Z0-9_]+", name) for name in vendor.env_map.values())


def test_ops(vendor: Vendor) -> None:
    ops = load_ops(Path(vendor.folder))
    if ops.complete:
        assert len(ops.kernels) > 500
        assert ops.has_kernel("mm") is True or ops.has_kernel("mm.out") is True
        assert ops.has_kernel("no_such_op") is False
        assert ops.has_kernel("no_such_op", "0.1") is None
        assert {version for found in ops.kernels.values() for version in found} <= set(ops.versions)
    else:
        assert ops.has_kernel("no_such_op") is None


def test_error_patterns_compile(vendor: Vendor) -> None:
    patterns = load_errors(Path(vendor.folder)).patterns
    assert any(pattern.any_vendor for pattern in patterns)
    assert [pattern.rank for pattern in patterns] == sorted(pattern.rank for pattern in patterns)
    for pattern in patterns:
        re.compile(pattern.regex)
        assert pattern.regex or pattern.codes
        assert all([*pattern.cause, *pattern.remedy, pattern.source]), pattern.id
        assert pattern.cause.en != pattern.cause.zh, pattern.id
    assert len({pattern.id for pattern in patterns}) == len(patterns)


def test_codes_are_explained_in_both_languages(vendor: Vendor) -> None:
    data = read_table(Path(vendor.folder) / ERRORS_FILE)
    assert data.get("codes", {}).keys() == data.get("codes_zh", {}).keys()


def test_loads_quickly(vendor: Vendor) -> None:
    def once() -> float:
        start = time.process_time()
        load_vendor(Path(vendor.folder))
        return time.process_time() - start

    assert min(once() for _ in range(5)) < 0.040
