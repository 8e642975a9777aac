"""Whether there is a script that starts the training, as the models of the zoo have it in one form or another."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator

from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import PLACEHOLDER, Delivery

ID = "script"
_ABSENT = Text("missing", "不存在")
_ABSENT_WHY = Text(
    "models of the zoo have a script that starts training, such as {forms}; `ferry zoo new` creates it",
    "模型库的模型都有启动训练的脚本，如 {forms}；`ferry zoo new` 会生成",
)
_LEFT_WHY = Text("describe how to start the training", "请写明如何启动训练")
_THERE = Text("exists", "已有")
_LEFT = Text("the command is not filled in", "启动内容尚未填写")
_CLOSED = Text("is not executable", "没有可执行权限")
_CLOSED_WHY = Text("chmod +x {name}", "chmod +x {name}")
_WINDOWS = Text("has Windows line endings, which bash can't run", "含 Windows 换行符，bash 无法运行")
_WINDOWS_WHY = Text("sed -i 's/\\r$//' {name}", "sed -i 's/\\r$//' {name}")
_FINE = Text("exists; --run runs it", "已有；--run 会执行它")


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """One item for each script that starts a training, or one that there is none."""
    found = [name for form in delivery.table.start_scripts for name in fnmatch.filter(delivery.files, form)]
    if not found:
        forms = ", ".join(delivery.table.start_scripts)
        yield CheckResult(
            ID, delivery.table.start_scripts[0], Status.RECOMMENDED, _ABSENT, _ABSENT_WHY.format(forms=forms)
        )
    for name in dict.fromkeys(found):
        path, is_shell, is_test = delivery.root / name, name.endswith(".sh"), name == delivery.table.test
        if PLACEHOLDER in (delivery.read(name) or ""):
            yield CheckResult(ID, name, Status.MISSING, _LEFT, _LEFT_WHY)
        elif is_shell and b"\r\n" in path.read_bytes():
            yield CheckResult(ID, name, Status.MISSING, _WINDOWS, _WINDOWS_WHY.format(name=name))
        elif is_shell and is_test and not os.access(path, os.X_OK):
            yield CheckResult(ID, name, Status.DOUBT, _CLOSED, _CLOSED_WHY.format(name=name))
        else:
            yield CheckResult(ID, name, Status.FINE, _FINE if is_shell and is_test else _THERE)
