"""What `transfer_to_npu`, `gpu_migration`, `cuda_migrate` and their like do on the real machine: the layer does it."""

from __future__ import annotations

from torchferry.runtime.layer import activate_layer
from torchferry.runtime.settings import LayerSettings, TypeChecks
from torchferry.sim.shims.modules import device_module
from torchferry.vendors.model import Vendor


def migrate(vendor: Vendor) -> None:
    """Let torch.cuda, `.cuda()`, "cuda" and "nccl" mean the vendor's device in this process, once.

    A device's type stays the vendor's alone, as it does with the vendors' own migrations.
    """
    if device_module(vendor) is None:
        raise RuntimeError(
            f"there is no {vendor.torch_module}: activate the simulator before migrating to it"
        )
    activate_layer(LayerSettings(vendor.name, type_checks=TypeChecks.VENDOR), vendor)
