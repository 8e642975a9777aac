"""Runs a delivery's short training: on the vendor's device where its plugin is installed, else on a simulated one; or on the
vendor's own plugin, emulated."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.errors import FerryError
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import Delivery

if TYPE_CHECKING:
    from torchferry.launch.place import DeviceKind, Place

ID = "run"
SECONDS = 900
_LAST_LINES = 3
_RAN = Text("ran to its end on {where}", "在{where}上运行完毕")
_FAILED = Text("ended with exit code {code} on {where}: {lines}", "在{where}上以退出码 {code} 结束：{lines}")
_TOO_LONG = Text("did not end within {seconds} s", "{seconds} 秒内没有结束")
_SHORT = Text("a short training takes minutes at most", "短训练最多只应几分钟")
_WHERE = {  # by the kind of the device
    "real": Text("the device", "设备"),
    "simulated": Text("a simulated device", "模拟设备"),
    "emulated": Text("the vendor's own plugin, emulated", "仿真运行的厂商官方插件"),
}
_CANT = Text("could not be run: {problem}", "无法运行：{problem}")


def run_short_training(
    delivery: Delivery, vendor_paths: tuple[str, ...], emulate: bool = False
) -> CheckResult:
    """Run the test script, its output aside; the item says how it ended."""
    from torchferry.launch.place import Place
    from torchferry.launch.supervise import run_supervised, stop_if_told

    name = delivery.table.test
    script = delivery.root / name
    if not script.is_file():
        return CheckResult(ID, name, Status.MISSING, _CANT.format(problem=f"no {name}"))
    place = Place(_kind(delivery, emulate), delivery.vendor, vendor_paths, converted=True)
    try:
        environment = _environment(place)
    except FerryError as error:
        return CheckResult(ID, name, Status.DOUBT, _CANT.format(problem=str(error)))
    where = _WHERE[place.kind.value]
    # a training writes checkpoints and caches: they do not belong into a delivery
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        copy = Path(folder) / "delivery"
        shutil.copytree(delivery.root, copy, symlinks=True)
        command = ["bash", str(copy / name)]
        ending = run_supervised(command, environment, output, output, seconds=float(SECONDS))
        stop_if_told(ending)
        output.seek(0)
        printed = output.read().decode("utf-8", "replace")
    if ending.out_of_time:
        return CheckResult(ID, name, Status.MISSING, _TOO_LONG.format(seconds=SECONDS), _SHORT)
    if ending.exit_code:
        lines = " | ".join(line.strip() for line in printed.strip().splitlines()[-_LAST_LINES:])
        found = _FAILED.format(code=ending.exit_code, where=where, lines=lines)
        return CheckResult(ID, name, Status.MISSING, found)
    return CheckResult(ID, name, Status.FINE, _RAN.format(where=where))


def _kind(delivery: Delivery, emulate: bool) -> DeviceKind:
    from torchferry.launch.place import DeviceKind
    from torchferry.launch.plugin import is_to_be_simulated

    if emulate:
        return DeviceKind.EMULATED
    return DeviceKind.SIMULATED if is_to_be_simulated(delivery.vendor) else DeviceKind.REAL


def _environment(place: Place) -> dict[str, str]:
    from torchferry.launch.environment import environment_at
    from torchferry.launch.place import build_for

    folder = str(Path(sys.executable).parent)
    ours = {**os.environ, "PYTHON": sys.executable}
    ours["PATH"] = os.pathsep.join([folder, *filter(None, [ours.get("PATH")])])
    build_for(place)
    return environment_at(place, ours=ours)
