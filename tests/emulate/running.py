"""Runs programs in processes of their own with the emulated device on, as `ferry run --emulate --converted` starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from torchferry import variables
from torchferry.emulate import build, plugins
from torchferry.emulate.environment import settings_for
from torchferry.errors import FerryError
from torchferry.launch.environment import child_environment
from torchferry.runtime.settings import LayerSettings
from torchferry.vendors.registry import get_vendor

VENDOR = "ascend"
_SECONDS = 1800  # far more than any takes on a busy machine


@cache
def why_not() -> str:
    """Why programs can't run on the emulated device here; "" if they can. Compiles nothing."""
    vendor = get_vendor(VENDOR)
    try:
        plugin = plugins.needed(vendor)
    except FerryError as error:
        return str(error)
    return (
        "" if build.built_folder(vendor, plugin.folder) else "the emulated CANN is not built: make emulation"
    )


def run_python(
    code: str | Path,
    *arguments: str,
    devices: int = 2,
    memory: int | str | None = None,
    layer: bool = False,
    native: bool = False,
    folder: Path | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run code, or a script, to its end; with `layer` CUDA's names mean the device, by our layer."""
    vendor = get_vendor(VENDOR)
    settings = settings_for(vendor, devices, memory, native=native, shared_randomness=True)
    over = LayerSettings(VENDOR) if layer else None
    inherited = {name: value for name, value in os.environ.items() if name != variables.EMULATE}
    program = ["-c", code] if isinstance(code, str) else [str(code)]
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env={**child_environment(inherited, vendor, settings, over), "TORCHFERRY_LANG": "en", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )


def answer(code: str, *arguments: str, **options: Any) -> Any:
    """What a program prints as JSON in its last line; it must end well."""
    done = run_python(code, *arguments, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
