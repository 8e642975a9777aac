"""A verdict about a string, with the reason that the report shows, and where its value goes from there."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.convert.inference.evidence import Verdict
from torchferry.convert.inference.slots import Slot
from torchferry.text import Text

IN_MESSAGE = Text("part of a message", "是提示信息的一部分")
IS_KEY = Text("a key: renaming it would break what was stored under it", "是键名：改名会使已保存的内容失效")
IS_ATTRIBUTE = Text("the name of an attribute", "是属性名")
IS_PATH = Text("part of a file name", "是文件名的一部分")
ALREADY_THERE = Text("the target is listed beside it already", "目标设备已列在旁边")
IS_PROSE = Text("text on its own", "是独立的文本")
NO_CLUE = Text("nothing around it says what it is for", "上下文无法说明其用途")
DICT_KEY = Text(
    "a dictionary key: rename it only if it is looked up by {noun}", "是字典键：仅当按{noun}查找时才应改名"
)
_LEFT = Text("left as it is: {reason}", "保持不变：{reason}")


@dataclass(frozen=True)
class Role:
    """A verdict and why; the slots are for those who want to follow the value where its place does not tell."""

    verdict: Verdict
    reason: Text = Text("", "")
    slots: tuple[Slot, ...] = ()  # what the value is put into
    peers: tuple[Slot, ...] = ()  # what it is compared with

    @property
    def is_prose(self) -> bool:
        """Whether the string is for people to read: nothing to say about it."""
        return self.reason in (IN_MESSAGE, IS_PROSE)


def left_because(role: Role) -> Text:
    """The remark about a string that stays."""
    return _LEFT.format(reason=role.reason)
