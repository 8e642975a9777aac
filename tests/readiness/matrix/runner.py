"""Takes one training step of each model whose name comes on stdin, in a process of its own: a JSON line for each.

python -m tests.readiness.matrix.runner                       # on the CPU: {"name": ..., "capture": ...}
python -m tests.readiness.matrix.runner --vendor cambricon    # on its simulated device: {"name": ..., "missing": ...}
python -m tests.readiness.matrix.runner --small --vendor ...  # small models, first on the CPU, then on the device

With --all the names are those of the whole catalogue.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import torch


def main() -> int:
    """Answer until there are no more names."""
    options = _options()
    torch.set_num_threads(1)
    if options.small:
        from .small import SMALL

        _answer_for(SMALL, SMALL, "")
        _answer_for(SMALL, SMALL, _activate(options.vendor, tuple(options.vendor_path)))
        return 0
    device = _activate(options.vendor, tuple(options.vendor_path)) if options.vendor else ""
    from tests.sim.models.catalogue import CATALOGUE

    _answer_for(CATALOGUE if options.all else (line.rstrip("\n") for line in sys.stdin), CATALOGUE, device)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--vendor", default="", help="simulate this vendor's device")
    parser.add_argument("--vendor-path", default=[], action="append", help="a folder of vendors")
    parser.add_argument("--all", action="store_true", help="all models; none are read from stdin")
    parser.add_argument("--small", action="store_true", help="the small models, in both ways")
    return parser.parse_args()


def _answer_for(names: Iterable[str], models: Mapping[str, Any], device: str) -> None:
    for name in names:
        try:
            answer = _answer(models[name], device)
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps({"name": name, **answer}), flush=True)


def _answer(entry: Any, device: str) -> dict[str, Any]:
    from .step import capture_step, missing_in_step

    if device:
        return {"missing": missing_in_step(entry, device)}
    from torchferry.readiness import capture_json

    return {"capture": capture_json.to_document(capture_step(entry))}


def _activate(vendor: str, vendor_paths: tuple[str, ...]) -> str:
    """Put the simulated device in place and answer its type."""
    from torchferry.sim import activate
    from torchferry.sim.activation import active

    activate(vendor, vendor_paths=vendor_paths)
    now = active()
    assert now is not None
    return now.vendor.device_type


if __name__ == "__main__":
    sys.exit(main())
