"""One rank of a test: simulates a vendor, joins the group, runs the checks of a module, writes down what came of it.

python -m tests.sim.distributed.rank VENDOR MODULE RANK RANKS FOLDER
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import torch

import torchferry.sim
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

TIMEOUT = timedelta(seconds=60)


@dataclass(frozen=True)
class Rank:
    """What a check may want to know."""

    vendor: Vendor
    rank: int
    ranks: int

    @property
    def device(self) -> torch.device:
        return torch.device(self.vendor.device_type, self.rank)


def main(vendor_name: str, module: str, rank: int, ranks: int, folder: Path) -> None:
    torchferry.sim.activate(vendor_name, devices=ranks)
    torch.set_num_threads(1)
    vendor = get_vendor(vendor_name)
    me = Rank(vendor, rank, ranks)
    getattr(torch, vendor.device_type).set_device(rank)
    torch.distributed.init_process_group(
        vendor.dist_backend, f"file://{folder / 'store'}", TIMEOUT, world_size=ranks, rank=rank
    )
    checks = importlib.import_module(module)
    names = [name for name in vars(checks) if name.startswith("check_")]
    results = {name: _outcome(checks, name, me) for name in names}
    torch.distributed.destroy_process_group()
    (folder / f"{rank}.json").write_text(json.dumps(results))


def _outcome(checks: ModuleType, name: str, me: Rank) -> str:
    try:
        getattr(checks, name)(me)
    except Exception:
        return traceback.format_exc()
    return "ok"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
