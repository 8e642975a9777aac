"""What each adapter can't do and how it says so, read from the sources named at each entry; what is left out is unknown.

Of a message only the part that people and log tools look for is the adapter's; advice that follows it is left out.
"""

from __future__ import annotations

from vendor_data import toml
from vendor_data.facts import Row

_DISPATCHER = "Could not run '{operator}' with arguments from the '{backend}' backend."  # PyTorch's own

LIMITS: dict[str, dict[str, toml.Value]] = {
    "ascend": {
        # VariableFallbackKernel.cpp
        "missing_operator": "falls_back",
        "fallback_message": (
            "CAUTION: The operator '{operator}' is not currently supported on the NPU backend "
            "and will fall back to run on the CPU."
        ),
        # CpuFallbackUtils.h
        "raise_when": ["TORCH_NPU_FALLBACK_CPU_DISABLE=1"],
        "raise_when_message": (
            "The operator '{operator}' would run on the CPU, "
            "but CPU fallback is disabled by TORCH_NPU_FALLBACK_CPU_DISABLE=1."
        ),
        # reports from adapters that had no fallback; the first ones wrote NPUTensorId
        "backend_name": "NPU",
        "missing_message": _DISPATCHER,
        # reports, TouchNet issue 100
        "out_of_memory_message": (
            "NPU out of memory. Tried to allocate {wanted} (NPU {device}; {total} total capacity; "
            "{allocated} already allocated; {allocated} current active; {free} free; "
            "{reserved} reserved in total by PyTorch).If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
        ),
        # ProcessGroupHCCL.cpp: checkSupportedDataTypeOfAllReduce; bool and uint8 are cast to int32 before it
        "refused_reductions": ["float64"],
        "refused_reduction_message": "HCCL AllReduce & Reduce: Unsupported data type at::k{dtype}",
        # OverrideOperators.cpp: CPU and device tensors count as compatible
        "shallow_copy": True,
        # npu-smi in vllm-ascend issue 4284: 8 x 910B2 with 65536 MB
        "device_name": "Ascend910B2",
        "device_memory": "64GiB",
        "device_count": 8,
    },
    "cambricon": {
        # MLUFallback.cpp
        "missing_operator": "falls_back",
        "fallback_message": (
            "The operator '{operator}' is not currently supported on the MLU backend "
            "and will fall back to run on the CPU."
        ),
        "raise_when": [
            "ENABLE_FALLBACK_TO_CPU=0",
            "ENABLE_FALLBACK_TO_CPU=OFF",
            "ENABLE_FALLBACK_TO_CPU=off",
        ],
        "missing_message": "The operator '{operator}' is not currently implemented for the MLU device.",
        # the vendor's tests expect this name in PyTorch's own message
        "backend_name": "MLU",
        # caching_allocator.cpp
        "out_of_memory_message": (
            "MLU out of memory. Tried to allocate {wanted}. MLU {device} has a total capacity of {total} "
            "of which {free} is free. Of the allocated memory {allocated} is allocated by PyTorch; "
            "{reserved} is reserved in total."
        ),
        # has_compatible_shallow_copy_type.cpp; the MLU270 generation did replace the parameters
        "shallow_copy": True,
        # test reports of 2026 on 8 x MLU590-M9 with 98304 MiB
        "device_name": "MLU590-M9",
        "device_memory": "96GiB",
        "device_count": 8,
    },
    "tecorigin": {
        # vendors.json, missing_op; scripts of the model zoo set the variable
        "missing_operator": "raises",
        "fall_back_when": ["TORCH_SDAA_RUNTIME_AUTOFALLBACK=1"],
        # port of DiffDock: no more than the first sentence is known
        "out_of_memory_message": (
            "sdaa out of memory. Tried to allocate {wanted} (device {device}: {total} in all, "
            "{allocated} allocated, {reserved} reserved, {free} free)"
        ),
        # teco-smi calls a card so; 4 devices a card with 15296 MiB each (vendors.json; port of DiffDock)
        "device_name": "TECO_AICARD_01",
        "device_memory": "15296MiB",
        "device_count": 4,
    },
    "moorethreads": {
        # ops/moorethreads.json, fallback; torch_musa issue 72
        "missing_operator": "raises",
        "backend_name": "musa",
        "missing_message": _DISPATCHER,
        # benchmark log of 2026-03; older allocators wrote "(GPU 0; ... total capacity; ...)"
        "out_of_memory_message": (
            "MUSA out of memory. Tried to allocate {wanted}. GPU {device} has a total capacity of {total} "
            "of which {free} is free. Of the allocated memory {allocated} is allocated by PyTorch; "
            "{reserved} is reserved in total."
        ),
        # documentation of a cloud that lends them: 80 GB each, 8 linked with each other
        "device_name": "MTT S5000",
        "device_memory": "80GiB",
        "device_count": 8,
    },
    "intel": {
        # XPUFallback.template of torch-xpu-ops
        "missing_operator": "raises",
        "fall_back_when": ["PYTORCH_ENABLE_XPU_FALLBACK=1"],
    },
}

_MLU_REFUSED: dict[str, toml.Value] = {
    "narrowing": "refused",
    "message": "Cannot create MLU storage with quantized dtype {dtype}",
}

# vendor -> dtype -> its limit
DTYPES: dict[str, dict[str, dict[str, toml.Value]]] = {
    "ascend": {
        # ToKernelNpu.cpp: _to_copy with a dtype and no device
        "float64": {
            "narrowing": "cast_as",
            "becomes": "float32",
            "message": "Device do not support double dtype now, dtype cast replace with float.",
        }
    },
    "cambricon": {
        # vendors.json, dtypes
        "float64": {"narrowing": "computed_as", "becomes": "float32"},
        "complex128": {"narrowing": "computed_as", "becomes": "complex64"},
        # vendors.json, dtypes; errors.json has the message
        **dict.fromkeys(("quint8", "quint4x2", "quint2x4", "qint8", "qint32"), _MLU_REFUSED),
    },
    "moorethreads": {
        # torch_musa/README.md
        "float64": {
            "narrowing": "computed_as",
            "becomes": "float32",
            "when": [f"TORCH_USE_MUSA_DOUBLE_CAST={value}" for value in ("1", "true", "ON", "on")],
        }
    },
}

# vendors whose documentation lists the dtypes that each API was tried with
LISTS_WHAT_WAS_TRIED = ("ascend",)

_STRUCTURE_OF_SPARSE = [
    "_sparse_coo_tensor_with_dims_and_tensors", "_nnz", "_indices", "_values", "sparse_dim", "is_coalesced",
    "_coalesced_", "_coalesce",
]  # fmt: skip

# vendor -> operators on sparse (COO) tensors
SPARSE: dict[str, dict[str, toml.Value]] = {
    "ascend": {
        # VariableFallbackKernel.cpp: no fallback to the CPU for them
        "missing_operator": "raises",
        "missing_message": "CAUTION: The operator '{operator}' is not currently supported on the NPU backend.",
        # op_plugin_functions.yaml, entries with `sparse`, and test/test_sparse_coo.py of the adapter
        "kernels": [
            *_STRUCTURE_OF_SPARSE,
            "dense_dim",
            "empty.memory_format",
            "copy_",
            "copy_sparse_to_sparse_",
            "_to_dense",
            "neg",
            "neg_",
            "neg.out",
            "add.Tensor",
            "add_.Tensor",
            "add.out",
            "mul.Tensor",
            "mul_.Tensor",
            "mul.out",
            "max",
            "max.out",
        ],
    },
    "cambricon": {
        # MLUFallback.cpp of the branches for PyTorch 2.4 and later
        "missing_operator": "falls_back",
        "fallback_message": (
            "The operator '{operator}' is not currently supported on the SparseMLU backend "
            "and will fall back to run on the SparseCPU."
        ),
        "missing_message": "The operator '{operator}' is not currently implemented for the MLU device.",
        # ops/cambricon.json
        "kernels": ["_coalesce", "_copy_from_and_resize", "addmm", "addmm.out", "addmm_"],
    },
    "tecorigin": {
        # vendors.json, dtypes: reports of 2024 and 2025
        "missing_operator": "raises",
    },
    "moorethreads": {
        "missing_operator": "raises",
        "missing_message": "Could not run '{operator}' with arguments from the 'SparseMUSA' backend.",
        # ops/moorethreads.json, keys
        "kernels": [*_STRUCTURE_OF_SPARSE, "_to_sparse", "_to_sparse.sparse_dim", "indices", "values"],
    },
}

# vendor -> when results saturate instead of becoming infinite
SATURATION: dict[str, dict[str, toml.Value]] = {
    "ascend": {
        # INF_NAN_MODE_ENABLE.md: its examples are in float16
        "dtypes": ["float16"],
        # the generation before the A2: 910A, 910ProA, 910PremiumA ...
        "cards": ["Ascend910A", "Ascend910P", "Ascend310P"],
        "when": ["INF_NAN_MODE_FORCE_DISABLE=1"],
        # NpuVariables.cpp
        "refused_when": ["INF_NAN_MODE_ENABLE=0"],
        "refused_message": (
            "INF_NAN_MODE_ENABLE shouldn't be set to 0 on the current device. If you want to disable inf-nan mode, "
            "please export INF_NAN_MODE_FORCE_DISABLE=1"
        ),
    },
}


def _row(name: str, version: str, path: str) -> Row:
    return {"name": name, "version": version, "path": path}


SOURCES: dict[str, list[Row]] = {
    "ascend": [
        _row("Ascend/pytorch", "0697d41da0b8", "torch_npu/csrc/aten/VariableFallbackKernel.cpp"),
        _row("Ascend/pytorch", "028285dee356", "torch_npu/csrc/aten/OverrideOperators.cpp"),
        _row("Ascend/pytorch", "042f52dd4320", "torch_npu/csrc/aten/common/ToKernelNpu.cpp"),
        _row("Ascend/pytorch", "35073d670209", "torch_npu/csrc/framework/utils/CpuFallbackUtils.h"),
        _row(
            "Ascend/pytorch",
            "9e73e708ab93",
            "docs/zh/api/environment_variable/op_execution/INF_NAN_MODE_ENABLE.md",
        ),
        _row("Ascend/pytorch", "9e73e708ab93", "torch_npu/csrc/core/npu/NpuVariables.cpp"),
        _row("Ascend/pytorch", "9e73e708ab93", "test/test_sparse_coo.py"),
        _row("Ascend/pytorch", "9e73e708ab93", "torch_npu/csrc/distributed/ProcessGroupHCCL.cpp"),
        _row("xingchensong/TouchNet", "issue 100 2025-08-04", ""),
        _row("vllm-project/vllm-ascend", "issue 4284", ""),
    ],
    "cambricon": [
        _row("Cambricon/torch_mlu", "4ef769f3867d", "torch_mlu/csrc/aten/MLUFallback.cpp"),
        _row("Cambricon/torch_mlu", "17f8951733fb", "torch_mlu/csrc/framework/core/caching_allocator.cpp"),
        _row(
            "Cambricon/torch_mlu",
            "17f8951733fb",
            "torch_mlu/csrc/aten/operators/cnnl/has_compatible_shallow_copy_type.cpp",
        ),
        _row("operator test reports on a server with 8 x MLU590-M9", "2026-09-18", ""),
    ],
    "tecorigin": [
        _row("installation log of SDAA 3.2 with the output of teco-smi", "2026-08-31", ""),
    ],
    "moorethreads": [
        _row("MooreThreads/torch_musa", "issue 72 2024-12-15", ""),
        _row("MooreThreads/torch_musa", "", "torch_musa/README.md"),
        _row("benchmark log of an 80 GB MUSA card that ran out of memory", "2026-03-16", ""),
        _row("Gitee AI documentation", "MTT S5000", "compute/clusters_gpu/moore_gpu"),
    ],
    "intel": [
        _row("intel/torch-xpu-ops", "2e3f9b2c1372", "src/ATen/native/xpu/XPUFallback.template"),
    ],
}
