"""What several processes, and several machines, need to find each other."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.report.safe import shortened
from torchferry.text import Text

ID = "network"
DEFAULT_PORT = 29500  # of torchrun
_RESOLVES = Text("{name} is {address}", "{name} 为 {address}")
_LOCAL = Text(
    "other machines that receive this address connect to themselves; for several machines set "
    "MASTER_ADDR, and give this host its real address in /etc/hosts",
    "其他机器得到该地址后会连到自身；多机时请设置 MASTER_ADDR，并在 /etc/hosts 中写入真实地址",
)
_FINE = Text("collectives find this host by its name", "集合通信可按主机名找到本机")
_UNRESOLVED = Text("{name} has no address", "{name} 没有地址")
_UNRESOLVED_WHY = Text(
    "process groups look up the host name and fail with 'host not found'; add it to /etc/hosts",
    "进程组按主机名查找，会报 'host not found'；请写入 /etc/hosts",
)
_MASTER_WHY = Text(
    "all processes connect to it and time out; give an address that every machine can reach",
    "所有进程都会连接它并超时；请填写各机器均可到达的地址",
)
_TAKEN = Text("port {port} is in use", "端口 {port} 已被占用")
_TAKEN_WHY = Text(
    "the first process can't listen there; end what an earlier run has left behind, or set MASTER_PORT",
    "首个进程无法监听；请结束以前运行遗留的进程，或设置 MASTER_PORT",
)
_NO_PORT = Text("{value}: not a port", "{value}：不是端口")
_NO_PORT_WHY = Text("it must be a number from 1 to 65535", "必须是 1 到 65535 的数字")
_FREE = Text("port {port} is free", "端口 {port} 空闲")
_FREE_WHY = Text("the first process listens there", "首个进程在此监听")
_NO_INTERFACE = Text(
    "{value}: no such interface; choose one of {names}", "{value}：没有该网卡；请从 {names} 中选择"
)
_NO_INTERFACE_WHY = Text("collectives can't start with it", "集合通信无法启动")
_NO_ADDRESS = Text("{value}: not an address", "{value}：不是地址")
_INTERFACE = Text("an interface of this host", "本机网卡")
_NO_FILE = Text("does not exist", "不存在")
_FILE_WHY = Text(
    "it holds the addresses of the cards' own network ports, which only training on several machines needs",
    "其中是卡自身网口的地址，只有多机训练才需要",
)
_LINES = Text("{count} lines", "{count} 行")
_CARDS = Text("addresses for {count} of {all} cards", "{all} 张卡中 {count} 张有地址")
_NO_JSON = Text("{value}: {fault}", "{value}：{fault}")
_UNREAD = Text("not a readable file", "不是可读的文件")
_MALFORMED = Text("not valid JSON ({error})", "不是合法的 JSON（{error}）")
_JSON_WHY = Text(
    "collectives read it at startup and fail; correct it, or unset the variable",
    "集合通信启动时读取它并失败；请改正，或取消该变量",
)
_JSON = Text("a JSON file", "JSON 文件")
_RANGE = Text(
    "{first}-{last}, in the range that the system assigns to programs", "{first}-{last}，系统会分配给其他程序"
)
_RANGE_WHY = Text(
    "hosts connect there: another program may get one of these ports first, and collectives then "
    "fail to bind; reserve them on machines that train together",
    "各主机在此连接：其他程序可能先占用，集合通信会绑定失败；多机训练的机器请预留这些端口",
)


def check(station: Station) -> Iterator[CheckResult]:
    """Results for the host's name, ports, the variables and the files that the vendor's collectives read."""
    yield _name(station)
    master = station.machine.environment.get("MASTER_ADDR", "")
    if master and not _is_address(master) and station.address(master) is None:
        yield CheckResult(ID, "MASTER_ADDR", Status.DOUBT, _UNRESOLVED.format(name=master), _MASTER_WHY)
    yield _port(station)
    yield from _reserved(station)
    yield from _interfaces(station)
    yield from _json_files(station)
    yield from _files(station)


def _name(station: Station) -> CheckResult:
    name, address = station.hostname, station.address(station.hostname)
    if address is None:
        command = Command(f"sh -c 'echo \"127.0.1.1 {name}\" >> /etc/hosts'", Reach.ROOT)
        commands = (command,) if re.fullmatch(r"[A-Za-z0-9.-]+", name) else ()
        found = _UNRESOLVED.format(name=name)
        return CheckResult(ID, "host name", Status.DOUBT, found, _UNRESOLVED_WHY, commands)
    found = _RESOLVES.format(name=name, address=address)
    if address.startswith("127."):
        return CheckResult(ID, "host name", Status.INFO, found, _LOCAL)
    return CheckResult(ID, "host name", Status.FINE, found, _FINE)


def _port(station: Station) -> CheckResult:
    given = station.machine.environment.get("MASTER_PORT", "")
    if given and not (re.fullmatch(r"[0-9]{1,5}", given) and 0 < int(given) < 65536):
        return CheckResult(ID, "MASTER_PORT", Status.DOUBT, _NO_PORT.format(value=given), _NO_PORT_WHY)
    port = int(given or DEFAULT_PORT)
    if station.port_is_free(port):
        return CheckResult(ID, "port", Status.FINE, _FREE.format(port=port), _FREE_WHY)
    return CheckResult(ID, "port", Status.DOUBT, _TAKEN.format(port=port), _TAKEN_WHY)


def _reserved(station: Station) -> Iterator[CheckResult]:
    """Ports of the vendor's collectives that the system may hand out to any other program."""
    facts, machine = station.table.network, station.machine
    given = machine.environment.get(facts.port_variable, "") if facts.port_variable else ""
    first = int(given) if re.fullmatch(r"[0-9]{1,5}", given) else facts.port
    handed_out = (machine.read("proc/sys/net/ipv4/ip_local_port_range") or "").split()
    if not first or len(handed_out) != 2 or not all(word.isdecimal() for word in handed_out):
        return
    last = first + facts.port_count - 1
    # 60000-60015,7000 as the system writes ports.
    texts = (machine.read("proc/sys/net/ipv4/ip_local_reserved_ports") or "").split(",")
    spans = filter(None, (re.fullmatch(r"(\d+)(?:-(\d+))?", text.strip()) for text in texts))
    reserved = [(int(span[1]), int(span[2] or span[1])) for span in spans]
    if last < int(handed_out[0]) or first > int(handed_out[1]):
        return
    if not any(low <= first and last <= high for low, high in reserved):
        command = Command(f"sysctl -w net.ipv4.ip_local_reserved_ports={first}-{last}", Reach.ROOT)
        found = _RANGE.format(first=first, last=last)
        yield CheckResult(ID, "ports", Status.INFO, found, _RANGE_WHY, (command,))


def _interfaces(station: Station) -> Iterator[CheckResult]:
    names = [path.name for path in station.machine.paths("sys/class/net/*")]
    for variable in station.table.network.interface_variables:
        value = station.machine.environment.get(variable)
        if value is None:
            continue
        # a name or the beginning of one, several of them; after = exactly these, after ^ all but these
        is_exact = value.lstrip("^").startswith("=")
        asked = [part for part in value.lstrip("=^").split(",") if part]
        known = [
            part
            for part in asked
            if part in names or (not is_exact and any(n.startswith(part) for n in names))
        ]
        if names and (known != asked or not asked) and not value.startswith("^"):
            found = _NO_INTERFACE.format(value=value, names=", ".join(names))
            command = Command(f"unset {variable}", Reach.SHELL)
            yield CheckResult(ID, variable, Status.DOUBT, found, _NO_INTERFACE_WHY, (command,))
        else:
            yield CheckResult(ID, variable, Status.FINE, Text(value, value), _INTERFACE)
    for variable in station.table.network.address_variables:
        value = station.machine.environment.get(variable)
        if value is not None and not _is_address(value):
            yield CheckResult(ID, variable, Status.DOUBT, _NO_ADDRESS.format(value=value), _NO_INTERFACE_WHY)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _json_files(station: Station) -> Iterator[CheckResult]:
    for variable in station.table.network.json_variables:
        value = station.machine.environment.get(variable)
        if not value:
            continue
        try:
            json.loads(station.path(value).read_text("utf-8"))
        except OSError:
            fault = _UNREAD
        except (ValueError, RecursionError) as error:
            fault = _MALFORMED.format(error=shortened(str(error), 80))
        else:
            yield CheckResult(ID, variable, Status.FINE, Text(value, value), _JSON)
            continue
        command = Command(f"unset {variable}", Reach.SHELL)
        found = _NO_JSON.format(value=value, fault=fault)
        yield CheckResult(ID, variable, Status.DOUBT, found, _JSON_WHY, (command,))


def _files(station: Station) -> Iterator[CheckResult]:
    pattern = station.table.network.card_addresses
    for name in station.table.network.files:
        text = station.machine.read(name.lstrip("/"))
        if text is None:
            yield CheckResult(ID, name, Status.INFO, _NO_FILE, _FILE_WHY)
            continue
        with_address, cards = len(set(re.findall(pattern, text))) if pattern else 0, len(station.nodes)
        if pattern and with_address < cards:
            found = _CARDS.format(count=with_address, all=cards)
            yield CheckResult(ID, name, Status.INFO, found, _FILE_WHY)
        else:
            yield CheckResult(ID, name, Status.FINE, _LINES.format(count=len(text.splitlines())), _FILE_WHY)
