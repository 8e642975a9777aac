"""Runs whole programs on one vendor's simulated device in this process, and writes {part: traceback or ""} as JSON."""

from __future__ import annotations

import importlib
import io
import json
import runpy
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

MIGRATIONS = {
    "ascend": "torch_npu.contrib.transfer_to_npu",
    "cambricon": "torch_mlu.utils.gpu_migration",
    "tecorigin": "torch_sdaa.utils.cuda_migrate",
    "moorethreads": "torchada",
}
PUBLISHED = {
    "ascend": """
import torch_npu
from torch_npu.npu.amp import autocast
import torch_npu.npu as device
assert device is torch_npu.npu is torch.npu and autocast is torch.npu.amp.autocast
""",
    "cambricon": """
import torch_mlu, torch_mlu.mlu.amp
from torch_mlu.mlu import amp
assert torch_mlu.mlu is torch.mlu and amp is torch.mlu.amp
import apex.amp
""",
    "tecorigin": """
import torch_sdaa, torch_sdaa.distributed, torch_sdaa.amp as amp
import torch_sdaa.core.sdaa_model as sm
from torch_sdaa.amp import GradScaler, autocast
sm.set_device(1)
assert torch.sdaa.current_device() == 1 and autocast is torch.sdaa.amp.autocast is amp.autocast
sm.set_device(0)
assert torch_sdaa.nn.SyncBatchNorm is torch.nn.SyncBatchNorm
""",
    "moorethreads": """
import torch_musa
torch_musa.set_device(1)
assert torch_musa.current_device() == 1 and torch_musa.musa is torch.musa
torch_musa.set_device(0)
assert not hasattr(torch_musa, "no_such_name")
""",
}


def main() -> None:
    """Run every part for the vendor that is named on the command line, on the converted example in a folder."""
    vendor = get_vendor(sys.argv[1])
    example, results = Path(sys.argv[2]), Path(sys.argv[3])
    from torchferry.sim import activate

    activate(vendor.name, devices=2, memory="1GiB")
    warnings.simplefilter("ignore")
    found = {name: _failure(part, vendor, example) for name, part in PARTS.items()}
    results.write_text(json.dumps(found))


def published_names(vendor: Vendor, _example: Path) -> None:
    """What published ports import from the plugin."""
    import torch

    exec(PUBLISHED[vendor.name], {"torch": torch})


def backend_settings(vendor: Vendor, _example: Path) -> None:
    """Every name that converted code uses for a setting of torch.backends is there."""
    importlib.import_module(vendor.plugin)
    import torch

    names = [api.name for api in vendor.apis.values() if api.name.startswith("torch.backends.")]
    for name in names:
        if vendor.device_type in name:
            found: Any = torch
            for part in name.split(".")[1:]:
                found = getattr(found, part)


def fused_optimizers(vendor: Vendor, _example: Path) -> None:
    """The optimizers of the vendor's table train a net on the device."""
    import torch

    from tests.sim.shims.nets import batches, small_net

    module = importlib.import_module(vendor.fused_optimizer_module)
    images, classes = next(batches(1, vendor.device_type))
    for name in vendor.fused_optimizers:
        net = small_net(vendor.device_type)
        optimizer = getattr(module, name)(net.parameters(), lr=0.05)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(images), classes)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0], (name, losses)


def converted_example(_vendor: Vendor, example: Path) -> None:
    """The fine-tuning example, converted for the vendor, from the first line to the last."""
    sys.path.insert(0, str(example))
    sys.argv[:] = ["train.py", "--steps", "6"]
    said = io.StringIO()
    with redirect_stdout(said):
        runpy.run_path(str(example / "train.py"), run_name="__main__")
    losses = [float(line.split()[-1]) for line in said.getvalue().splitlines() if line.startswith("step")]
    assert len(losses) == 2 and losses[1] < losses[0], said.getvalue()
    assert "memory:" in said.getvalue()  # it did not fall back to the CPU


def migration(vendor: Vendor, _example: Path) -> None:
    """From here on CUDA's names mean the device; importing it twice does it once."""
    import torch

    importlib.import_module(MIGRATIONS[vendor.name])
    zeros = torch.zeros
    from torchferry.sim.shims.modules import migrate

    migrate(vendor)
    assert torch.zeros is zeros
    assert (torch.jit.script(_double) is _double) is bool(vendor.jit_script)


def _double(x):  # type: ignore[no-untyped-def]
    return x * 2


def gpu_program(part: str) -> Callable[[Vendor, Path], None]:
    """A part of the program that was written for GPUs."""

    def run(vendor: Vendor, _example: Path) -> None:
        function = getattr(importlib.import_module("tests.sim.shims.cuda_program"), part)
        arguments: tuple[Any, ...] = (vendor.dist_backend,) if part == "groups" else ()
        function(*arguments)

    return run


PARTS: dict[str, Callable[[Vendor, Path], None]] = {
    "published_names": published_names,
    "backend_settings": backend_settings,
    "fused_optimizers": fused_optimizers,
    "converted_example": converted_example,
    "migration": migration,
    **{name: gpu_program(name) for name in ("devices", "tensors", "training", "files", "groups")},
}


def _failure(part: Callable[[Vendor, Path], None], vendor: Vendor, example: Path) -> str:
    try:
        part(vendor, example)
    except Exception:
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    main()
