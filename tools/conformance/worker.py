"""The process that runs operators: reads jobs from its input, one JSON line each, and answers in the same form.

It may crash or hang; so before each call it says what it is about to do (`{"at": ...}`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, TextIO

import torch

from .devices import emulated_device, unlimited_device
from .examine import examine


def main() -> int:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--vendor", default="", help="without it the CPU is compared with itself")
    parser.add_argument("--emulate", action="store_true", help="the vendor's own plugin, emulated")
    parser.add_argument("--samples", type=int, default=20)
    options = parser.parse_args()
    answers = _own_output()
    torch.set_num_threads(1)
    device = _device(options)
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        job = json.loads(line)
        result = examine(
            job["operator"],
            job["dtype"],
            device,
            options.samples,
            lambda text: _answer(answers, {"at": text}),
        )
        _answer(answers, {"result": result.as_json()})
    return 0


def _device(options: argparse.Namespace) -> torch.device:
    if not options.vendor:
        return torch.device("cpu")
    return emulated_device(options.vendor) if options.emulate else unlimited_device(options.vendor)


def _own_output() -> TextIO:
    """The pipe to the parent, where nothing else is written: what operators print goes to the error output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _answer(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
