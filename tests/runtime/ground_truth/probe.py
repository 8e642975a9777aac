"""Evaluates CUDA expressions one by one and writes what each answered, on a real GPU or under the layer.

`python tests/runtime/ground_truth/probe.py OUT.json` records the answers of the machine's own GPU; with a vendor's
name after it, those of the layer on the vendor's simulated device; with `cpu`, those of the original of a proof.
"""

from __future__ import annotations

import copy
import io
import json
import pickle
import sys
import warnings
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "expressions.txt"
ANSWERS = Path(__file__).parent / "answers.json"


def expressions() -> list[str]:
    """The expressions, in the order in which they must run."""
    lines = FILE.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def evaluate() -> list[str]:
    """What each expression answers, in words."""
    import torch
    import torch.cuda.comm
    import torch.distributed
    import torch.utils.checkpoint

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 4).cuda()
    names = {
        "torch": torch,
        "pickle": pickle,
        "copy": copy,
        "x": torch.ones(2, 3, device="cuda"),
        "h": torch.ones(2, 3),
        "m": model,
        "under": under,
        "roundtrip": roundtrip,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [answer(line, names) for line in expressions()]


def answer(line: str, names: dict[str, Any]) -> str:
    """The value in words; an error by its class alone, since wordings are the vendor's."""
    import torch

    try:
        value = eval(line, names)  # the expressions are ours
    except Exception as error:
        return f"raises {type(error).__name__}"
    if isinstance(value, torch.Tensor):
        return f"tensor {tuple(value.shape)} {value.dtype} on {value.device}"
    return repr(value) if not isinstance(value, torch.cuda.Event) else "event"


def under(block: AbstractContextManager[Any], ask: Any) -> Any:
    """What is answered inside a block."""
    with block:
        return ask()


def roundtrip(tensor: Any, **settings: Any) -> Any:
    """A tensor saved and loaded."""
    import torch

    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file, **settings)


def begin(vendor: str) -> None:
    """Let CUDA's names mean a vendor's simulated device, or the CPU as in the original of a proof."""
    import torchferry.runtime
    import torchferry.sim
    from torchferry.runtime import REFERENCE, LayerSettings
    from torchferry.sim import reference

    if vendor == REFERENCE:
        reference.compute_as_cuda()
        torchferry.runtime.activate(LayerSettings(REFERENCE, reference_devices=1), reference.placement())
    else:
        torchferry.sim.activate(vendor, devices=1)
        torchferry.runtime.activate(vendor)


def main() -> None:
    """Record the answers of this machine, or of a vendor's simulated device."""
    import torch

    file, vendors = Path(sys.argv[1]), sys.argv[2:]
    for vendor in vendors:
        begin(vendor)
    rows = list(zip(expressions(), evaluate(), strict=True))
    found = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    file.write_text(json.dumps({**found, "answers": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
