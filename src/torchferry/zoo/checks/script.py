"""Whether there is a script that runs a short training, and one that starts a training as the zoo's others do."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator

from torchferry.text import Text
from torchferry.zoo.delivery import PLACEHOLDER, Delivery
from torchferry.zoo.model import Item, Status

ID = "script"
_ABSENT = Text("not there", "不存在")
_ABSENT_WHY = Text("a script that trains for a few steps and ends", "需要一个训练若干步后结束的脚本")
_LEFT = Text("what it starts is not filled in", "启动内容尚未填写")
_CLOSED = Text("is not executable", "没有可执行权限")
_CLOSED_WHY = Text("chmod +x {name}", "chmod +x {name}")
_WINDOWS = Text("has line ends of Windows, on which bash stumbles", "含 Windows 换行符，bash 无法运行")
_WINDOWS_WHY = Text("sed -i 's/\\r$//' {name}", "sed -i 's/\\r$//' {name}")
_FINE = Text("there; --run runs it", "已有；--run 会执行它")
_NO_LAUNCHER = Text("no {folder}/run_*.py", "没有 {folder}/run_*.py")
_LAUNCHER_WHY = Text(
    "the zoo's models are started by one, with the same options for all: `ferry zoo new` makes it",
    "模型库的模型都由它以统一的参数启动：`ferry zoo new` 会生成",
)


def check(delivery: Delivery) -> Iterator[Item]:
    """One item, or two."""
    name = delivery.table.test
    text = delivery.read(name)
    if text is None:
        yield Item(ID, name, Status.MISSING, _ABSENT, _ABSENT_WHY)
    elif PLACEHOLDER in text:
        yield Item(ID, name, Status.MISSING, _LEFT, _ABSENT_WHY)
    elif b"\r\n" in (delivery.root / name).read_bytes():
        yield Item(ID, name, Status.MISSING, _WINDOWS, _WINDOWS_WHY.format(name=name))
    elif not os.access(delivery.root / name, os.X_OK):
        yield Item(ID, name, Status.DOUBT, _CLOSED, _CLOSED_WHY.format(name=name))
    else:
        yield Item(ID, name, Status.FINE, _FINE)
    folder = delivery.table.run_folder
    launchers = fnmatch.filter(delivery.files, f"{folder}/run_*.py")
    if not launchers:
        yield Item(ID, f"{folder}/run_*.py", Status.DOUBT, _NO_LAUNCHER.format(folder=folder), _LAUNCHER_WHY)
    for each in launchers:
        if PLACEHOLDER in (delivery.read(each) or ""):
            yield Item(ID, each, Status.MISSING, _LEFT, _ABSENT_WHY)
