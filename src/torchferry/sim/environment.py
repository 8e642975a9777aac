"""What to simulate, and how a process hands it on to the processes it starts: as one environment variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torchferry import variables
from torchferry.errors import RunError
from torchferry.settings import Settings
from torchferry.text import Text
from torchferry.units import bytes_of
from torchferry.vendors.model import Vendor

# Of a machine of which nothing is known.
_DEVICES = 8
_MEMORY = "32GiB"
# What the compiled library can count.
_MOST_DEVICES = 64
_MOST_MEMORY = (1 << 63) - 1


@dataclass(frozen=True)
class SimSettings(Settings):
    """The simulated machine."""

    variable: ClassVar[str] = variables.SIM
    repair: ClassVar[Text] = Text(
        "it must be 1, or what ferry run sets it to: unset it",
        "它只能是 1 或由 ferry run 设置的值：请取消设置",
    )

    vendor: str
    devices: int
    memory: int  # bytes of each device
    strict: bool = False
    vendor_paths: tuple[str, ...] = ()  # folders of user-made vendors
    # The devices draw from the CPU's default generator, as a program on the CPU does.
    shared_randomness: bool = False
    card: str = ""  # of the vendor's; "" that of a typical server
    summary_folder: str = ""  # where processes leave their part of the summary; "" nowhere


def settings_for(
    vendor: Vendor,
    devices: int | None = None,
    memory: int | str | None = None,
    strict: bool = False,
    vendor_paths: tuple[str, ...] = (),
    shared_randomness: bool = False,
) -> SimSettings:
    """The machine to simulate; what is not said is that of a typical server of the vendor, or of its chosen card."""
    devices, memory = machine_size(vendor, devices, memory)
    card = vendor.card.name if vendor.card else ""
    return SimSettings(vendor.name, devices, memory, strict, vendor_paths, shared_randomness, card)


def machine_size(vendor: Vendor, devices: int | None, memory: int | str | None) -> tuple[int, int]:
    """The number of devices that are not there in truth, and the bytes of each."""
    if devices is None:
        devices = vendor.limits.device_count or _DEVICES
    if not 1 <= devices <= _MOST_DEVICES:
        raise RunError(
            Text(
                f"the number of simulated devices must be 1 to {_MOST_DEVICES}, not {devices}",
                f"模拟设备的数量必须在 1 到 {_MOST_DEVICES} 之间，而不是 {devices}",
            )
        )
    if memory is None:
        memory = vendor.limits.device_memory or _MEMORY
    return devices, parse_memory(memory)


def parse_memory(size: int | str) -> int:
    """Bytes of "32GiB", "512MB", "1.5G" (all in powers of 1024) or of a plain number."""
    memory = bytes_of(str(size)) or 0
    if not 0 < memory <= _MOST_MEMORY:
        raise RunError(
            Text(
                f"{size!r} is not a memory size; write it as 32GiB, 512MiB or a number of bytes",
                f"{size!r} 不是内存大小；请写成 32GiB、512MiB 或字节数",
            )
        )
    return memory
