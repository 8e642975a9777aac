"""Adds one thing to pyproject.toml: a wheel that is built where torch is installed carries the simulated device
compiled for that torch, and says on which machines it runs.

`pip wheel . --no-build-isolation` sees the installed torch; a plain `pip wheel .` does not, and makes a wheel for
every machine, whose users compile the device once. TORCHFERRY_PREBUILD=1 insists on the first, 0 on the second.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SOURCE = Path(__file__).parent / "src"


def is_prebuilding() -> bool:
    """Whether to compile the device into the wheel."""
    chosen = os.environ.get("TORCHFERRY_PREBUILD", "")
    if chosen not in ("", "0", "1"):
        raise SystemExit(f"TORCHFERRY_PREBUILD is {chosen!r}; say 0 or 1")
    return importlib.util.find_spec("torch") is not None if chosen == "" else chosen == "1"


def prebuild(package: Path) -> None:
    """Compile the device for the installed torch into a copy of the package."""
    sys.path.insert(0, str(SOURCE))
    from torchferry.building import cache as build_cache
    from torchferry.building.build import ProgressLine
    from torchferry.building.toolchain import find_torch
    from torchferry.errors import BuildError
    from torchferry.sim.build import PREBUILT, SOURCES, DeviceBuild

    try:
        build = DeviceBuild(find_torch(), SOURCES)
        made = build.in_cache(build_cache.writable_folder("sim"), ProgressLine()).parent
    except BuildError as error:
        raise SystemExit(f"the device can't be compiled into the wheel: {error}") from error
    shutil.copytree(made, package / PREBUILT.relative_to(SOURCE / "torchferry") / build.key)


class BuildPackage(build_py):
    """Copies the package, and compiles the device into the copy."""

    def run(self) -> None:
        """Not in an editable installation: there the device is compiled when it is first used."""
        package = Path(self.build_lib, "torchferry")
        shutil.rmtree(package / "sim" / "prebuilt", ignore_errors=True)  # of an earlier build
        super().run()
        if is_prebuilding() and not self.editable_mode:
            prebuild(package)


class BuildWheel(bdist_wheel):
    """Names the wheel."""

    def get_tag(self) -> tuple[str, str, str]:
        """For every Python: the library speaks to torch only."""
        _, _, platform = super().get_tag()
        return ("py3", "none", platform)


class Package(Distribution):
    """Knows whether the wheel is one for this sort of machine."""

    def has_ext_modules(self) -> bool:
        """A compiled device counts as one."""
        return is_prebuilding()


setup(distclass=Package, cmdclass={"build_py": BuildPackage, "bdist_wheel": BuildWheel})
