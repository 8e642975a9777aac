"""What a check of a delivery finds."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from enum import Enum

from torchferry.text import Text
from torchferry.zoo import checks
from torchferry.zoo.delivery import Delivery


class Status(Enum):
    """The verdict on one thing, the worst first."""

    MISSING = "missing"  # the zoo's guide asks for it, or what is there is wrong
    DOUBT = "doubt"  # a reviewer will ask
    RECOMMENDED = "recommended"  # the guide does not ask for it, most models of the zoo have it
    NOTE = "note"
    FINE = "fine"


@dataclass(frozen=True)
class Item:
    """What one check says about one thing."""

    id: str  # of the check
    subject: str  # a file, a section, a requirement
    status: Status
    found: Text
    why: Text = Text("", "")  # what is asked for, and how to get there
    place: str = ""  # train.py:57


# Runs every check of a delivery.

_ORDER = list(Status)
_OF_ANY_FRAMEWORK = ("files", "layout", "licence", "readme")
_NOT_READ = Text("its programs were not read", "未读取其程序")
_NOT_READ_WHY = Text(
    "the rules for code, scripts and results are PyTorch's; whether the program uses the device, several processes and mixed "
    "precision is for you to check",
    "代码、脚本与结果的检查规则是针对 PyTorch 的；请自行检查程序是否使用了设备、多进程与混合精度",
)


@dataclass(frozen=True)
class Review:
    """What all checks say, the worst first."""

    delivery: Delivery
    items: tuple[Item, ...]

    def count(self, status: Status) -> int:
        """How many items have this status."""
        return sum(item.status is status for item in self.items)

    @property
    def is_complete(self) -> bool:
        return not self.count(Status.MISSING)

    @property
    def is_whole(self) -> bool:
        """Whether the program was looked at, too."""
        return self.delivery.is_read


def review(delivery: Delivery, more: tuple[Item, ...] = ()) -> Review:
    """All checks in turn, and items that were found otherwise."""
    items = list(more)
    for found in pkgutil.iter_modules(checks.__path__):
        if delivery.is_read or found.name in _OF_ANY_FRAMEWORK:
            items += importlib.import_module(f"{checks.__name__}.{found.name}").check(delivery)
    if not delivery.is_read:
        items.append(Item("code", delivery.place.framework, Status.NOTE, _NOT_READ, _NOT_READ_WHY))
    return Review(delivery, tuple(sorted(items, key=lambda item: _ORDER.index(item.status))))
