"""Compares models on the CPU and on a device, in a process of its own: a JSON line for each, on stdout.

    python -m tests.sim.models.runner --vendor ascend ResNet18 GRU
    python -m tests.sim.models.runner --device cpu

With --stdin the names come from there, one a line, so that a long matrix pays once for importing torch.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Iterable
from dataclasses import asdict

import torch


def main() -> int:
    """Run the models that were asked for, or all of them."""
    options = _options()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = options.device or _activate(options.vendor)
    from .catalogue import CATALOGUE
    from .training import compare

    names: Iterable[str] = options.names or CATALOGUE
    for name in (line.rstrip("\n") for line in sys.stdin) if options.stdin else names:
        try:
            comparison = compare(CATALOGUE[name], device)
            answer = {**asdict(comparison), "equal": comparison.equal}
        except Exception:
            answer = {"name": name, "error": traceback.format_exc()}
        print(json.dumps(answer), flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--vendor", help="simulate this vendor's device")
    where.add_argument("--device", help="use a device that is there")
    parser.add_argument("--threads", type=int, default=0, help="how many threads torch uses")
    parser.add_argument("--stdin", action="store_true", help="read the names from stdin")
    parser.add_argument("names", nargs="*", metavar="MODEL", help="names of the guide's table")
    return parser.parse_args()


def _activate(vendor: str) -> str:
    """Put the simulated device in place and answer its type."""
    from torchferry.sim import activate
    from torchferry.vendors.registry import get_vendor

    activate(vendor)
    return str(get_vendor(vendor).device_type)


if __name__ == "__main__":
    sys.exit(main())
