"""Gets the compiled half of the simulated device: carried by the wheel, from the cache, or compiled now.

`python -m torchferry.sim.build` does it ahead of time and prints where the library is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from torchferry.building import build as building
from torchferry.building import cache as build_cache
from torchferry.building.build import Progress, ProgressLine
from torchferry.building.toolchain import (
    TORCH_LIBRARIES,
    TorchInstallation,
    compile_flags,
    find_torch,
    path_flags,
)
from torchferry.errors import BuildError
from torchferry.operators import native_functions
from torchferry.text import Text

LIBRARY = "libtorchferry_sim.so"
SOURCES = Path(__file__).parent / "csrc"
PREBUILT = Path(__file__).parent / "prebuilt"
CACHE = "sim"


def library_path(progress: Progress | None = None) -> Path:
    """The library for the installed PyTorch; the operator table lies beside it. Compiles it if it must."""
    if sys.platform != "linux":
        raise BuildError(Text("the simulated device runs on Linux only", "模拟设备仅支持 Linux"))
    build = DeviceBuild(find_torch(), SOURCES)
    folder = _found(build)
    if folder is None:
        return build.in_cache(build_cache.writable_folder(CACHE), progress or ProgressLine())
    build_cache.mark_used(folder)
    return folder / LIBRARY


def is_built() -> bool:
    """Whether the library for the installed PyTorch is there already."""
    return sys.platform == "linux" and _found(DeviceBuild(find_torch(), SOURCES)) is not None


def _found(build: DeviceBuild) -> Path | None:
    cached = build_cache.folder(CACHE) / build.key
    if is_complete(PREBUILT / build.key):
        return PREBUILT / build.key
    return cached if is_complete(cached) and build_cache.is_safe_to_load(cached / LIBRARY) else None


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a finished build."""
    return (folder / LIBRARY).is_file() and (folder / native_functions.TABLE).is_file()


class DeviceBuild:
    """The library for one PyTorch from the sources in one folder, and the operator table."""

    def __init__(self, torch: TorchInstallation, sources: Path) -> None:
        files = sorted(sources.glob("*.cpp"))
        if not files:
            raise BuildError(
                Text(
                    f"{sources} holds no sources; reinstall TorchFerry",
                    f"{sources} 中没有源代码；请重新安装 TorchFerry",
                )
            )
        self._torch = torch
        library = building.Library(
            LIBRARY,
            tuple(files),
            headers=tuple(sorted(sources.glob("*.h"))),
            flags=compile_flags(torch),
            path_flags=path_flags(torch, sources),
            torch_libraries=TORCH_LIBRARIES,
        )
        product = building.Product(
            (library,),
            Text("the simulated device", "模拟设备"),
            extra_files=(Path(native_functions.__file__),),
            finish=self._write_table,
            finished=(native_functions.TABLE,),
        )
        self._build = building.NativeBuild(torch, product)
        self.key = self._build.key

    def in_cache(self, cache: Path, progress: Progress) -> Path:
        """The library in a cache; processes that ask at the same time wait for the first one's work."""
        return self._build.in_cache(cache, progress) / LIBRARY

    def _write_table(self, folder: Path) -> None:
        source = self._torch.torchgen / native_functions.LIST_IN_TORCHGEN
        try:
            text = source.read_text("utf-8")
        except FileNotFoundError:
            raise BuildError(
                Text(
                    f"{source} is missing; reinstall torch: pip install torch",
                    f"缺少 {source}；请重新安装 torch：pip install torch",
                )
            ) from None
        facts = native_functions.read_native_functions(text)
        native_functions.write_operator_facts(facts, folder / native_functions.TABLE)


if __name__ == "__main__":
    print(library_path())
