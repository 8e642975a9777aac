"""One rank of a test: simulates a vendor, joins the group, runs the checks of some modules, writes down what came of it.

python -m tests.sim.distributed.rank VENDOR RANK RANKS FOLDER MODULE...
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


def main(vendor_name: str, rank: int, ranks: int, folder: Path, modules: list[str]) -> None:
    torchferry.sim.activate(vendor_name, devices=ranks)
    torch.set_num_threads(1)
    vendor = get_vendor(vendor_name)
    me = Rank(vendor, rank, ranks)
    getattr(torch, vendor.device_type).set_device(rank)
    torch.distributed.init_process_group(
        vendor.dist_backend, f"file://{folder / 'store'}", TIMEOUT, world_size=ranks, rank=rank
    )
    results = {module: _outcomes(importlib.import_module(module), me) for module in modules}
    torch.distributed.destroy_process_group()
    (folder / f"{rank}.json").write_text(json.dumps(results))


def _outcomes(checks: ModuleType, me: Rank) -> dict[str, str]:
    names = [name for name in vars(checks) if name.startswith("check_")]
    return {name: _outcome(checks, name, me) for name in names}


def _outcome(checks: ModuleType, name: str, me: Rank) -> str:
    try:
        getattr(checks, name)(me)
    except Exception:
        return traceback.format_exc()
    return "ok"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
