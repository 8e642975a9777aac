"""What is known about one accelerator, as a frozen record. Rules ask it; they never ask for a vendor's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Support(str, Enum):
    """Whether the vendor has something."""

    SAME = "same"  # under the vendor's own module, with the same name
    RENAMED = "renamed"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Api:
    """What became of one CUDA API name; `name` is the full name to write instead, "" if there is none."""

    support: Support
    name: str
    basis: str = ""  # how it is known: a vendor list, the module's own names, usage


@dataclass(frozen=True)
class Replacement:
    """What to use instead of a CUDA-only library or function."""

    cuda: str  # dotted name that it stands for: "apex.optimizers.FusedAdam", "flash_attn", ...
    use: str  # what this vendor (or plain torch) offers; "" when nothing is known
    automatic: str = ""  # full dotted name that can be put in its place without further thought


@dataclass(frozen=True)
class Source:
    """Where a fact comes from."""

    name: str  # repository or package
    version: str  # commit, release or date
    path: str


@dataclass(frozen=True)
class Vendor:
    """One accelerator as TorchFerry knows it. "" and empty collections mean: not known."""

    name: str
    company: str
    device_type: str
    plugin: str  # Python module to import; "" when PyTorch has the device in tree
    torch_module: str  # torch.npu
    dist_backend: str
    visible_devices_env: str
    smi: str
    tensor_method: str  # npu, as in tensor.npu()
    is_attribute: str  # is_npu
    amp_module: str
    autocast_device_type: str
    amp_dtypes: tuple[str, ...]
    fused_optimizer_module: str
    fused_optimizers: tuple[str, ...]
    profiler_module: str
    profiler_activity: str  # NPU, as in ProfilerActivity.NPU; "" unknown
    marker_module: str
    memory_format: str
    channels_last: bool
    dtypes: Mapping[str, str]  # dtype -> limit in words
    data_parallel: Support
    jit_script: str  # what the adapter does with torch.jit.script; "" nothing known
    graphs: str
    apex: str
    triton: str
    extension: str  # how custom kernels are built for it
    missing_op: str
    oom_exception: str
    env: Mapping[str, str]  # the vendor's variables -> meaning
    env_map: Mapping[str, str]  # CUDA/NCCL variable -> the vendor's, "" when there is none
    apis: Mapping[str, Api]  # torch.cuda.* and friends
    apis_complete: bool  # False: a name that is not listed is unknown, not unsupported
    replacements: tuple[Replacement, ...]
    sources: tuple[Source, ...]
    folder: str  # where the data was read from
    api_notes: Mapping[str, str] = field(default_factory=dict)  # limits of an API in words, by CUDA name

    def api(self, name: str) -> Api:
        """What to write for a CUDA API; a name that no table knows is unknown."""
        return self.apis.get(name, Api(Support.UNKNOWN, ""))
