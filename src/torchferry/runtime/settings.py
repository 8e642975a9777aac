"""How the layer is to behave, and how a process hands it on to the processes it starts. Imports no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from torchferry import variables
from torchferry.errors import RunError
from torchferry.settings import Settings
from torchferry.text import Text

REFERENCE = "cpu"  # in place of a vendor: CUDA's names mean the CPU
_REFERENCE_DEVICES = 8
_CAPABILITY = re.compile(r"(\d+)\.(\d+)")
_CUDA_VERSION = re.compile(r"\d+\.\d+")


class TypeChecks(str, Enum):
    """What `device.type == "cuda"` answers for the vendor's device."""

    BOTH = "both"  # true, and so is a comparison with the vendor's own type
    VENDOR = "vendor"  # only a comparison with the vendor's own type is true


@dataclass(frozen=True)
class LayerSettings(Settings):
    """The choices that a user has."""

    variable: ClassVar[str] = variables.LAYER
    repair: ClassVar[Text] = Text(
        f"only ferry run sets it: unset it, and set {variables.TO}=VENDOR",
        f"该变量只由 ferry run 设置：请取消设置，并设置 {variables.TO}=VENDOR",
    )

    vendor: str
    vendor_paths: tuple[str, ...] = ()  # folders of user-made vendors
    type_checks: TypeChecks = TypeChecks.BOTH
    capability: str = ""  # what get_device_capability answers; "" that of a GPU with bfloat16, 8.0
    cuda_version: str = ""  # what torch.version.cuda says; "" as it is
    reference_devices: int = _REFERENCE_DEVICES  # how many devices the CPU stands for as a reference

    def __post_init__(self) -> None:
        if self.capability and not _CAPABILITY.fullmatch(self.capability):
            raise RunError(
                Text(
                    f"{self.capability!r} is not a compute capability; write it as 8.0",
                    f"{self.capability!r} 不是计算能力；请写成 8.0 的形式",
                )
            )
        if self.cuda_version and not _CUDA_VERSION.fullmatch(self.cuda_version):
            raise RunError(
                Text(
                    f"{self.cuda_version!r} is not a CUDA version; write it as 12.4",
                    f"{self.cuda_version!r} 不是 CUDA 版本；请写成 12.4 的形式",
                )
            )
