"""Environment variables of CUDA and NCCL whose values mean the same to a vendor's variable."""

from __future__ import annotations

# Paths, lists of architectures and names of algorithms do not: they are left out here.
SAME_VALUES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_LAUNCH_BLOCKING",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
    }
    | {f"{prefix}{name}" for prefix in ("", "TORCH_") for name in ("NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG")}
    | {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
)
# In scripts also these: logs, watchdogs and recorders, which take the same levels, sizes and times.
SAME_VALUES_IN_SCRIPTS = SAME_VALUES | {
    "NCCL_DEBUG",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_ENABLE_TIMING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
}
