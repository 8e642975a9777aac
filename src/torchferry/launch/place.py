"""Where and how a program runs, as one record; what its device must be told and built follows. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.emulate import environment as emulated
from torchferry.emulate.environment import EmulationSettings
from torchferry.runtime.settings import REFERENCE, LayerSettings
from torchferry.sim import environment as simulated
from torchferry.sim.environment import SimSettings
from torchferry.vendors.model import Vendor

if TYPE_CHECKING:
    from torchferry.building.build import Progress

_CPU = "cpu"

Device = SimSettings | EmulationSettings  # one that is not there in truth


class DeviceKind(Enum):
    """How the device of a program is there."""

    REAL = "real"
    EMULATED = "emulated"  # the vendor's own plugin, without its hardware
    SIMULATED = "simulated"
    REFERENCE = "reference"  # the CPU stands for CUDA
    AS_IS = "as is"  # the program chooses by itself


@dataclass(frozen=True)
class Place:
    """The device of a program, and what CUDA's names mean to it there."""

    kind: DeviceKind
    vendor: Vendor | None = None  # whose device it is, with the chosen card; None: of no vendor
    vendor_paths: tuple[str, ...] = ()  # folders of user-made vendors
    devices: int | None = None  # None: as many as a typical server has
    memory: int | str | None = None  # of each device; None: that of a typical one
    as_is: str = ""  # the type of the device that the program chooses by itself; "": it is not known
    converted: bool = False  # CUDA's names keep their meaning
    redirection: LayerSettings | None = None  # of CUDA's names, where a user has said how; None: as usual
    native: bool = False  # the vendor's own migration redirects them
    strict: bool = False  # an operator that the vendor lacks raises
    # The devices draw from the CPU's default generator, so that what is random can be compared.
    shared_randomness: bool = False

    @property
    def device_type(self) -> str:
        """The type of the device that computes; "": the program chooses."""
        if self.kind is DeviceKind.REFERENCE:
            return _CPU
        return self.as_is if self.vendor is None else self.vendor.device_type

    @property
    def vendor_name(self) -> str:
        """Whose device it is; "": of no vendor."""
        return "" if self.vendor is None else self.vendor.name

    @property
    def is_simulated(self) -> bool:
        """Whether the device is TorchFerry's own."""
        return self.kind is DeviceKind.SIMULATED

    @property
    def layer(self) -> LayerSettings | None:
        """What redirects CUDA's names; None: they keep their meaning."""
        if self.kind is DeviceKind.REFERENCE:
            layer = LayerSettings(REFERENCE)
            return layer if self.devices is None else replace(layer, reference_devices=self.devices)
        if self.vendor is None or self.converted or self.native:
            return None
        return self.redirection or LayerSettings(self.vendor.name, self.vendor_paths)

    def machine(self) -> Device | None:
        """The machine that is simulated or emulated; None: the real one."""
        if self.vendor is None:
            return None
        size = self.vendor, self.devices, self.memory
        if self.kind is DeviceKind.SIMULATED:
            return simulated.settings_for(*size, self.strict, self.vendor_paths, self.shared_randomness)
        if self.kind is DeviceKind.EMULATED:
            return emulated.settings_for(*size, self.vendor_paths, self.native, self.shared_randomness)
        return None


def build_for(place: Place, progress: Progress | None = None) -> None:
    """Compile what the device needs and is not there yet; the reference computes as CUDA does with the simulated
    device's library."""
    from torchferry.emulate import build as emulated_build
    from torchferry.sim import build as simulated_build

    machine = place.machine()
    if isinstance(machine, EmulationSettings):
        assert place.vendor is not None
        emulated_build.library_folder(place.vendor, Path(machine.plugin), progress)
    elif machine is not None or place.kind is DeviceKind.REFERENCE:
        simulated_build.library_path(progress)
