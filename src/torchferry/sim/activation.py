"""Turns the simulated device on in this process, under one vendor's name."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.backend_registration import rename_privateuse1_backend

from torchferry.errors import RunError
from torchferry.observe import torchvision_operators
from torchferry.operators import native_functions
from torchferry.operators.support import VendorTable
from torchferry.runtime.compilers import eager_without_inductor
from torchferry.sim import (
    build,
    device_module,
    host_log,
    native,
    operators,
    process_group,
    sharing,
    shims,
    torch_changes,
)
from torchferry.sim.environment import SimSettings
from torchferry.text import Text
from torchferry.vendors.model import Limits, MissingOperator, Narrowing, Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, with_card

_DEFAULT_MESSAGES = native.Messages(
    missing_operator="Could not run '{operator}' with arguments from the '{backend}' backend.",
    operator_falls_back="The operator '{operator}' has no kernel on this device and runs on the CPU.",
    out_of_memory="{device} out of memory. Tried to allocate {wanted} ({total} total; {allocated} already allocated; "
    "{free} free; {reserved} reserved)",
    cast_dtype="The device does not support {dtype}: the cast gives {becomes}.",
    refused_dtype="The device does not support {dtype}.",
)
_ADVICE_FOR_SPARSE = "The tensor is sparse: keep it on the CPU, or make it dense first with .to_dense() (embeddings: sparse=False)."
_NARROWINGS = {
    Narrowing.CAST_AS: native.NarrowingCode.CAST_AS,
    Narrowing.COMPUTED_AS: native.NarrowingCode.COMPUTED_AS,
    Narrowing.REFUSED: native.NarrowingCode.REFUSED,
}


@dataclass(frozen=True)
class ActiveSimulation:
    """What this process simulates."""

    vendor: Vendor
    settings: SimSettings

    def for_children(self) -> dict[str, str]:
        """The environment variables that make a process simulate the same."""
        return {SimSettings.variable: self.settings.encode()}


_active: list[ActiveSimulation] = []


def active() -> ActiveSimulation | None:
    """What is simulated in this process; None when nothing is."""
    return _active[0] if _active else None


def activate_settings(settings: SimSettings) -> None:
    """Simulate as these settings say. Doing it again with the same vendor does nothing."""
    vendor = with_card(get_vendor(settings.vendor, tuple(map(Path, settings.vendor_paths))), settings.card)
    now = active()
    if now is not None:
        if now.vendor.name != vendor.name:
            raise RunError(
                Text(
                    f"this process already simulates {now.vendor.name}; start another one to simulate {vendor.name}",
                    f"当前进程已在模拟 {now.vendor.name}；请另起进程模拟 {vendor.name}",
                )
            )
        if settings.card and now.vendor.limits.device_name != vendor.limits.device_name:
            raise RunError(
                Text(
                    f"this process already simulates {now.vendor.limits.device_name}; start another one for "
                    f"{settings.card}",
                    f"当前进程已在模拟 {now.vendor.limits.device_name}；请另起进程模拟 {settings.card}",
                )
            )
        return
    if not vendor.plugin:
        raise RunError(
            Text(
                f"{vendor.name}: PyTorch itself has the device `{vendor.device_type}`, so it can't be simulated; "
                "choose a vendor with its own plugin",
                f"{vendor.name}：设备 `{vendor.device_type}` 由 PyTorch 自带，无法模拟；请选择有自己插件的厂商",
            )
        )
    refusal = vendor.limits.saturation.refusal(vendor.limits.device_name, os.environ)
    if refusal:
        raise RunError(Text(refusal, refusal))  # the words of the vendor's plugin
    library = build.library_path()
    native.load(library)
    native.configure(
        settings.devices, settings.memory, vendor.visible_devices_env, settings.shared_randomness
    )
    try:
        rename_privateuse1_backend(vendor.device_type)
    except RuntimeError:
        raise RunError(
            Text(
                "another package already uses PyTorch's slot for extra devices (named `"
                f"{torch._C._get_privateuse1_backend_name()}`); is the vendor's real plugin loaded?",
                f"PyTorch 的扩展设备位置已被另一个包占用（名为 `{torch._C._get_privateuse1_backend_name()}`）；"
                "是否加载了厂商的真实插件？",
            )
        ) from None
    _set_limits(vendor, settings, library)
    device_module.install(vendor, settings.memory, vendor.limits.device_name or vendor.device_type)
    process_group.register(vendor)
    shims.install(vendor)
    torch_changes.refuse_data_parallel(vendor)
    torch_changes.print_without_limits()
    sharing.install()
    torchvision_operators.install()
    torch.compile = eager_without_inductor(vendor.device_type)
    torch_changes.backward_in_calling_thread()
    torch_changes.exchange_by_dlpack(vendor.device_type)
    host_log.install(vendor, os.environ)
    _active.append(ActiveSimulation(vendor, settings))


def _set_limits(vendor: Vendor, settings: SimSettings, library: Path) -> None:
    facts = native_functions.load_operator_facts(library.parent / native_functions.TABLE)
    limits = vendor.limits
    missing = _missing_verdict(vendor, settings.strict)
    table = VendorTable(load_ops(Path(vendor.folder)), limits.operator_version)
    native.route_to_host(operators.routed(facts, table))
    native.set_operator_facts(operators.rules(facts, table, missing))
    native.set_messages(_messages(limits, vendor, os.environ))
    for dtype, limit in limits.dtypes.items():
        if limit.applies(os.environ):
            becomes = getattr(torch, limit.becomes or dtype)
            native.set_narrowing(getattr(torch, dtype), becomes, _NARROWINGS[limit.narrowing])
    native.set_unlisted_in_double(
        limits.dtypes["float64"].unlisted if "float64" in limits.dtypes else (),
        f"{vendor.company} does not list float64 for '{{operator}}': it may fail on the device.",
    )
    _set_sparse_support(vendor, missing)
    if limits.saturation.applies(limits.device_name, os.environ):
        for dtype in limits.saturation.dtypes:
            native.set_saturation(getattr(torch, dtype))
    native.set_block_padding(limits.block_padding)


def _set_sparse_support(vendor: Vendor, missing: native.OperatorVerdict) -> None:
    """A vendor of which nothing is known has no sparse tensors; one that raises for dense ones does so here, too."""
    sparse = vendor.limits.sparse
    falls_back = (
        sparse.missing_operator is MissingOperator.FALLS_BACK and missing is native.OperatorVerdict.FALLS_BACK
    )
    raises = sparse.missing_message or f"'{{operator}}' is not supported on {vendor.company} devices."
    native.route_composed()
    native.set_sparse_support(
        native.OperatorVerdict.FALLS_BACK if falls_back else native.OperatorVerdict.RAISES,
        f"{raises} {_ADVICE_FOR_SPARSE}",
        sparse.fallback_message or _DEFAULT_MESSAGES.operator_falls_back,
        sparse.kernels,
    )


def _missing_verdict(vendor: Vendor, strict: bool) -> native.OperatorVerdict:
    does = vendor.limits.missing_operator_in(os.environ)
    if strict or does is MissingOperator.RAISES:
        return native.OperatorVerdict.RAISES
    if does is MissingOperator.UNKNOWN:
        warnings.warn(
            f"the behavior of {vendor.name} for missing operators is unknown; the simulated device runs them on the CPU",
            stacklevel=2,
        )
    return native.OperatorVerdict.FALLS_BACK


def _messages(limits: Limits, vendor: Vendor, environment: Mapping[str, str]) -> native.Messages:
    backend = limits.backend_name or vendor.device_type.upper()
    ours = _DEFAULT_MESSAGES
    missing = limits.missing_message_in(environment) or ours.missing_operator
    casts = [limit.message for limit in limits.dtypes.values() if limit.narrowing is Narrowing.CAST_AS]
    refused = [limit.message for limit in limits.dtypes.values() if limit.narrowing is Narrowing.REFUSED]
    return native.Messages(
        missing_operator=missing.replace("{backend}", backend),
        operator_falls_back=limits.fallback_message or ours.operator_falls_back,
        out_of_memory=limits.out_of_memory_message or ours.out_of_memory,
        cast_dtype=next(filter(None, casts), ours.cast_dtype),
        refused_dtype=next(filter(None, refused), ours.refused_dtype),
    )
