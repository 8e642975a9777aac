"""What a resolved dotted path means for a migration."""

from __future__ import annotations

import re

from .model import HUMAN, KEEP, MUST, Call

GRAPHS = (
    "CUDAGraph",
    "graph",
    "graphs",
    "make_graphed_callables",
    "graph_pool_handle",
    "is_current_stream_capturing",
)
LIBRARIES = {
    "apex": "apex",
    "apex_C": "apex",
    "amp_C": "apex",
    "flash_attn": "flash_attn",
    "flash_attn_cuda": "flash_attn",
    "flash_attn_2_cuda": "flash_attn",
    "xformers": "xformers",
    "triton": "triton",
    "pynvml": "pynvml",
    "nvidia_smi": "nvidia-smi",
    "bitsandbytes": "bitsandbytes",
    "pycuda": "pycuda",
    "cupy": "cupy",
    "cupyx": "cupy",
    "cuda": "cuda-python",
    "nvtx": "nvtx",
}
DATA_PARALLEL = re.compile(r"torch\.nn(\.parallel)?(\.data_parallel)?\.(DataParallel|data_parallel)$")
EXTENSION = re.compile(r"torch\.utils\.cpp_extension\.(\w*CUDA\w*|load_inline|load|\w*cuda\w*)$")
TRIGGERED = re.compile(r"cuda|nccl|cudnn|nvtx", re.IGNORECASE)


def judge_path(path: str, chain: str, deciding: bool = True) -> Call | None:
    """The class of an occurrence whose text is the last part of `path`, in the longer dotted `chain`.

    `deciding` is False where the name is only mentioned (an import, an isinstance test).
    """
    if path == "torch" or path.startswith("torch."):
        return _torch(path, chain, deciding)
    root = path.split(".")[0]
    if root == "numba":
        return (
            Call(HUMAN, "numba.cuda kernel code", "numba.cuda", path)
            if path.startswith("numba.cuda")
            else None
        )
    family = LIBRARIES.get(root)
    if family:
        return Call(HUMAN, f"library {family}", family, path)
    if root == "":
        return Call(KEEP, "the project's own module", path=path)
    return None


def _torch(path: str, chain: str, deciding: bool) -> Call | None:
    if path == "torch.cuda" or path.startswith("torch.cuda."):
        parts = chain.split(".")
        if len(parts) > 2 and parts[2] in GRAPHS:
            return Call(HUMAN, "CUDA graph", "cudagraph", chain)
        return Call(MUST, "torch.cuda name", path=path)
    if path.startswith("torch.version.cuda"):
        return Call(HUMAN, "torch.version.cuda", "torch.version.cuda", path)
    if path.startswith("torch.backends.cudnn"):
        return Call(KEEP, "torch.backends.cudnn", path=path)
    if path.startswith("torch.backends.cuda"):
        return Call(HUMAN, "torch.backends.cuda setting", "torch.backends.cuda", path)
    if DATA_PARALLEL.match(path):
        if deciding:
            return Call(HUMAN, "DataParallel", "dataparallel", path)
        return Call(KEEP, "DataParallel only mentioned", path=path)
    if "DataParallel" in path:
        return Call(KEEP, "a distributed wrapper, no DataParallel", path=path)
    if EXTENSION.match(path):
        return Call(HUMAN, "CUDA extension", "extension", path)
    if re.match(r"torch\.(Tensor|nn\.Module|nn\.modules\.\w+\.Module)\.(cuda|is_cuda)$", path):
        return Call(MUST, "the cuda method or attribute itself", path=path)
    if re.search(r"ProfilerActivity\.CUDA$", path):
        return Call(MUST, "profiler activity", path=path)
    if path.startswith("torch.distributed") and path.endswith(
        (".is_nccl_available", ".ProcessGroupNCCL", ".NCCL")
    ):
        return Call(MUST, "nccl name of torch.distributed", path=path)
    if path.startswith("torch.ops."):
        return Call(KEEP, "name of an operator", path=path)
    last = path.rsplit(".", 1)[-1]
    return Call(HUMAN, "a CUDA name inside torch", "torch-internal", path) if TRIGGERED.search(last) else None
