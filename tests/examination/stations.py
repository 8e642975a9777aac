"""Machines with a device for tests: a server on which nothing is wrong, and shared libraries that only have a head."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.examination.making import PLENTY
from torchferry.examination.device.station import Access, CommandOutput, Station
from torchferry.examination.host.machine import Machine, Space
from torchferry.vendors.machine import load_machine
from torchferry.vendors.registry import get_vendor

CANN = "usr/local/Ascend/ascend-toolkit/latest"
CANN_LIBRARIES = (
    "libhccl.so",
    "libascendcl.so",
    "libacl_op_compiler.so",
    "libge_runner.so",
    "libgraph.so",
)
NPU_SMI = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.2.0                   Version: 25.2.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 90.4        32                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3406 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | OK            | 92.9        33                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3406 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| No running processes found in NPU 0                                                            |
+===========================+===============+====================================================+
"""
CNMON = """\
+------------------------------------------------------------------------------+
| CNMON v5.10.22                                               Driver v5.10.22 |
+-------------------------------+----------------------+-----------------------+
| Card  VF  Name       Firmware |               Bus-Id | Util        Ecc-Error |
| Fan   Temp      Pwr:Usage/Cap |         Memory-Usage | Mode     Compute-Mode |
|===============================+======================+=======================|
| 0     /   MLU370-X8    v1.1.6 |         0000:13:00.0 | 0%                  0 |
|  0%   28C        107 W/ 250 W |     0 MiB/ 20638 MiB | FULL          Default |
+-------------------------------+----------------------+-----------------------+
"""
OLD_CNMON = """\
| CNMON v4.20.11                                                               |
+-------------------------------+----------------------+-----------------------+
| Card  VF  Name       Firmware | Inited        Driver | Util        Ecc-Error |
|===============================+======================+=======================|
| 0     /   MLU370-X4    v1.1.6 | On          v4.20.11 | 0%          N/A       |
|  0%   32C         30 W/ 150 W |     0 MiB/ 23308 MiB | 10240 MiB/1048576 MiB |
"""
TWO_CHIPS = """\
| npu-smi 24.1.rc3.7               Version: 24.1.rc3.7                                           |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 178.9       36                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3412 / 65536         |
+------------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -           36                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 0           0    / 0          3189 / 65536         |
"""
TECO_SMI = """\
+-----------------------------------------------------------------------------+
|  TCML: 1.15.0        SDAADriver: 3.2.0          SDAARuntime: 3.2.0          |
|-------------------------------+----------------------+----------------------|
| Index  Name                   | Bus-Id               | Health      Volatile |
|        Temp          Pwr Usage|          Memory-Usage|             SPE-Util |
|=============================================================================|
|   0    TECO_AICARD_01         | 00000000:01:00.0     | OK                   |
|        35C                90W |        0MB / 15296MB |                   0% |
+-------------------------------+----------------------+----------------------+
| Processes:                                                                  |
|  Tcaicard     PID      Process name                            Memory Usage |
|=============================================================================|
|     0       76262      python train.py                              165 MB |
+-----------------------------------------------------------------------------+
"""
GMI = """\
---------------------------------------------------------------------
    mthreads-gmi:2.4.1           Driver Version:5.1.0-server
---------------------------------------------------------------------
ID   Name                 |PCIe                |%GPU  Mem
     Device Type   Perf   |Pcie Lane Width     |Temp  MPC Capable
+-------------------------------------------------------------------+
0    MTT S5000            |00000000:18:00.0    |0%    0MiB(81920MiB)
     Physical      P0     |16x(16x)            |48C   YES
---------------------------------------------------------------------
Processes:
ID   PID       Process name                               GPU Memory
+-------------------------------------------------------------------+
0    1123      python train.py                                450MiB
"""


def shared_object(
    needed: Sequence[str] = (),
    runpath: str = "",
    machine: int = 62,
    *,
    rpath: str = "",
    wants: Sequence[tuple[str, str]] = (),
    has: Sequence[str] = (),
    names: Sequence[str] = (),
) -> bytes:
    """The head of an ELF file of 64 bits: one loaded segment, a dynamic section, records of versions, and strings."""
    strings = bytearray(b"\0")

    def place(text: str) -> int:
        strings.extend(text.encode() + b"\0")
        return len(strings) - len(text.encode()) - 1

    entries = [(1, place(name)) for name in needed]
    entries += [(29, place(runpath))] if runpath else []
    entries += [(15, place(rpath))] if rpath else []
    wanted = b"".join(
        struct.pack("<HHIII", 1, 1, place(library), 16, 32)
        + struct.pack("<IHHII", 0, 0, 2, place(version), 0)
        for library, version in wants
    )
    defined = b"".join(
        struct.pack("<HHHHIII", 1, 0, 2, 1, 0, 20, 28) + struct.pack("<II", place(version), 0)
        for version in has
    )
    for name in names:
        place(name)
    start = 64 + 2 * 56
    dynamic_size = 16 * (len(entries) + 7)
    versions = start + dynamic_size
    text = versions + len(wanted) + len(defined)
    entries += [(0x6FFFFFFE, versions), (0x6FFFFFFF, len(wants))]
    entries += [(0x6FFFFFFC, versions + len(wanted)), (0x6FFFFFFD, len(has))]
    entries += [(5, text), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    total = text + len(strings)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    segments = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, total, total, 4096)
    segments += struct.pack("<IIQQQQQQ", 2, 6, start, start, start, dynamic_size, dynamic_size, 8)
    return head + segments + dynamic + wanted + defined + bytes(strings)


def put(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)


def ascend_files() -> dict[str, str | bytes]:
    """A server with two cards, CANN 8.5.0 and its script, and the plugin."""
    libraries = {f"{CANN}/lib64/{name}": shared_object() for name in CANN_LIBRARIES}
    torch = {f"site/torch/lib/{name}": shared_object() for name in ("libtorch.so", "libc10.so")}
    return {
        "dev/davinci0": "",
        "dev/davinci1": "",
        "dev/davinci_manager": "",
        "dev/devmm_svm": "",
        "dev/hisi_hdc": "",
        "usr/local/Ascend/driver/version.info": "Version=25.2.0\ncompatible_version_fw=[6.4.0,6.4.99],[7.0.0,7.7.99]\n",
        "usr/local/Ascend/firmware/version.info": "Version=7.7.0.1.231\npackage_version=25.2.0\n",
        f"{CANN}/x86_64-linux/ascend_toolkit_install.info": "package_name=Ascend-cann-toolkit\nversion=8.5.0\n",
        f"{CANN}/x86_64-linux/ascend_ops_install.info": "version=8.5.0\n",
        f"{CANN}/opp/version.info": "",
        "usr/local/Ascend/ascend-toolkit/set_env.sh": "export ASCEND_HOME_PATH=...\n",
        "usr/lib/libc.so.6": shared_object(),
        "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
        "etc/ld.so.conf.d/local.conf": "/usr/local/lib # ours\n",
        "etc/hccn.conf": "address_0=192.168.1.1\n",
        "sys/class/net/eth0": "",
        "proc/42/comm": "python\n",
        **libraries,
        **torch,
        "site/torch_npu/_C.cpython-311-x86_64-linux-gnu.so": shared_object(
            ["libtorch_npu.so", "libc10.so", "libhccl.so", "libc.so.6"], "$ORIGIN/lib"
        ),
        "site/torch_npu/lib/libtorch_npu.so": shared_object([*CANN_LIBRARIES, "libtorch.so"], "$ORIGIN"),
    }


ASCEND_VARIABLES = {
    "ASCEND_HOME_PATH": f"/{CANN}",
    "ASCEND_OPP_PATH": f"/{CANN}/opp",
    "LD_LIBRARY_PATH": f"/{CANN}/lib64",
}
CANN_PACKAGES = ("attrs", "numpy", "decorator", "sympy", "cffi", "pyyaml", "psutil", "protobuf", "scipy")
ASCEND_PACKAGES = {
    **dict.fromkeys(CANN_PACKAGES, "1.0"),
    "torch": "2.9.0+cpu",
    "torch-npu": "2.9.0",
    "h5py": "3.12",
    "msgspec": "0.19",
}


def station(
    root: Path,
    vendor: str = "ascend",
    *,
    environment: Mapping[str, str] | None = None,
    packages: Mapping[str, str] | None = None,
    smi: CommandOutput | None = None,
    architecture: str = "x86_64",
    python: str = "3.11",
    space: Space | None = PLENTY,
    access: Callable[[Path], Access] = lambda path: Access(True, "HwHiAiUser", 0o660),
    address: str | None = "10.0.0.5",
    taken_ports: Sequence[int] = (),
    interpreter: Path | None = None,
    trial: CommandOutput | None = None,
    writable: Callable[[Path], bool] = lambda path: True,
) -> Station:
    """A machine whose files lie below the root."""
    installed = ASCEND_PACKAGES if packages is None else packages
    machine = Machine(
        root,
        architecture,
        ASCEND_VARIABLES if environment is None else environment,
        frozenset(range(8)),
        version=installed.get,
        space=lambda path: space,
        writable=writable,
    )
    found = get_vendor(vendor)

    def package(name: str) -> Path | None:
        folder = root / "site" / name
        return folder if folder.is_dir() else None

    def run(command: Sequence[str]) -> CommandOutput | None:
        return CommandOutput(0, "g++ 12.2.0\n") if command[0].endswith("g++") else smi

    return Station(
        machine,
        found,
        load_machine(Path(found.folder)),
        python,
        "trainer",
        root,
        run,
        package,
        access,
        lambda name: address,
        lambda port: port not in taken_ports,
        lambda name: "/usr/bin/g++" if name == "g++" else None,
        interpreter,
        (lambda: trial) if trial else None,
    )
