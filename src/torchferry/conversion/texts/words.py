"""What becomes of a word of CUDA's in a text: a device, a backend, a variable. The same for every sort of file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchferry.conversion.inference.evidence import Vocabulary
from torchferry.conversion.rules.backend_string import BACKEND_CHANGED, BACKENDS, UNKNOWN_BACKEND
from torchferry.conversion.rules.device_string import DEVICE_CHANGED, DEVICES
from torchferry.conversion.rules.environment import RENAMED, mapped_variable, why_not_renamed
from torchferry.conversion.target import Target
from torchferry.finding import Kind, Message, Wording
from torchferry.text import Text
from torchferry.vendors.model import SAME_VALUES_IN_SCRIPTS

_UNCLEAR = Message(
    Text("Value that may name a {noun}", "可能是{noun}的值"),
    why=Text("The name `{name}` does not say what it is for.", "名称 `{name}` 没有说明其用途。"),
    do=Text("If it is a {noun}, write `{new}`.", "若是{noun}，请改为 `{new}`。"),
)
_PORTABLE = Message(
    Text("Setting that names one {noun}", "固定了{noun}的设置"),
    why=Text("No name fits every machine.", "没有一个名称适合所有机器。"),
    do=Text(
        "Leave the setting out if the program chooses by itself (`torch.accelerator`), or set it where the "
        "program runs.",
        "若程序会自行选择（`torch.accelerator`），请去掉该设置；或在运行时指定。",
    ),
)
_TEMPLATE = Message(
    Text("Value filled in at run time", "运行时填入的值"),
    why=Text("`{what}` is filled in when the program runs.", "`{what}` 在程序运行时填入。"),
    do=Text("Check that `{new}` arrives here.", "请确认这里得到 `{new}`。"),
)
_NO_DEVICE = Message(
    Text("All GPUs hidden by an empty list or -1", "用空列表或 -1 隐藏所有 GPU"),
    why=Text(
        "No public source says how `{new}` hides all devices.", "没有公开资料说明 `{new}` 如何隐藏所有设备。"
    ),
    do=Text(
        "Try an empty `{new}` on the device, or choose the CPU in the program.",
        "请在设备上验证空的 `{new}`，或在程序中选择 CPU。",
    ),
)
_CARD = Message(
    Text("NVIDIA cards chosen by their names", "按名称选择 NVIDIA 的卡"),
    do=Text("Write the numbers of the devices into `{new}`.", "请在 `{new}` 中写设备编号。"),
)

_SOME_VENDOR = Text("another vendor", "其他厂商")

_INDEX = r":(?:\d+|\$\{?[\w.]+\}?|\{\{[^{}]*\}\})"  # a number, or what will be one
DEVICE_VALUE = re.compile(rf"cuda(?:{_INDEX})?(?:,\s*(?:cuda:\d+|cpu|\d+))*\Z")
BACKEND_VALUE = re.compile(r"(?:nccl|NCCL|(?:\w+:\w+,)*cuda:nccl(?:,\w+:\w+)*)\Z")
_CUDA = re.compile(r"(?<![\w.-])(?:cuda|nccl)(?![\w.-])", re.ASCII)
_TEMPLATED = re.compile(r"\$\{[^}]*\}|\{\{.*?\}\}|\{%.*?%\}|<[a-z_]+>")
# Words whose keys hold text for people, whatever else their names look like.
_PROSE_NAME = re.compile(r"(?i)^(?:comments?|commands?|descriptions?|help|doc|notes?|title|communit\w*)$")


@dataclass(frozen=True)
class Decision:
    """What to do with a value: for a change the whole new value."""

    kind: Kind
    message: Wording
    new: str = ""


def decide(target: Target, names: tuple[str, ...], value: str) -> Decision | None:
    """What becomes of the value of an option or key; `names` is its path, the nearest last. None: no word of CUDA's."""
    if not (DEVICE_VALUE.match(value) or BACKEND_VALUE.match(value)):
        return _decide_template(target, names, value)
    vocabulary = DEVICES if DEVICE_VALUE.match(value) else BACKENDS
    spelling = vocabulary.target_word(target)
    noun = vocabulary.noun
    if target.is_portable:
        return Decision(Kind.TODO, _PORTABLE.format(noun=noun))
    if not spelling:
        return Decision(Kind.TODO, UNKNOWN_BACKEND.format(company=target.vendor.company_name))
    backend = target.backend.word
    new = value.replace("nccl", backend).replace("NCCL", backend.upper())
    new = re.sub(r"\bcuda\b", target.device.word, new)
    if not (is_named(vocabulary, names) or (vocabulary is DEVICES and ":" in value)):
        name = names[-1] if names else "-"
        return Decision(Kind.TODO, _UNCLEAR.format(noun=noun, name=name, new=new))
    message = DEVICE_CHANGED if vocabulary is DEVICES else BACKEND_CHANGED.format(new=new)
    return Decision(Kind.CHANGE, message, new)


def is_named(vocabulary: Vocabulary, names: tuple[str, ...]) -> bool:
    """Whether the name of a value says what it is; `type`, `name` and the like leave that to the name around."""
    for name in reversed(names):
        plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.replace("-", "_")).lower()
        if _PROSE_NAME.match(plain):
            return False
        if vocabulary.name.search(plain):
            return True
        if not re.fullmatch(r"type|kind|name|value|default|choices|values|options|enum", plain):
            return False
    return False


def _decide_template(target: Target, names: tuple[str, ...], value: str) -> Decision | None:
    """`${oc.env:DEVICE,cuda}`: what arrives here is known only when the program runs."""
    match = _TEMPLATED.search(value)
    word = _CUDA.search(value)
    if match is None or word is None:
        return None
    vocabulary = DEVICES if word.group() == "cuda" else BACKENDS
    if not is_named(vocabulary, names):
        return None
    new = vocabulary.target_word(target) or "-"
    return Decision(Kind.TODO, _TEMPLATE.format(what=match.group(), new=new))


def decide_variable(target: Target, name: str, value: str | None = None) -> Decision:
    """What becomes of a variable of CUDA's or NCCL's; `value` where it is written out."""
    reason = why_not_renamed(target, name, SAME_VALUES_IN_SCRIPTS)
    if reason is not None:
        return Decision(*reason)
    new = mapped_variable(target.vendor, name) or ""
    if name == "CUDA_VISIBLE_DEVICES" and value is not None:
        if value in ("", "-1"):
            return Decision(Kind.TODO, _NO_DEVICE.format(new=new))
        if value.startswith(("GPU-", "MIG-")):
            return Decision(Kind.TODO, _CARD.format(new=new))
    return Decision(Kind.CHANGE, RENAMED.format(new=new), new)


def company(target: Target) -> Text:
    """Whose devices the target has, for a sentence."""
    return _SOME_VENDOR if target.is_portable else target.vendor.company_name
