"""What code is converted to: a vendor's device, or device-agnostic torch code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from torchferry.finding import Message, Severity
from torchferry.text import Text
from torchferry.vendors.model import Api, Replacement, Support, Vendor
from torchferry.vendors.phrases import phrase

# Methods asked of a class, not of an object: what takes their place is not one name.
CLASS_METHODS = (
    "torch.Tensor.cuda",
    "torch.Tensor.is_cuda",
    "torch.UntypedStorage.cuda",
    "torch.UntypedStorage.is_cuda",
    "torch.nn.Module.cuda",
    "torch.nn.utils.rnn.PackedSequence.cuda",
    "torch.nn.utils.rnn.PackedSequence.is_cuda",
)


@dataclass(frozen=True)
class Spelling:
    """How a device type or a backend is written: as a word inside strings, or as an expression in their place."""

    word: str = ""
    expression: str = ""

    @property
    def code(self) -> str:
        """As it is written in code: the word in quotes, or the expression."""
        return f'"{self.word}"' if self.word else self.expression

    @property
    def shown(self) -> str:
        """As a message names it."""
        return self.word or self.expression


@dataclass(frozen=True)
class Helper:
    """A module that the conversion adds to the project, and through which converted code reaches its device."""

    name: str
    vendor: Vendor  # as its own data describes it
    data: bytes
    # By file: how it imports the module, if not by name; and the folder of the module that it imports.
    imports: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    def line(self, path: str) -> str:
        """The statement by which a file imports the module."""
        return self.imports.get(path, f"import {self.name}")

    def module(self, path: str) -> str:
        """The module's dotted name in a file's imports, with leading dots if it is relative."""
        words = self.line(path).split()
        package = words[1] if words[0] == "from" else ""
        joint = "." if package and not package.endswith(".") else ""
        return f"{package}{joint}{self.name}"


@dataclass(frozen=True)
class Target:
    """The answers that rules need. A vendor's come from its data, the portable ones from `convert.portable`."""

    vendor: Vendor
    device: Spelling
    backend: Spelling
    prelude: str  # the line that a converted module needs, "" if none
    prelude_module: str  # the module that this line imports, "" if it imports none
    prelude_name: str  # the name that this line defines, "" if none
    unlisted_module: str  # where torch.cuda names that no table lists are looked for
    unlisted_support: Support  # and how sure it is that they are there
    helper: Helper | None = None
    lightning: Helper | None = None  # the module that teaches PyTorch Lightning the device

    @property
    def name(self) -> str:
        return self.vendor.name

    @property
    def is_portable(self) -> bool:
        """Whether devices are spelled by expressions that are evaluated where the program runs."""
        return bool(self.device.expression)

    def around_place(self, argument: str) -> tuple[str, str]:
        """What to write before and behind the argument of .cuda(), so that .to() takes it: an index, a device, None."""
        device = self.device.expression
        if self.helper:
            return f"{self.helper.name}.place(", ")"
        return "", f' if {argument} is not None and {device} != "cpu" else {device}'

    def around_ids(self) -> tuple[str, str]:
        """What to write before and behind device ids, so that there are none where the program runs on the CPU."""
        if self.helper:
            return f"{self.helper.name}.unless_cpu(", ")"
        return "", f' if {self.device.expression} != "cpu" else None'

    def prelude_of(self, path: str) -> str:
        """The line that a converted file needs."""
        return self.helper.line(path) if self.helper else self.prelude

    def api(self, name: str) -> Api:
        """What became of a CUDA API."""
        return self.vendor.api(name)


def vendor_target(vendor: Vendor) -> Target:
    """The target that a vendor's data describes."""
    return Target(
        vendor=vendor,
        device=Spelling(word=vendor.device_type),
        backend=Spelling(word=vendor.dist_backend),
        prelude=f"import {vendor.plugin}" if vendor.plugin else "",
        prelude_module=vendor.plugin,
        prelude_name="",
        unlisted_module=vendor.torch_module,
        unlisted_support=Support.UNKNOWN,
    )


# What a vendor offers instead of a CUDA-only library, as words for a report.

_USE = Text("Use instead: {use}.", "请改用：{use}。")
_NOTHING = Text(
    "No replacement for {company} is known: leave the feature out, or write it with PyTorch operators.",
    "{company} 没有已知的替代方案：请去掉该功能，或用 PyTorch 算子实现。",
)


def replacement_of(vendor: Vendor, name: str) -> Replacement | None:
    """The entry for a dotted name, or for the longest part of it that has one."""
    entries = {entry.cuda: entry for entry in vendor.replacements}
    while name:
        if name in entries:
            return entries[name]
        name = name.rpartition(".")[0]
    return None


def with_advice(said: Message, vendor: Vendor, name: str) -> Message:
    """A message with what to use instead; where there is nothing, the library is a blocker."""
    entry = replacement_of(vendor, name)
    if entry is not None and entry.use:
        return said.and_do(_USE.format(use=phrase(entry.use)))
    missing = said.and_do(_NOTHING.format(company=vendor.company_name))
    return replace(missing, severity=Severity.BLOCKER)
