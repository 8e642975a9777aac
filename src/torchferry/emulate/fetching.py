"""Has pip fetch a plugin's wheel, from the index and through the proxy that this machine's pip is set up with."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from torchferry.emulate.wheels import Wanted
from torchferry.errors import RunError

_PATIENCE = ("--retries", "1", "--timeout", "20")


def fetch(wanted: Wanted, folder: Path, vendor: str) -> Path:
    """The wheel, in a folder; only a wheel, whose requirements stay where they are."""
    if find_spec("pip") is None:
        raise RunError(
            f"{wanted.package} can't be fetched: {sys.executable} has no pip; python -m ensurepip, or {by_hand(wanted, vendor)}"
        )
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *_PATIENCE),
        *("--no-deps", "--only-binary", ":all:", "--dest", str(folder), wanted.requirement),
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    made = sorted(folder.glob("*.whl")) if folder.is_dir() else []
    if done.returncode or not made:
        raise RunError(
            f"{wanted.package} can't be fetched ({_reason(done.stdout)}); {by_hand(wanted, vendor)}"
        )
    return made[0]


def by_hand(wanted: Wanted, vendor: str) -> str:
    """What to do where there is no way to the index."""
    return (
        f"on a machine that can reach it: pip download --no-deps --only-binary :all: --python-version "
        f"{sys.version_info[0]}.{sys.version_info[1]} --platform manylinux_2_28_{platform.machine()} "
        f"--platform manylinux2014_{platform.machine()} '{wanted.requirement}'; bring {wanted.pattern} here, then "
        f"ferry emulate setup --to {vendor} --wheel FILE"
    )


def _reason(output: str) -> str:
    """What pip says last."""
    said = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
    return (errors or said or ["pip says nothing"])[0]
