"""Runs the programs in one place, in a process of its own, and says what was seen as JSON on stdout.

python -m tools.judge.running (simulated | emulated | layer | native) VENDOR [PATTERN]

`layer` and `native` are the emulated device under CUDA's names: by TorchFerry's layer, and by the vendor's own migration.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import warnings
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

from .names import programs_of_names
from .programs import programs

DEVICES = 2
MEMORY = "2GiB"
AS_CUDA = ("layer", "native")
_DIGITS = 6
# What has no place in a CUDA program, or waits for others.
_NOT_FOR_CUDA = ("plugin:*", "data: DataParallel*", "errors: nccl*")
_LONGEST_WORDS = 300
# What is of one run or of one machine, not of the device: addresses, times, processes, places in sources, stacks.
_OF_THE_RUN = (
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d(?:\.\d+)*"), "TIME"),
    (re.compile(r"\(PID:\d+, Device:\d+, RankID:-?\d+\)|\[PID: \d+\]"), "PROCESS"),
    (re.compile(r"(?:\.\./)?[\w/.]+\.(?:cpp|h|py):\d+"), "SOURCE"),
)


@dataclass
class Seen:
    """What one program gave."""

    values: list[str] = field(default_factory=list)
    error: str = ""
    warnings: list[str] = field(default_factory=list)


def main() -> int:
    """Run all, or those whose names fit a pattern."""
    place, vendor_name, *rest = sys.argv[1:]
    vendor = get_vendor(vendor_name)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the plugin prints is no answer
    _activate(place, vendor_name)
    import torch

    device = "cuda" if place in AS_CUDA else vendor.device_type
    for number in range(DEVICES):
        torch.ones(1, device=f"{device}:{number}")  # whatever is said once at the start is said now
    names = {
        "torch": torch,
        "module": getattr(torch, device),
        "plugin": __import__(vendor.plugin),
        "device": f"{device}:0",
    }
    found = {
        name: vars(_run(source, dict(names)))
        for name, source in _sources(place, vendor).items()
        if not rest or fnmatch(name, rest[0])
    }
    json.dump(found, answers)
    answers.close()
    return 0


def _sources(place: str, vendor: Vendor) -> dict[str, str]:
    """The programs; as CUDA programs where CUDA's names are to be tried."""
    names = programs_of_names(vendor, place in AS_CUDA)
    if place not in AS_CUDA:
        return {**programs(), **names}
    own, graph = vendor.device_type, f"{vendor.device_type.upper()}Graph"
    words = {
        f"{own}:": "cuda:",
        f'"{own}"': '"cuda"',
        f".{own}(": ".cuda(",
        graph: "CUDAGraph",
        f"is_{own}": "is_cuda",
    }
    found = {}
    for name, source in programs().items():
        if not any(fnmatch(name, pattern) for pattern in _NOT_FOR_CUDA):
            for word, cuda in words.items():
                source = source.replace(word, cuda)
            found[name] = source
    return {**found, **names}


def _activate(place: str, vendor: str) -> None:
    if place == "simulated":
        from torchferry import sim

        sim.activate(vendor, devices=DEVICES, memory=MEMORY)
        return
    os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"  # an error is of the call that it belongs to
    from torchferry import emulate

    emulate.activate(vendor, devices=DEVICES, memory=MEMORY, native=place == "native")
    if place == "layer":
        from torchferry.runtime import activate
        from torchferry.runtime.settings import LayerSettings

        activate(LayerSettings(vendor))


def _run(source: str, names: dict[str, Any]) -> Seen:
    import torch

    seen = Seen()
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            exec(compile(source, "<program>", "exec"), names)
            names["module"].synchronize()
            seen.values = [_described(value) for value in names["seen"]]
        except Exception as error:
            seen.error = f"{type(error).__name__}: {_words(error)}"
            with contextlib.suppress(Exception):
                names["module"].synchronize()
    seen.warnings = sorted({_words(one.message) for one in caught})
    return seen


def _words(said: object) -> str:
    """The first line of a message, without what differs from run to run."""
    line = str(said).strip().partition("\n")[0]
    for pattern, word in _OF_THE_RUN:
        line = pattern.sub(word, line)
    return line[:_LONGEST_WORDS]


def _described(value: Any) -> str:
    """A value so that equal ones have equal words."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return f"{value.dtype} {tuple(value.shape)} {value.layout}"
        host = value.detach().cpu()
        numbers = [_number(one) for one in host.reshape(-1)[:64].tolist()]
        return f"{value.dtype} {tuple(value.shape)} {value.device} {numbers}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_described, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_described(one)}' for key, one in value.items())}}}"
    return _words(value) if isinstance(value, str) else repr(value)


def _number(value: Any) -> str:
    """Without the last bits: what is judged here is behaviour; the conformance suite compares bits."""
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else repr(value)


if __name__ == "__main__":
    sys.exit(main())
