"""One rank with the vendor's real plugin: joins the group over its backend, runs the checks of some modules.

python -m tests.emulate.collectives.plugin_rank RANK RANKS FOLDER MODULE...
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch

import torchferry.emulate
from tests.sim.distributed.rank import Rank
from torchferry.emulate import toolkits
from torchferry.vendors.registry import get_vendor

TIMEOUT = timedelta(seconds=300)

# Checks of the simulated device that do not hold for the plugin; plugin_checks.py says what does.
DIFFERENT = {
    "check_bitwise_reductions_are_refused": "another type of exception",
    "check_receive_from_anyone": "the plugin has no recv_anysource",
    "check_integer_average_is_cut_off": "the plugin divides in place, which whole numbers refuse",
    "check_the_future_holds_device_tensors": "a work is not complete when wait has returned: streams wait, not the host",
    "check_no_memory_is_kept": "what another stream has used is free with a later allocation, not before",
    "check_nccl_says_what_to_use": "said by the simulated device itself",
}


def main(rank: int, ranks: int, folder: Path, modules: list[str]) -> None:
    vendor = get_vendor("ascend")
    torchferry.emulate.activate(vendor.name, devices=ranks)
    torch.set_num_threads(1)
    me = Rank(vendor, rank, ranks)
    torch.accelerator.set_device_index(rank)
    store = f"file://{folder / 'store'}"
    torch.distributed.init_process_group(vendor.dist_backend, store, TIMEOUT, world_size=ranks, rank=rank)
    outcomes: dict[str, dict[str, str]] = {}
    for module in modules:
        checks = vars(importlib.import_module(module))
        names = [name for name in checks if name.startswith("check_") and name not in _left_out()]
        outcomes[module] = {}
        for name in names:
            outcomes[module][name] = _outcome(checks[name], me)
            (folder / f"{rank}.json").write_text(json.dumps(outcomes))
    torch.distributed.destroy_process_group()


def _left_out() -> set[str]:
    """Messages side by side need HcclGroupStart, which the plugin looks for in a library of its own."""
    has_groups = any(part.name == "libhcomm.so" for part in toolkits.load("cann").libraries)
    return {*DIFFERENT} | (set() if has_groups else {"check_batched_send_and_receive"})


def _outcome(check: Callable[[Rank], None], me: Rank) -> str:
    try:
        check(me)
        torch.accelerator.synchronize()
    except BaseException:
        return traceback.format_exc()
    return "ok"


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
