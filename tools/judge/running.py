"""Runs the programs on one device, in a process of its own, and says what was seen as JSON on stdout.

python -m tools.judge.running (simulated | emulated) VENDOR [PATTERN]
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

from torchferry.vendors.registry import get_vendor

from .programs import programs

DEVICES = 2
MEMORY = "2GiB"
_DIGITS = 6
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

    plugin = __import__(vendor.plugin)
    module = getattr(torch, vendor.device_type)
    torch.ones(1, device=vendor.device_type)  # whatever is said once at the start is said now
    names = {"torch": torch, "module": module, "plugin": plugin, "device": f"{vendor.device_type}:0"}
    found = {
        name: vars(_run(source, dict(names)))
        for name, source in programs().items()
        if not rest or fnmatch(name, rest[0])
    }
    json.dump(found, answers)
    answers.close()
    return 0


def _activate(place: str, vendor: str) -> None:
    if place == "emulated":
        os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"  # an error is of the call that it belongs to
        from torchferry import emulate

        emulate.activate(vendor, devices=DEVICES, memory=MEMORY)
    else:
        from torchferry import sim

        sim.activate(vendor, devices=DEVICES, memory=MEMORY)


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
