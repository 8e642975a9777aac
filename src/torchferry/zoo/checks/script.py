"""Whether there is a script that runs a short training."""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchferry.text import Text
from torchferry.zoo.delivery import PLACEHOLDER, TEST_SCRIPT, Delivery
from torchferry.zoo.model import Item, Status

ID = "script"
_ABSENT = Text("not there", "不存在")
_ABSENT_WHY = Text("a script that trains for a few steps and ends", "需要一个训练若干步后结束的脚本")
_LEFT = Text("what it starts is not filled in", "启动内容尚未填写")
_CLOSED = Text("is not executable", "没有可执行权限")
_CLOSED_WHY = Text("chmod +x {name}", "chmod +x {name}")
_FINE = Text("there; --run runs it", "已有；--run 会执行它")


def check(delivery: Delivery) -> Iterator[Item]:
    """One item."""
    text = delivery.read(TEST_SCRIPT)
    if text is None:
        yield Item(ID, TEST_SCRIPT, Status.MISSING, _ABSENT, _ABSENT_WHY)
    elif PLACEHOLDER in text:
        yield Item(ID, TEST_SCRIPT, Status.MISSING, _LEFT, _ABSENT_WHY)
    elif not os.access(delivery.root / TEST_SCRIPT, os.X_OK):
        yield Item(ID, TEST_SCRIPT, Status.DOUBT, _CLOSED, _CLOSED_WHY.format(name=TEST_SCRIPT))
    else:
        yield Item(ID, TEST_SCRIPT, Status.FINE, _FINE)
