"""A machine with a device as checks see it: the host, the vendor's data, what its commands print."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

from torchferry.examination.host.machine import Machine
from torchferry.vendors.machine import MachineTable
from torchferry.vendors.model import Vendor

SMI_SECONDS = 15
_LONGEST = 1 << 20  # bytes of its output that are read
_USUAL_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class CommandOutput(NamedTuple):
    """What a command has answered."""

    code: int | None  # below 0: a signal ended it; None: it took too long
    text: str


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """Where a command lies: by PATH, but never in the folder in which the user works, then in the usual folders."""
    listed = [folder for folder in environment.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    for folder in dict.fromkeys((*listed, *_USUAL_FOLDERS)):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def run_command(
    command: Sequence[str], environment: Mapping[str, str], seconds: float = SMI_SECONDS
) -> CommandOutput | None:
    """What it answers; None: it can't be started."""
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd="/",  # Python would import what lies beside the user
                start_new_session=True,
            )
        except (OSError, ValueError):
            return None
        code = _wait(process, file, seconds)
        file.seek(0)
        return CommandOutput(code, decoded(file.read(_LONGEST)))


def _wait(process: subprocess.Popen[bytes], file: IO[bytes], seconds: float) -> int | None:
    """Its exit code. Where a driver hangs, not even a kill ends its command: such a process is left alone."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() >= deadline or os.fstat(file.fileno()).st_size > 16 * _LONGEST:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
            process.returncode = process.returncode or -signal.SIGKILL  # nobody is to wait for it any more
            return None
        time.sleep(0.01)
    return process.returncode


def decoded(data: bytes) -> str:
    """The text, in UTF-8 or as Chinese systems write it."""
    for encoding in ("utf-8", "gb18030"):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("utf-8", "replace")


TRIAL_SECONDS = 180  # the first import of a large plugin, and a context on each of sixteen devices
_NAME_SECONDS = 5
TRIAL = """
import sys, torch
plugin, device = sys.argv[1:3]
if plugin:
    __import__(plugin)
for number in range(getattr(torch, device).device_count()):
    tensor = torch.ones(4, device=f"{device}:{number}")
    assert (tensor + tensor).cpu().tolist() == [2.0] * 4
    print("computed", number, flush=True)
"""


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
    run: Callable[[Sequence[str]], CommandOutput | None]  # None: there is no such command
    package: Callable[[str], Path | None]  # folder of an installed package
    access: Callable[[Path], Access]
    address: Callable[[str], str | None]  # of a host's name
    port_is_free: Callable[[int], bool]
    program: Callable[[str], str | None]  # where a command lies
    interpreter: Path | None = None  # Python's own program
    # Computes on the devices; None: nobody asked for it.
    trial: Callable[[], CommandOutput | None] | None = None
    emulation: Callable[[], str | None] | None = None  # the plugin's version if it can run without a device

    def path(self, name: str) -> Path:
        """A path of the machine, below its root; a relative one begins where the user works."""
        return self.machine.root / name.lstrip("/") if name.startswith("/") else self.folder / name

    def shown(self, path: Path) -> str:
        """A path below the root as the machine's users know it."""
        with contextlib.suppress(ValueError):
            return f"/{path.relative_to(self.machine.root)}"
        return str(path)

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
    def plugin_files(self) -> list[Path]:
        """The compiled files of the plugin."""
        folder = self.package(self.vendor.plugin) if self.vendor.plugin else None
        if folder is None:
            return []
        return [file for pattern in self.table.plugin.libraries for file in sorted(folder.glob(pattern))]

    @cached_property
    def toolkit_folder(self) -> Path | None:
        """Where the toolkit is: where its variable says, else where it lies by default."""
        # os.path and not Path: what another user's home hides is not there, and no error
        named = [self.machine.environment.get(name, "") for name in self.table.toolkit.variables]
        places = [*map(self.path, filter(None, named)), *self.machine.files(self.table.toolkit.folders)]
        return next((place for place in places if os.path.isdir(place)), None)

    @cached_property
    def toolkit(self) -> str | None:
        """The toolkit's version, by its files, else by the vendor's command."""
        found = self._version(self.in_toolkit(self.table.toolkit.version_files), self.table.toolkit.version)
        return found or self._said_by_smi(self.table.smi.toolkit)

    @cached_property
    def toolkit_architecture(self) -> str:
        """The processor that the toolkit is for, where that is not this machine's; else nothing."""
        here = self.table.toolkit.version_files
        if any(map(os.path.exists, self.in_toolkit(here))):
            return ""
        files = [path for name in here if "{arch}" in name for path in self.in_toolkit([name], "*")]
        return next((path.parent.name.partition("-")[0] for path in files), "")

    def in_toolkit(self, names: Sequence[str], architecture: str = "") -> list[Path]:
        """Files below the toolkit's folder; with * as the processor those that are there."""
        folder = self.toolkit_folder
        if folder is None:
            return []
        filled = [name.format(arch=architecture or self.machine.architecture) for name in names]
        if architecture != "*":
            return [folder / name for name in filled]
        with contextlib.suppress(OSError):
            return sorted(path for name in filled for path in folder.glob(name))
        return []

    @cached_property
    def driver(self) -> str | None:
        """The driver's version, by its files, else by the vendor's command."""
        facts = self.table.driver
        found = self._version(map(self.path, facts.version_files), facts.version or r"(\S+)")
        return found or self._said_by_smi(self.table.smi.driver)

    @cached_property
    def firmware(self) -> str | None:
        """The version of the cards' firmware."""
        facts = self.table.driver
        return self._version(map(self.path, facts.firmware_files), facts.firmware)

    @cached_property
    def firmware_spans(self) -> str | None:
        """The firmware that the driver's own files say it goes with: [7.0.0,7.7.99],[...]."""
        facts = self.table.driver
        return self._version(map(self.path, facts.version_files), facts.firmware_spans)

    def _version(self, files: Iterable[Path], pattern: str) -> str | None:
        for file in files:
            with contextlib.suppress(OSError, ValueError):
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
    def smi(self) -> CommandOutput | None:
        """What it answers; asked once."""
        return self.run(self.smi_command) if self.smi_command else None

    @cached_property
    def nodes(self) -> list[Path]:
        """The device files that are there."""
        return self.machine.files(self.table.devices.nodes)


def this_station(
    machine: Machine, vendor: Vendor, table: MachineTable, *, with_trial: bool = False
) -> Station:
    """The one that we run on."""
    import socket

    program = [sys.executable, "-c", TRIAL, vendor.plugin, vendor.device_type]
    environment = machine.environment
    folder = Path("/")
    with contextlib.suppress(FileNotFoundError):  # it was removed under this process
        folder = Path.cwd()

    def run(command: Sequence[str]) -> CommandOutput | None:
        path = find_program(command[0], environment)
        return run_command([path, *command[1:]], environment) if path else None

    def version_set_up() -> str | None:
        """None if programs could not run on the emulated device at once."""
        from torchferry.emulate import build, plugins

        plugin = plugins.found(vendor) if build.is_set_up(vendor) else None
        return plugin.version if plugin is not None else None

    return Station(
        machine=machine,
        vendor=vendor,
        table=table,
        python=f"{sys.version_info[0]}.{sys.version_info[1]}",
        hostname=socket.gethostname(),
        folder=folder,
        run=run,
        package=_package,
        access=_access,
        address=_address,
        port_is_free=_port_is_free,
        program=lambda name: find_program(name, environment),
        interpreter=Path(sys.executable) if sys.executable else None,
        trial=(lambda: run_command(program, environment, TRIAL_SECONDS)) if with_trial else None,
        emulation=version_set_up,
    )


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
    """Its address; a name server that does not answer may keep us waiting for minutes, so nobody waits for the thread."""
    import socket
    from queue import Empty, SimpleQueue
    from threading import Thread

    found: SimpleQueue[str] = SimpleQueue()

    def ask() -> None:
        with contextlib.suppress(OSError, UnicodeError):
            found.put(socket.gethostbyname(name))
            return
        found.put("")

    Thread(target=ask, daemon=True).start()
    try:
        return found.get(timeout=_NAME_SECONDS) or None
    except Empty:
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


def library_path(folders: Sequence[str]) -> str:
    """The setting with which the loader looks in these folders first."""
    listed = shlex.quote(":".join(folders))
    return f'export LD_LIBRARY_PATH={listed}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
