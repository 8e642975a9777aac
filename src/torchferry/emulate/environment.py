"""What to emulate, and how a process hands it on to the processes it starts: as one environment variable. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torchferry import variables
from torchferry.emulate import plugins
from torchferry.errors import RunError
from torchferry.settings import Settings
from torchferry.sim.environment import machine_size
from torchferry.text import Text
from torchferry.vendors.model import Vendor


@dataclass(frozen=True)
class EmulationSettings(Settings):
    """The emulated machine, and the vendor's plugin that runs on it."""

    variable: ClassVar[str] = variables.EMULATE
    repair: ClassVar[Text] = Text(
        "it must be 0, 1, or what ferry run sets it to: unset it",
        "它只能是 0、1 或由 ferry run 设置的值：请取消设置",
    )

    vendor: str
    plugin: str  # the folder that holds it
    module: str  # its name
    devices: int
    memory: int  # bytes of each device
    card: str  # what each device says that it is
    # CUDA's names mean what the vendor's own migration makes of them, not what our layer does
    native: bool = False
    vendor_paths: tuple[str, ...] = ()  # folders of user-made vendors
    # the devices draw from the CPU's default generator, as a program on the CPU does
    shared_randomness: bool = False
    summary_folder: str = ""  # where processes leave their part of the summary; "" nowhere


def settings_for(
    vendor: Vendor,
    devices: int | None = None,
    memory: int | str | None = None,
    vendor_paths: tuple[str, ...] = (),
    native: bool = False,
    shared_randomness: bool = False,
) -> EmulationSettings:
    """The machine to emulate; what is not said is that of a typical server of the vendor."""
    plugin = plugins.needed(vendor)
    if native and not vendor.migrations:
        raise RunError(
            Text(
                f"{vendor.name}: no migration tool of this vendor is known; leave --native out",
                f"{vendor.name}：未知该厂商自带的迁移工具；请去掉 --native",
            )
        )
    devices, memory = machine_size(vendor, devices, memory)
    card = vendor.emulation.card or vendor.limits.device_name
    return EmulationSettings(
        vendor.name,
        str(plugin.folder),
        vendor.plugin,
        devices,
        memory,
        card,
        native,
        vendor_paths,
        shared_randomness,
    )
