"""What several processes, and several machines, need to find each other."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from torchferry.doctor.device.station import Station
from torchferry.doctor.model import Command, Reach, Result, Status
from torchferry.text import Text

ID = "network"
DEFAULT_PORT = 29500  # of torchrun
_RESOLVES = Text("{name} is {address}", "{name} 为 {address}")
_LOCAL = Text(
    "other machines that are told this address look at themselves: for several machines set MASTER_ADDR, and give this "
    "host its real address in /etc/hosts",
    "其他机器得到该地址后会连到自身：多机时请设置 MASTER_ADDR，并在 /etc/hosts 中写入真实地址",
)
_FINE = Text("collectives find this host by its name", "集合通信可按主机名找到本机")
_UNRESOLVED = Text("{name} has no address", "{name} 没有地址")
_UNRESOLVED_WHY = Text(
    "process groups look the host's name up and fail with 'host not found': add it to /etc/hosts",
    "进程组按主机名查找，会报 'host not found'：请写入 /etc/hosts",
)
_TAKEN = Text("port {port} is taken", "端口 {port} 已被占用")
_TAKEN_WHY = Text(
    "the first process can't listen there: end what an earlier run has left, or set MASTER_PORT",
    "首个进程无法监听：请结束以前运行遗留的进程，或设置 MASTER_PORT",
)
_FREE = Text("port {port} is free", "端口 {port} 空闲")
_FREE_WHY = Text("the first process listens there", "首个进程在此监听")
_NO_INTERFACE = Text("{value}: no such interface; there are {names}", "{value}：没有该网卡；现有 {names}")
_NO_INTERFACE_WHY = Text("collectives can't start with it", "集合通信无法启动")
_NO_ADDRESS = Text("{value}: is no address", "{value}：不是地址")
_INTERFACE = Text("an interface of this host", "本机网卡")
_NO_FILE = Text("not there", "不存在")
_NO_FILE_WHY = Text(
    "it holds the addresses of the cards' own network ports: needed for several machines, not for one",
    "其中是加速卡自身网口的地址：多机训练需要，单机不需要",
)


def check(station: Station) -> Iterator[Result]:
    """Results for the host's name, the port, the variables and the files that the vendor's collectives read."""
    yield _name(station)
    yield _port(station)
    yield from _interfaces(station)
    yield from _files(station)


def _name(station: Station) -> Result:
    name, address = station.hostname, station.address(station.hostname)
    if address is None:
        command = Command(f"sh -c 'echo \"127.0.1.1 {name}\" >> /etc/hosts'", Reach.ROOT)
        commands = (command,) if name.replace("-", "").replace(".", "").isalnum() else ()
        return Result(ID, "host name", Status.DOUBT, _UNRESOLVED.format(name=name), _UNRESOLVED_WHY, commands)
    found = _RESOLVES.format(name=name, address=address)
    if address.startswith("127."):
        return Result(ID, "host name", Status.INFO, found, _LOCAL)
    return Result(ID, "host name", Status.FINE, found, _FINE)


def _port(station: Station) -> Result:
    given = station.machine.environment.get("MASTER_PORT", "")
    port = int(given) if given.isascii() and given.isdecimal() and int(given) < 65536 else DEFAULT_PORT
    if station.port_is_free(port):
        return Result(ID, "port", Status.FINE, _FREE.format(port=port), _FREE_WHY)
    return Result(ID, "port", Status.DOUBT, _TAKEN.format(port=port), _TAKEN_WHY)


def _interfaces(station: Station) -> Iterator[Result]:
    names = [path.name for path in station.machine.paths("sys/class/net/*")]
    for variable in station.table.network.interface_variables:
        value = station.machine.environment.get(variable)
        if value is None:
            continue
        # a name, several, or with ^ and = in front all but them or exactly them
        asked = [part for part in value.lstrip("=^").split(",") if part]
        unknown = [part for part in asked if names and not any(name.startswith(part) for name in names)]
        if unknown and not value.startswith("^"):
            found = _NO_INTERFACE.format(value=value, names=", ".join(names))
            command = Command(f"unset {variable}", Reach.SHELL)
            yield Result(ID, variable, Status.DOUBT, found, _NO_INTERFACE_WHY, (command,))
        else:
            yield Result(ID, variable, Status.FINE, Text(value, value), _INTERFACE)
    for variable in station.table.network.address_variables:
        value = station.machine.environment.get(variable)
        if value is not None and not _is_address(value):
            yield Result(ID, variable, Status.DOUBT, _NO_ADDRESS.format(value=value), _NO_INTERFACE_WHY)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _files(station: Station) -> Iterator[Result]:
    for name in station.table.network.files:
        text = station.machine.read(name.lstrip("/"))
        if text is None:
            yield Result(ID, name, Status.INFO, _NO_FILE, _NO_FILE_WHY)
        else:
            lines = f"{len(text.splitlines())} lines"
            yield Result(ID, name, Status.FINE, Text(lines, f"{len(text.splitlines())} 行"), _NO_FILE_WHY)
