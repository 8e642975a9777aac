"""What a machine must have for a vendor's device, and which versions belong together; read only when asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.keys import (
    NAME,
    PATHS,
    Source,
    expression,
    number,
    rows,
    sources,
    table,
    text,
    texts,
    translated,
)
from torchferry.vendors.schema import MACHINE_FILE, read_file

_WITH_GROUP = r"(?s).*\(.*\).*"
_VERSIONS = r"(>=)?\d[\w.+-]*"


@dataclass(frozen=True)
class PluginFacts:
    """The package that brings the device to PyTorch."""

    package: str = text('"torch-acme"', r"[\w.-]+", "", required=True)
    get: str = text('"pip install torch-acme=={plugin}"')
    torch: str = expression(r"'^(\d+\.\d+)'", r".*\(.*\).*")
    torch_build: str = text('"acme"', r"\w*")
    libraries: tuple[str, ...] = texts('["_C*.so", "lib/*.so"]')


@dataclass(frozen=True)
class ToolkitFacts:
    """The vendor's libraries and compilers."""

    name: str = text('"Acme SDK"', r".+", "", required=True)
    variables: tuple[str, ...] = texts('["ACME_HOME"]', NAME)
    folders: tuple[str, ...] = texts('["/usr/local/acme"]', PATHS)
    version_files: tuple[str, ...] = texts('["version.txt"]')
    version: str = expression(r"'version=(\S+)'", _WITH_GROUP)
    scripts: tuple[str, ...] = texts('["set_env.sh"]')
    sets: tuple[str, ...] = texts('["ACME_OPS_PATH"]', NAME)
    operators: tuple[str, ...] = texts('["{arch}-linux/ops.info", "kernels"]')
    packages: tuple[str, ...] = texts('["numpy"]', r"[\w.-]+")
    libraries: tuple[str, ...] = texts('["lib64"]')


@dataclass(frozen=True)
class DriverFacts:
    """The kernel's part."""

    name: str = text('"Acme driver"', r".+", "", required=True)
    version_files: tuple[str, ...] = texts('["/usr/local/acme/driver/version"]', PATHS)
    version: str = expression(r"'Version=(\S+)'", _WITH_GROUP)
    firmware_files: tuple[str, ...] = texts('["/usr/local/acme/firmware/version"]', PATHS)
    firmware: str = expression(r"'Version=(\S+)'", _WITH_GROUP)
    firmware_spans: str = expression(r"'firmware=(\S+)'", _WITH_GROUP)
    libraries: tuple[str, ...] = texts('["/usr/local/acme/driver/lib64"]', PATHS)


@dataclass(frozen=True)
class DeviceFacts:
    """How devices appear in the file system."""

    nodes: tuple[str, ...] = texts('["/dev/acme[0-9]*"]', PATHS)
    control: tuple[str, ...] = texts('["/dev/acme_ctl"]', PATHS)
    each: int = number("1", 1)
    group: str = text('"acme"', r"[\w-]*")


@dataclass(frozen=True)
class SmiFacts:
    """How the output of the vendor's command is read."""

    command: str = text('"acme-smi list"')
    driver: str = expression(r"'Driver (\S+)'")
    toolkit: str = expression(r"'Runtime (\S+)'")
    device: str = expression(r"'(?P<index>\d+) (?P<name>.*)'", r"(?s).*\(\?P<name>.*")
    healthy: tuple[str, ...] = texts('["OK"]')
    process: str = expression(r"'(?P<pid>\d+)'", r"(?s).*\(\?P<pid>.*")


@dataclass(frozen=True)
class NetworkFacts:
    """What collectives between machines need."""

    files: tuple[str, ...] = texts('["/etc/acme.conf"]', PATHS)
    interface_variables: tuple[str, ...] = texts('["ACCL_SOCKET_IFNAME"]', NAME)
    address_variables: tuple[str, ...] = texts('["ACCL_IF_IP"]', NAME)
    card_addresses: str = expression(r"'address_(\d+)='", _WITH_GROUP)
    json_variables: tuple[str, ...] = texts('["ACCL_RANK_TABLE"]', NAME)
    port_variable: str = text('"ACCL_BASE_PORT"', NAME)
    port: int = number("60000")
    port_count: int = number("16", 1)


@dataclass(frozen=True)
class Release:
    """One row of the matrix of versions; an empty field is unknown."""

    plugin: str = text('"1.2.0"', r"\d[\w.+-]*", hint=', or the beginning "1.2"', required=True)
    torch: str = text('"2.4.0"', r"\d[\w.]*", required=True)
    toolkit: tuple[str, ...] = texts('["3.1", ">=3.2"]', _VERSIONS)
    compatible: tuple[str, ...] = texts('["3.0"]', _VERSIONS)
    python: tuple[str, ...] = texts('["3.10", "3.11"]', r"3\.\d+")
    architectures: tuple[str, ...] = texts('["x86_64", "aarch64"]')


@dataclass(frozen=True)
class DriverRow:
    """The drivers for a toolkit: after >= all from there on, else those that are known to go with it."""

    toolkit: str = text('"3.1"', _VERSIONS, hint=', or ">=3.1"', required=True)
    driver: tuple[str, ...] = texts('[">=5.0"]', _VERSIONS, required=True)
    source: str = text('"where that is known from"')


@dataclass(frozen=True)
class MachineTable:
    """What machine.toml says."""

    get: Text = translated('"where driver and toolkit come from"')
    gcc: str = text('"13.3"', r"[\d.]*")
    libraries: tuple[str, ...] = texts('["libacme.so"]')
    plugin: PluginFacts = table(PluginFacts, '[plugin] with package = "torch-acme"')
    toolkit: ToolkitFacts = table(ToolkitFacts, '[toolkit] with name = "Acme SDK"')
    driver: DriverFacts = table(DriverFacts, '[driver] with name = "Acme driver"')
    devices: DeviceFacts = table(DeviceFacts, '[devices] with nodes = ["/dev/acme[0-9]*"]')
    smi: SmiFacts = table(SmiFacts, r"[smi] with device = '(?P<index>\d+) (?P<name>.*)'")
    network: NetworkFacts = table(NetworkFacts, '[network] with files = ["/etc/acme.conf"]')
    releases: tuple[Release, ...] = rows(Release, '[[releases]] with plugin = "1.2.0", torch = "2.4.0"')
    drivers: tuple[DriverRow, ...] = rows(DriverRow, '[[drivers]] with toolkit = "3.1", driver = [">=5.0"]')
    sources: tuple[Source, ...] = sources()
    is_known: bool = False  # whether there is such a file


def load_machine(vendor_folder: Path) -> MachineTable:
    """Read machine.toml of a vendor folder; without one nothing is known."""
    file = vendor_folder / MACHINE_FILE
    return replace(read_file(file, MachineTable), is_known=file.exists())
