"""What a machine must have for a vendor's device, and which versions belong together; read only when asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors import keys
from torchferry.vendors.schema import MACHINE_FILE, read_file

_WITH_GROUP = r"(?s).*\(.*\).*"
_VERSIONS = r"(>=)?\d[\w.+-]*"


@dataclass(frozen=True)
class PluginFacts:
    """The package that brings the device to PyTorch."""

    package: str = keys.text('"torch-acme"', r"[\w.-]+", "", required=True)
    get: str = keys.text('"pip install torch-acme=={plugin}"')
    torch: str = keys.expression(r"'^(\d+\.\d+)'", r".*\(.*\).*")
    torch_build: str = keys.text('"acme"', r"\w*")
    libraries: tuple[str, ...] = keys.texts('["_C*.so", "lib/*.so"]')


@dataclass(frozen=True)
class ToolkitFacts:
    """The vendor's libraries and compilers."""

    name: str = keys.text('"Acme SDK"', r".+", "", required=True)
    variables: tuple[str, ...] = keys.texts('["ACME_HOME"]', keys.NAME)
    folders: tuple[str, ...] = keys.texts('["/usr/local/acme"]', keys.PATHS)
    version_files: tuple[str, ...] = keys.texts('["version.txt"]')
    version: str = keys.expression(r"'version=(\S+)'", _WITH_GROUP)
    scripts: tuple[str, ...] = keys.texts('["set_env.sh"]')
    sets: tuple[str, ...] = keys.texts('["ACME_OPS_PATH"]', keys.NAME)
    operators: tuple[str, ...] = keys.texts('["{arch}-linux/ops.info", "kernels"]')
    packages: tuple[str, ...] = keys.texts('["numpy"]', r"[\w.-]+")
    libraries: tuple[str, ...] = keys.texts('["lib64"]')


@dataclass(frozen=True)
class DriverFacts:
    """What is known of the kernel's driver."""

    name: str = keys.text('"Acme driver"', r".+", "", required=True)
    version_files: tuple[str, ...] = keys.texts('["/usr/local/acme/driver/version"]', keys.PATHS)
    version: str = keys.expression(r"'Version=(\S+)'", _WITH_GROUP)
    firmware_files: tuple[str, ...] = keys.texts('["/usr/local/acme/firmware/version"]', keys.PATHS)
    firmware: str = keys.expression(r"'Version=(\S+)'", _WITH_GROUP)
    firmware_spans: str = keys.expression(r"'firmware=(\S+)'", _WITH_GROUP)
    libraries: tuple[str, ...] = keys.texts('["/usr/local/acme/driver/lib64"]', keys.PATHS)


@dataclass(frozen=True)
class DeviceFacts:
    """How devices appear in the file system."""

    nodes: tuple[str, ...] = keys.texts('["/dev/acme[0-9]*"]', keys.PATHS)
    control: tuple[str, ...] = keys.texts('["/dev/acme_ctl"]', keys.PATHS)
    each: int = keys.number("1", 1)
    group: str = keys.text('"acme"', r"[\w-]*")


@dataclass(frozen=True)
class SmiFacts:
    """How the output of the vendor's command is read."""

    command: str = keys.text('"acme-smi list"')
    driver: str = keys.expression(r"'Driver (\S+)'")
    toolkit: str = keys.expression(r"'Runtime (\S+)'")
    device: str = keys.expression(r"'(?P<index>\d+) (?P<name>.*)'", r"(?s).*\(\?P<name>.*")
    healthy: tuple[str, ...] = keys.texts('["OK"]')
    process: str = keys.expression(r"'(?P<pid>\d+)'", r"(?s).*\(\?P<pid>.*")


@dataclass(frozen=True)
class NetworkFacts:
    """What collectives between machines need."""

    files: tuple[str, ...] = keys.texts('["/etc/acme.conf"]', keys.PATHS)
    interface_variables: tuple[str, ...] = keys.texts('["ACCL_SOCKET_IFNAME"]', keys.NAME)
    address_variables: tuple[str, ...] = keys.texts('["ACCL_IF_IP"]', keys.NAME)
    card_addresses: str = keys.expression(r"'address_(\d+)='", _WITH_GROUP)
    json_variables: tuple[str, ...] = keys.texts('["ACCL_RANK_TABLE"]', keys.NAME)
    port_variable: str = keys.text('"ACCL_BASE_PORT"', keys.NAME)
    port: int = keys.number("60000")
    port_count: int = keys.number("16", 1)


@dataclass(frozen=True)
class Release:
    """One row of the matrix of versions; an empty field is unknown."""

    plugin: str = keys.text('"1.2.0"', r"\d[\w.+-]*", hint=', or the beginning "1.2"', required=True)
    torch: str = keys.text('"2.4.0"', r"\d[\w.]*", required=True)
    toolkit: tuple[str, ...] = keys.texts('["3.1", ">=3.2"]', _VERSIONS)
    compatible: tuple[str, ...] = keys.texts('["3.0"]', _VERSIONS)
    python: tuple[str, ...] = keys.texts('["3.10", "3.11"]', r"3\.\d+")
    architectures: tuple[str, ...] = keys.texts('["x86_64", "aarch64"]')


@dataclass(frozen=True)
class DriverRow:
    """The drivers for a toolkit: after >= all from there on, else those that are known to go with it."""

    toolkit: str = keys.text('"3.1"', _VERSIONS, hint=', or ">=3.1"', required=True)
    driver: tuple[str, ...] = keys.texts('[">=5.0"]', _VERSIONS, required=True)
    source: str = keys.text('"where that is known from"')


@dataclass(frozen=True)
class MachineTable:
    """What machine.toml says."""

    get: Text = keys.translated('"where driver and toolkit come from"')
    gcc: str = keys.text('"13.3"', r"[\d.]*")
    libraries: tuple[str, ...] = keys.texts('["libacme.so"]')
    plugin: PluginFacts = keys.table(PluginFacts, '[plugin] with package = "torch-acme"')
    toolkit: ToolkitFacts = keys.table(ToolkitFacts, '[toolkit] with name = "Acme SDK"')
    driver: DriverFacts = keys.table(DriverFacts, '[driver] with name = "Acme driver"')
    devices: DeviceFacts = keys.table(DeviceFacts, '[devices] with nodes = ["/dev/acme[0-9]*"]')
    smi: SmiFacts = keys.table(SmiFacts, r"[smi] with device = '(?P<index>\d+) (?P<name>.*)'")
    network: NetworkFacts = keys.table(NetworkFacts, '[network] with files = ["/etc/acme.conf"]')
    releases: tuple[Release, ...] = keys.rows(Release, '[[releases]] with plugin = "1.2.0", torch = "2.4.0"')
    drivers: tuple[DriverRow, ...] = keys.rows(
        DriverRow, '[[drivers]] with toolkit = "3.1", driver = [">=5.0"]'
    )
    sources: tuple[keys.Source, ...] = keys.sources()
    is_known: bool = False  # whether there is such a file


def load_machine(vendor_folder: Path) -> MachineTable:
    """Read machine.toml of a vendor folder; without one nothing is known."""
    file = vendor_folder / MACHINE_FILE
    return replace(read_file(file, MachineTable), is_known=file.exists())
