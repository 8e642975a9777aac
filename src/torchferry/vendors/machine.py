"""What a machine must have for a vendor's device, and which versions belong together; read only when asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors.model import Source
from torchferry.vendors.schema import MACHINE_FILE, Table, read_table


@dataclass(frozen=True)
class PluginFacts:
    """The package that brings the device to PyTorch."""

    package: str = ""  # as pip names it
    get: str = ""  # command, with {plugin} and {torch}
    torch: str = ""  # pattern: the release of torch that the plugin's version names
    torch_build: str = ""  # what the version of torch has after its plus sign, where the device is in tree
    libraries: tuple[str, ...] = ()  # patterns below the package's folder


@dataclass(frozen=True)
class ToolkitFacts:
    """The vendor's libraries and compilers."""

    name: str = ""
    variables: tuple[str, ...] = ()  # each of which names its folder
    folders: tuple[str, ...] = ()  # where it lies by default
    version_files: tuple[str, ...] = ()  # below its folder; {arch} is the processor's
    version: str = ""  # pattern
    scripts: tuple[str, ...] = ()  # beside or below its folder; it sets the variables
    sets: tuple[str, ...] = ()  # variables that the script sets and that the plugin needs
    libraries: tuple[str, ...] = ()  # folders below its own
    operators: tuple[
        str, ...
    ] = ()  # below its folder: one of them is there where the operators are installed
    packages: tuple[str, ...] = ()  # of Python, that its compilers import


@dataclass(frozen=True)
class DriverFacts:
    """The kernel's part."""

    name: str = ""
    version_files: tuple[str, ...] = ()
    version: str = ""
    firmware_files: tuple[str, ...] = ()
    firmware: str = ""  # pattern: the version of the cards' firmware
    firmware_spans: str = (
        ""  # pattern: [7.0.0,7.7.99],[...] in the driver's files, the firmware that it goes with
    )
    libraries: tuple[str, ...] = ()  # folders


@dataclass(frozen=True)
class DeviceFacts:
    """How devices appear in the file system."""

    nodes: tuple[str, ...] = ()  # patterns, each file is a card
    control: tuple[str, ...] = ()  # files that are needed beside them
    each: int = 1  # devices for each of these files
    group: str = ""  # whose members may use them


@dataclass(frozen=True)
class SmiFacts:
    """How the output of the vendor's command is read."""

    command: str = ""  # where it is not the vendor's smi
    driver: str = ""
    toolkit: str = ""
    device: str = ""  # index, name, health
    healthy: tuple[str, ...] = ()
    process: str = ""  # pid


@dataclass(frozen=True)
class NetworkFacts:
    """What collectives between machines need."""

    files: tuple[str, ...] = ()
    interface_variables: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()
    card_addresses: str = ""  # pattern: the number of a card that has an address in these files
    json_variables: tuple[str, ...] = ()  # each of which names a file of JSON
    port_variable: str = ""
    port: int = 0  # the first of those on which hosts meet; 0: unknown
    port_count: int = 1


@dataclass(frozen=True)
class Release:
    """One row of the matrix of versions; an empty field is unknown."""

    plugin: str  # a version, or the beginning of several
    torch: str
    toolkit: tuple[str, ...] = ()
    compatible: tuple[str, ...] = ()  # toolkits that do as well
    python: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()


@dataclass(frozen=True)
class DriverRow:
    """The drivers for a toolkit: after >= all from there on, else those that are known to go with it."""

    toolkit: str
    driver: tuple[str, ...]
    source: str = ""


@dataclass(frozen=True)
class MachineTable:
    """What machine.toml says."""

    get: Text = Text("", "")
    gcc: str = ""  # with which the plugin is built
    libraries: tuple[str, ...] = ()  # that the plugin loads
    plugin: PluginFacts = PluginFacts()
    toolkit: ToolkitFacts = ToolkitFacts()
    driver: DriverFacts = DriverFacts()
    devices: DeviceFacts = DeviceFacts()
    smi: SmiFacts = SmiFacts()
    network: NetworkFacts = NetworkFacts()
    releases: tuple[Release, ...] = ()  # the newest first
    drivers: tuple[DriverRow, ...] = ()
    sources: tuple[Source, ...] = ()
    is_known: bool = field(default=False)


_PARTS: Mapping[str, type] = {
    "plugin": PluginFacts,
    "toolkit": ToolkitFacts,
    "driver": DriverFacts,
    "devices": DeviceFacts,
    "smi": SmiFacts,
    "network": NetworkFacts,
}
_PATTERNS = {
    "plugin": ("torch",),
    "toolkit": ("version",),
    "driver": ("version", "firmware", "firmware_spans"),
    "network": ("card_addresses",),
    "smi": ("driver", "toolkit", "device", "process"),
}


def load_machine(vendor_folder: Path) -> MachineTable:
    """Read machine.toml of a vendor folder; without one nothing is known."""
    file = vendor_folder / MACHINE_FILE
    if not file.exists():
        return MachineTable()
    data = read_table(file)
    _check_patterns(file, data)
    parts = {name: kind(**_tuples(data[name])) for name, kind in _PARTS.items() if name in data}
    return MachineTable(
        get=Text(data.get("get", ""), data.get("get_zh") or data.get("get", "")),
        gcc=data.get("gcc", ""),
        libraries=tuple(data.get("libraries", ())),
        releases=tuple(Release(**_tuples(row)) for row in data.get("releases", ())),
        drivers=tuple(DriverRow(**_tuples(row)) for row in data.get("drivers", ())),
        sources=tuple(
            Source(row["name"], row.get("version", ""), row.get("path", ""))
            for row in data.get("sources", ())
        ),
        is_known=True,
        **parts,
    )


def _tuples(table: Table) -> Table:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _check_patterns(file: Path, data: Table) -> None:
    """A pattern that does not compile is found here, not in the midst of an examination."""
    for part, keys in _PATTERNS.items():
        for key in keys:
            try:
                re.compile(data.get(part, {}).get(key, ""))
            except re.error as error:
                raise VendorError(
                    f"{file}: key '{part}.{key}' is no regular expression ({error}); correct it"
                ) from None
