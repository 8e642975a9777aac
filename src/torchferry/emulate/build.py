"""Gets the libraries that stand for a vendor's toolkit: from the cache, or compiled now against the plugin's headers.

`python -m torchferry.emulate.build --to VENDOR` fetches the plugin and does it ahead of time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.building import build as building
from torchferry.building import cache as build_cache
from torchferry.building.build import Library, Product, Progress, ProgressLine
from torchferry.building.toolchain import TorchInstallation, common_flags, find_torch, path_flags
from torchferry.emulate import plugins, toolkits
from torchferry.emulate.toolkits import Toolkit, ToolkitLibrary
from torchferry.errors import BuildError, FerryError
from torchferry.text import Text, user_language
from torchferry.vendors.model import Vendor

CACHE = "emulate"
_STANDARD = "-std=c++20"
_TORCH_LIBRARIES = ("torch_cpu", "c10")


def library_folder(vendor: Vendor, plugin: Path, progress: Progress | None = None) -> Path:
    """The folder of the libraries for the installed PyTorch and a plugin. Compiles them if it must."""
    product, build = _build(vendor, plugin)
    folder = _found(product, build)
    if folder is not None:
        build_cache.mark_used(folder)
        return folder
    return build.in_cache(build_cache.writable_folder(CACHE), progress or ProgressLine())


def built_folder(vendor: Vendor, plugin: Path) -> Path | None:
    """The same folder, if the libraries are there already."""
    return _found(*_build(vendor, plugin))


def is_set_up(vendor: Vendor) -> bool:
    """Whether a program could run on the emulated device at once: there is a plugin, and all is built for it."""
    if vendor.emulation.toolkit not in toolkits.names() or sys.platform != "linux":
        return False
    try:
        plugin = plugins.found(vendor)
        return plugin is not None and built_folder(vendor, plugin.folder) is not None
    except FerryError:
        return False


def remove() -> list[Path]:
    """Take away all that was built; answers what was there."""
    folder = build_cache.folder(CACHE)
    if not folder.is_dir() or folder.is_symlink():
        return []
    build_cache.remove(folder)
    return [folder]


def _found(product: Product, build: building.NativeBuild) -> Path | None:
    folder = build_cache.folder(CACHE) / build.key
    is_safe = all(
        build_cache.is_safe_to_load(folder / library.name)
        for library in product.libraries
        if (folder / library.name).exists()
    )
    return folder if product.is_complete(folder) and is_safe else None


def _build(vendor: Vendor, plugin: Path) -> tuple[Product, building.NativeBuild]:
    toolkit = toolkits.load(vendor.emulation.toolkit)
    torch = find_torch()
    headers = _Headers(toolkit, plugin, vendor.plugin)
    libraries = tuple(_library(part, toolkit, headers, torch) for part in toolkit.libraries)
    product = Product(
        libraries, Text(f"the emulated {toolkit.name}", f"仿真的 {toolkit.name}"), finish=toolkit.make_home
    )
    return product, building.NativeBuild(torch, product)


class _Headers:
    def __init__(self, toolkit: Toolkit, plugin: Path, module: str) -> None:
        self.folders = [plugin / name for name in toolkit.headers]
        missing = [folder for folder in self.folders if not folder.is_dir()]
        if missing:
            raise BuildError(
                Text(
                    f"{missing[0]} is missing, so {module} is damaged; set it up again",
                    f"缺少 {missing[0]}，{module} 已损坏；请重新安装",
                )
            )
        # what the headers say: by the list of all its files that a wheel carries, else by their text
        lists = sorted(plugin.glob(f"{module}-*.dist-info/RECORD"))
        self.key = building.digest(
            lists or sorted({path for folder in self.folders for path in folder.rglob("*.h")})
        )

    def flags(self) -> tuple[str, ...]:
        """Warnings in them are not ours, and no path of this machine goes into the result."""
        searched = (word for folder in self.folders for word in ("-isystem", str(folder)))
        return (*searched, f"-ffile-prefix-map={self.folders[0]}=plugin")


def _library(part: ToolkitLibrary, toolkit: Toolkit, headers: _Headers, torch: TorchInstallation) -> Library:
    folders = [toolkit.sources / name for name in part.folders]
    own = tuple(folder for folder in sorted(toolkit.sources.iterdir()) if folder.is_dir())
    is_generated = part.entries and toolkit.entry_writer() is not None
    # what is generated lies elsewhere, and includes as its neighbours would
    neighbours = tuple(folders) if is_generated else ()
    searched = tuple(word for folder in neighbours for word in ("-iquote", str(folder)))
    of_torch = path_flags(torch, toolkit.sources) if part.torch else ()
    return Library(
        part.name,
        sources=tuple(path for folder in folders for path in sorted(folder.glob("*.cpp"))),
        headers=tuple(sorted(path for folder in own for path in folder.rglob("*.h"))) if folders else (),
        folders=neighbours,
        flags=(_STANDARD, *common_flags(torch)),
        path_flags=(
            *searched,
            *headers.flags(),
            *of_torch,
            f"-ffile-prefix-map={toolkit.sources}=torchferry",
        ),
        key_words=(headers.key,),
        generate=toolkit.entry_writer() if is_generated else None,
        generated_from=toolkit.entry_tables() if is_generated else (),
        torch_libraries=_TORCH_LIBRARIES if part.torch else (),
        links=part.links,
        soname=True,
    )


def _main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torchferry.emulate.build", description=__doc__)
    parser.add_argument("--to", default="ascend", metavar="VENDOR", help="default: %(default)s")
    parser.add_argument("--plugin-only", action="store_true", help="fetch the plugin, and build nothing")
    parser.add_argument(
        "--if-possible",
        action="store_true",
        help="where the plugin can't be had, say so and end well; what can't be built is an error nevertheless",
    )
    args = parser.parse_args(arguments)
    from torchferry.vendors.registry import get_vendor

    try:
        vendor = get_vendor(args.to)
        plugin = plugins.found(vendor) or plugins.set_up(
            vendor, None, lambda text: _say(text.in_language(user_language()))
        )
        print(plugin.folder if args.plugin_only else library_folder(vendor, plugin.folder))
    except BuildError as error:
        _say(error.shown)
        return error.exit_code
    except FerryError as error:
        _say(error.shown)
        return 0 if args.if_possible else error.exit_code
    return 0


def _say(line: str) -> None:
    print(f"torchferry: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(_main())
