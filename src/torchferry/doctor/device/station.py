"""A machine with a vendor's device as checks see it. Tests make one of their own."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from torchferry.doctor.host.machine import Machine
from torchferry.vendors.machine import MachineTable
from torchferry.vendors.model import Vendor

SMI_SECONDS = 15


class Output(NamedTuple):
    """What a command has answered."""

    code: int  # 124: it took too long
    text: str


class Access(NamedTuple):
    """Who may use a file."""

    allowed: bool  # this process may read and write it
    group: str
    mode: int


@dataclass(frozen=True)
class Station:
    """Everything that checks ask; paths are those of the machine, looked up below its root."""

    machine: Machine
    vendor: Vendor
    table: MachineTable
    python: str  # 3.11
    hostname: str
    folder: Path  # in which the user works
    run: Callable[[Sequence[str]], Output | None]  # None: there is no such command
    package: Callable[[str], Path | None]  # folder of an installed package
    access: Callable[[Path], Access]
    address: Callable[[str], str | None]  # of a host's name
    port_is_free: Callable[[int], bool]
    program: Callable[[str], str | None]  # where a command lies

    def path(self, name: str) -> Path:
        """A path of the machine, below its root."""
        return self.machine.root / name.lstrip("/")

    def shown(self, path: Path) -> str:
        """A path below the root as the machine's users know it."""
        with contextlib.suppress(ValueError):
            return f"/{path.relative_to(self.machine.root)}"
        return str(path)

    def files(self, patterns: Sequence[str]) -> list[Path]:
        """All files that match."""
        return [path for pattern in patterns for path in self.machine.paths(pattern.lstrip("/"))]

    @cached_property
    def torch(self) -> str | None:
        """The version that is installed."""
        return self.machine.version("torch")

    @cached_property
    def plugin(self) -> str | None:
        """The version that is installed; None also where the device is in tree."""
        name = self.table.plugin.package if self.vendor.plugin else ""
        return self.machine.version(name) if name else None

    @cached_property
    def toolkit_folder(self) -> Path | None:
        """Where the toolkit is: where its variable says, else where it lies by default."""
        named = [self.machine.environment.get(name, "") for name in self.table.toolkit.variables]
        places = [self.path(name) for name in (*filter(None, named), *self.table.toolkit.folders)]
        return next((place for place in places if place.is_dir()), None)

    @cached_property
    def toolkit(self) -> str | None:
        """The toolkit's version, by its files, else by the vendor's command."""
        facts = self.table.toolkit
        names = [name.format(arch=self.machine.architecture) for name in facts.version_files]
        if self.toolkit_folder is not None:
            found = self._version([self.toolkit_folder / name for name in names], facts.version)
            if found:
                return found
        return self._said_by_smi(self.table.smi.toolkit)

    @cached_property
    def driver(self) -> str | None:
        """The driver's version, by its files, else by the vendor's command."""
        facts = self.table.driver
        found = self._version(map(self.path, facts.version_files), facts.version or r"(\S+)")
        return found or self._said_by_smi(self.table.smi.driver)

    def _version(self, files: Iterator[Path] | Sequence[Path] | map[Path], pattern: str) -> str | None:
        for file in files:
            with contextlib.suppress(OSError):
                found = re.search(pattern, file.read_text("utf-8", "replace")) if pattern else None
                if found:
                    return found[1]
        return None

    def _said_by_smi(self, pattern: str) -> str | None:
        found = re.search(pattern, self.smi.text) if pattern and self.smi is not None else None
        return found[1] if found else None

    @cached_property
    def smi_command(self) -> tuple[str, ...]:
        """The vendor's command that lists its devices."""
        return tuple((self.table.smi.command or self.vendor.smi).split())

    @cached_property
    def smi(self) -> Output | None:
        """What it answers; asked once."""
        return self.run(self.smi_command) if self.smi_command else None

    @cached_property
    def nodes(self) -> list[Path]:
        """The files of devices."""
        return self.files(self.table.devices.nodes)


def this_station(machine: Machine, vendor: Vendor, table: MachineTable) -> Station:
    """The one that we run on."""
    import socket

    return Station(
        machine=machine,
        vendor=vendor,
        table=table,
        python=f"{sys.version_info[0]}.{sys.version_info[1]}",
        hostname=socket.gethostname(),
        folder=_folder(),
        run=_run,
        package=_package,
        access=_access,
        address=_address,
        port_is_free=_port_is_free,
        program=_program,
    )


def _folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was removed under this process
        return Path("/")


def _run(command: Sequence[str]) -> Output | None:
    import subprocess

    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=SMI_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Output(124, "")
    except OSError:
        return None
    return Output(done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace"))


def _package(name: str) -> Path | None:
    from importlib.util import find_spec

    with contextlib.suppress(ImportError, ValueError):
        spec = find_spec(name.partition(".")[0])
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations)))
    return None


def _access(path: Path) -> Access:
    import grp

    try:
        found = path.stat()
    except OSError:
        return Access(False, "?", 0)
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    return Access(os.access(path, os.R_OK | os.W_OK), group, stat.S_IMODE(found.st_mode))


def _address(name: str) -> str | None:
    import socket

    try:
        return socket.gethostbyname(name)
    except OSError:
        return None


def _port_is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _program(name: str) -> str | None:
    import shutil

    return shutil.which(name)
