"""What code is converted to: a vendor's device, or device-agnostic torch code."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.vendors.model import Api, Support, Vendor


@dataclass(frozen=True)
class Spelling:
    """How a device type or a backend is written: as a word inside strings, or as an expression in their place."""

    word: str = ""
    expression: str = ""


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

    @property
    def name(self) -> str:
        return self.vendor.name

    @property
    def is_portable(self) -> bool:
        """Whether devices are spelled by expressions that are evaluated where the program runs."""
        return bool(self.device.expression)

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
