"""The vendor's plugin: found where it is, or fetched into a folder of ours, never into the user's environment.

Where a plugin is installed and its toolkit is not, every `import torch` fails; so it is kept beside the environment.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from torchferry.building import cache as build_cache
from torchferry.building.toolchain import find_torch
from torchferry.emulate import toolkits
from torchferry.errors import InputError, OutputError, RunError
from torchferry.files.aside import folder_aside, remove_leftovers
from torchferry.text import Text
from torchferry.vendors.machine import load_machine
from torchferry.vendors.model import Vendor

VARIABLE = "TORCHFERRY_PLUGIN"
CACHE = "plugins"
_RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")
_WAITING = Text("waiting for another process", "正在等待另一个进程")
_FETCHING = Text(
    "fetching {package} for torch {torch}, once", "正在获取适用于 torch {torch} 的 {package}（仅此一次）"
)
_SPARE_BYTES = 1 << 24
_MOST_BYTES = 1 << 32  # no plugin is larger when it is unpacked
_MOST_METADATA = 1 << 22


@dataclass(frozen=True)
class Wanted:
    """The plugin that is looked for."""

    module: str  # torch_npu
    package: str  # torch-npu, as pip names it
    torch: str  # 2.13.0

    @property
    def pattern(self) -> str:
        """The name of its wheel; how a wheel says which Linux it is for, and whether it was made again, is open."""
        tag = python_tag()
        return f"{self.module}-{self.torch}*-{tag}-{tag}-manylinux*_{platform.machine()}.whl"

    @property
    def requirement(self) -> str:
        """As pip takes it: the newest that was made for this PyTorch."""
        return f"{self.package}=={self.torch}.*"


def python_tag() -> str:
    """This Python as wheels name it: cp311."""
    return f"cp{sys.version_info[0]}{sys.version_info[1]}"


def version_in(folder: Path, module: str) -> str:
    """The version of a package in a folder; "" if the folder does not say it."""
    for metadata in sorted(folder.glob(f"{module}-*.dist-info/METADATA")):
        text = metadata.read_text("utf-8", "replace")
        return str(HeaderParser().parsestr(text)["Version"] or "")
    return ""


def unpack(wheel: Path, wanted: Wanted, folder: Path) -> None:
    """Unpack a wheel if it is the one that is wanted."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            _check(wheel, archive, names, wanted)
            _check_size(wheel, archive, folder.parent)
            archive.extractall(folder)
    except FileNotFoundError:
        raise InputError(
            Text(
                f"no such wheel: {wheel}; give {wanted.pattern}",
                f"没有该 wheel：{wheel}；请给出 {wanted.pattern}",
            )
        ) from None
    except IsADirectoryError:
        raise InputError(
            Text(
                f"{wheel}: is a folder; give {wanted.pattern}", f"{wheel}：是文件夹；请给出 {wanted.pattern}"
            )
        ) from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(
            Text(
                f"{wheel}: not a wheel, or a damaged one ({error}); give {wanted.pattern}",
                f"{wheel}：不是 wheel，或已损坏（{error}）；请给出 {wanted.pattern}",
            )
        ) from None


def _check(wheel: Path, archive: zipfile.ZipFile, names: list[str], wanted: Wanted) -> None:
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise InputError(
                Text(
                    f"{wheel}: holds a file with the path {name!r}, which is not allowed in a wheel; give "
                    f"{wanted.pattern}",
                    f"{wheel}：其中有路径为 {name!r} 的文件，wheel 不允许这样的路径；请给出 {wanted.pattern}",
                )
            )
    info = _text_in(archive, names, "WHEEL")
    metadata = HeaderParser().parsestr(_text_in(archive, names, "METADATA"))
    if not info or f"{wanted.module}/__init__.py" not in names:
        raise InputError(
            Text(
                f"{wheel}: not a wheel of {wanted.module}; give {wanted.pattern}",
                f"{wheel}：不是 {wanted.module} 的 wheel；请给出 {wanted.pattern}",
            )
        )
    version = str(metadata["Version"] or "")
    if not re.match(rf"{re.escape(wanted.torch)}(?!\d|\.\d)", version):
        raise InputError(
            Text(
                f"{wheel}: {wanted.package} {version} was made for another PyTorch than the installed torch "
                f"{wanted.torch}; give {wanted.pattern}",
                f"{wheel}：{wanted.package} {version} 对应的 PyTorch 与已安装的 torch {wanted.torch} 不同；请给出 "
                f"{wanted.pattern}",
            )
        )
    tags = HeaderParser().parsestr(info).get_all("Tag") or []
    if not any(map(_is_for_here, tags)):
        raise InputError(
            Text(
                f"{wheel}: made for {', '.join(tags) or 'an unknown platform'}, but this is {python_tag()} on "
                f"{platform.machine()}; give {wanted.pattern}",
                f"{wheel}：对应平台为 {', '.join(tags) or '未知'}，而当前为 {platform.machine()} "
                f"上的 {python_tag()}；请给出 {wanted.pattern}",
            )
        )


def _text_in(archive: zipfile.ZipFile, names: list[str], file: str) -> str:
    """A file of the folder that describes a wheel; "" if there is none."""
    found = [name for name in names if re.fullmatch(rf"[^/]+\.dist-info/{file}", name)]
    if len(found) != 1 or archive.getinfo(found[0]).file_size > _MOST_METADATA:
        return ""
    return archive.read(found[0]).decode("utf-8", "replace")


def _is_for_here(tag: str) -> bool:
    python, _, rest = tag.partition("-")
    place = rest.partition("-")[2]
    fits_python = python == python_tag() or python == f"py{sys.version_info[0]}"
    return fits_python and (place == "any" or ("linux" in place and place.endswith(f"_{platform.machine()}")))


def _check_size(wheel: Path, archive: zipfile.ZipFile, folder: Path) -> None:
    size = sum(info.file_size for info in archive.infolist())
    if size > _MOST_BYTES:
        raise InputError(
            Text(
                f"{wheel}: would unpack to {size} bytes, far more than a plugin; check the file",
                f"{wheel}：解压后将占 {size} 字节，远超插件的正常大小；请检查该文件",
            )
        )
    if size + _SPARE_BYTES > shutil.disk_usage(folder).free:
        raise OutputError(
            Text(
                f"{folder}: no room for the {size >> 20} MiB of {wheel.name}; set $TORCHFERRY_CACHE to another "
                "place",
                f"{folder}：空间不足，放不下 {wheel.name} 的 {size >> 20} MiB；请将 $TORCHFERRY_CACHE 设为其他位置",
            )
        )


_PATIENCE = ("--retries", "1", "--timeout", "20")


def fetch(wanted: Wanted, folder: Path, vendor: str) -> Path:
    """The wheel, in a folder; only a wheel, whose requirements stay where they are."""
    if find_spec("pip") is None:
        raise RunError(
            Text(
                "{package} can't be downloaded: {python} has no pip; run python -m ensurepip, or {by_hand}",
                "无法下载 {package}：{python} 没有 pip；请执行 python -m ensurepip，或{by_hand}",
            ).format(package=wanted.package, python=sys.executable, by_hand=by_hand(wanted, vendor))
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
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")]
        reason = (errors or said or ["pip: ?"])[0]
        raise RunError(
            Text(
                "{package} can't be downloaded ({reason}); {by_hand}",
                "无法下载 {package}（{reason}）；请{by_hand}",
            ).format(package=wanted.package, reason=reason, by_hand=by_hand(wanted, vendor))
        )
    return made[0]


def by_hand(wanted: Wanted, vendor: str) -> Text:
    """What to do without access to the package index."""
    command = (
        f"pip download --no-deps --only-binary :all: --python-version {sys.version_info[0]}.{sys.version_info[1]} "
        f"--platform manylinux_2_28_{platform.machine()} --platform manylinux2014_{platform.machine()} "
        f"'{wanted.requirement}'"
    )
    return Text(
        "on a machine with access: {command}; copy {pattern} here, then ferry emulate setup --to {vendor} --wheel FILE",
        "在能访问的机器上执行：{command}；将 {pattern} 复制到此处，再执行 ferry emulate setup --to {vendor} --wheel FILE",
    ).format(command=command, pattern=wanted.pattern, vendor=vendor)


@dataclass(frozen=True)
class Plugin:
    """A vendor's plugin on disk."""

    folder: Path  # that which would be on the path
    version: str  # 2.13.0.post1; "" unknown
    is_kept: bool = False  # in our cache, and so ours to remove

    def fits(self, torch: str) -> bool:
        """Whether it was made for this release of PyTorch."""
        return not self.version or release_of(self.version) == torch


def release_of(version: str) -> str:
    """2.13.0 of 2.13.0+cpu, 2.13.0.post2 and 2.13.0rc1."""
    found = _RELEASE.match(version)
    release = found[0] if found else version
    return release if release.count(".") > 1 else f"{release}.0"


def torch_release() -> str:
    """2.13.0, of the installed PyTorch."""
    return release_of(find_torch().version)


def refuse_without_emulation(vendor: Vendor) -> None:
    """Say so if a vendor's plugin can't run here."""
    toolkit = vendor.emulation.toolkit
    if not toolkit or not vendor.plugin:
        raise RunError(
            Text(
                f"{vendor.name}: no emulation of this vendor's toolkit exists; use --sim, or a vendor whose "
                "vendor.toml has an [emulation]: ferry vendors",
                f"{vendor.name}：没有该厂商工具包的仿真；请使用 --sim，或选择 vendor.toml 中有 [emulation] "
                "的厂商：ferry vendors",
            )
        )
    if toolkit not in toolkits.names():
        raise RunError(
            Text(
                f"{vendor.name}: its [emulation] names the toolkit {toolkit!r}; only these can be emulated: "
                f"{', '.join(toolkits.names())}",
                f"{vendor.name}：其 [emulation] 指定的工具包为 {toolkit!r}；可仿真的只有："
                f"{', '.join(toolkits.names())}",
            )
        )
    if sys.platform != "linux":
        raise RunError(Text("a vendor's plugin can be emulated on Linux only", "厂商插件的仿真仅支持 Linux"))


def found(vendor: Vendor) -> Plugin | None:
    """The plugin that processes would use: the one that the user names, ours, or the one that is installed; None if
    none of them fits the installed PyTorch."""
    named = os.environ.get(VARIABLE)
    if named:
        return _named(Path(named), vendor)
    torch = torch_release()
    for plugin in (_plugin_in(kept_folder(vendor), vendor, is_kept=True), _installed(vendor)):
        if plugin is not None and plugin.fits(torch) and build_cache.is_safe_to_load(plugin.folder):
            return plugin
    return None


def needed(vendor: Vendor) -> Plugin:
    """The plugin that `found` gives; raises where there is none."""
    refuse_without_emulation(vendor)
    plugin = found(vendor)
    if plugin is None:
        raise RunError(
            Text(
                f"{vendor.plugin} is not set up for this PyTorch; `ferry emulate setup --to {vendor.name}` "
                "downloads it once into a separate folder",
                f"尚未为当前 PyTorch 安装 {vendor.plugin}；`ferry emulate setup --to {vendor.name}` "
                "会将其下载到单独的文件夹",
            )
        )
    return plugin


def kept_folder(vendor: Vendor) -> Path:
    """Where we keep the one for this Python, this PyTorch and this sort of machine; it need not exist."""
    name = f"{vendor.plugin}-{torch_release()}-{python_tag()}-{platform.machine()}"
    return build_cache.folder(CACHE) / name


def _named(folder: Path, vendor: Vendor) -> Plugin:
    plugin = _plugin_in(folder.absolute(), vendor)
    if plugin is None:
        raise RunError(
            Text(
                f"${VARIABLE} is {str(folder)!r}, which holds no {vendor.plugin}; set it to the folder of an "
                "unpacked wheel, or unset it",
                f"${VARIABLE} 的值 {str(folder)!r} 中没有 {vendor.plugin}；请设为解压 wheel 的文件夹，或取消设置",
            )
        )
    torch = torch_release()
    if not plugin.fits(torch):
        raise RunError(
            Text(
                f"${VARIABLE} names {vendor.plugin} {plugin.version}, made for torch {release_of(plugin.version)}"
                f", but torch {torch} is installed",
                f"${VARIABLE} 指定的 {vendor.plugin} {plugin.version} 对应 torch {release_of(plugin.version)}，"
                f"而已安装的是 torch {torch}",
            )
        )
    return plugin


def _plugin_in(folder: Path, vendor: Vendor, is_kept: bool = False) -> Plugin | None:
    if not (folder / vendor.plugin / "__init__.py").is_file():
        return None
    return Plugin(folder, version_in(folder, vendor.plugin), is_kept)


def _installed(vendor: Vendor) -> Plugin | None:
    """In the user's environment. The simulator's stand-in for it is not on the path that is asked here, or has no
    version."""
    spec = PathFinder.find_spec(vendor.plugin)
    if spec is None or not spec.origin:
        return None
    plugin = _plugin_in(Path(spec.origin).parent.parent, vendor)
    return plugin if plugin is not None and plugin.version else None


def set_up(vendor: Vendor, wheel: Path | None, say: Callable[[Text], None]) -> Plugin:
    """Put the plugin into our folder: from a wheel that the user has, or fetched as pip is set up to fetch. It is
    there whole or not at all."""
    refuse_without_emulation(vendor)
    torch = torch_release()
    package = load_machine(Path(vendor.folder)).plugin.package or vendor.plugin.replace("_", "-")
    cache = build_cache.writable_folder(CACHE)
    place = cache / kept_folder(vendor).name
    wanted = Wanted(vendor.plugin, package, torch)
    lock = place.with_name(f"{place.name}.lock")
    with build_cache.locked(lock, lambda: say(_WAITING)):
        remove_leftovers(cache)
        if wheel is None:
            there = _plugin_in(place, vendor, is_kept=True)
            if there is not None and there.fits(torch):
                return there
        with folder_aside(cache) as aside:
            if wheel is None:
                say(_FETCHING.format(package=package, torch=torch))
                wheel = fetch(wanted, aside.path / "fetched", vendor.name)
            unpacked = aside.path / "unpacked"
            unpack(wheel, wanted, unpacked)
            aside.replace(unpacked, place, lambda old: True)
    made = _plugin_in(place, vendor, is_kept=True)
    assert made is not None
    return made


def remove(vendor: Vendor) -> list[Path]:
    """Take away what we keep of a vendor's plugin, for every PyTorch; answers what was there."""
    refuse_without_emulation(vendor)
    cache = build_cache.folder(CACHE)
    gone = []
    for folder in sorted(cache.glob(f"{vendor.plugin}-*")):
        if folder.is_dir() and not folder.is_symlink():
            build_cache.remove(folder)
            gone.append(folder)
    return gone
