"""Whether the loader finds the libraries that the plugin needs, before a program fails with ImportError."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from torchferry.doctor.device.elf import read_shared_object
from torchferry.doctor.device.search import LibrarySearch
from torchferry.doctor.device.station import Station
from torchferry.doctor.model import Command, Reach, Result, Status
from torchferry.text import Text

ID = "libraries"
_SUBJECT = "libraries"
_FINE = Text("all {count} that the plugin needs are found", "插件需要的 {count} 个库均已找到")
_FINE_WHY = Text("read from the plugin's files, without loading them", "读自插件文件，未加载它们")
_MISSING = Text("not found: {names}", "未找到：{names}")
_ELSEWHERE = Text(
    "they lie in {folder}, where the loader does not look: `import` fails with 'cannot open shared object file'",
    "它们位于 {folder}，但加载器不在该处查找：`import` 会报 'cannot open shared object file'",
)
_NOWHERE = Text(
    "the loader looks in LD_LIBRARY_PATH and ld.so.conf: install the toolkit, or name its folders there",
    "加载器查找 LD_LIBRARY_PATH 与 ld.so.conf：请安装工具包，或在其中加入其目录",
)
_OTHER_PROCESSOR = Text("{file} is made for another processor", "{file} 是为其他处理器编译的")
_EXPECTED = Text(
    "the plugin is not installed: looked for those that it is known to need",
    "插件未安装：查找的是已知它需要的库",
)


_Asking = tuple[Path, tuple[str, ...]]  # the file that needs a library, and where that looks


def check(station: Station) -> Iterator[Result]:
    """One result; none where nothing is known to be needed."""
    search = LibrarySearch(station)
    of_plugin: dict[str, _Asking | None] = dict(_needed(station))
    is_installed = bool(of_plugin)
    needed = of_plugin or dict.fromkeys(station.table.libraries)
    if not needed:
        return
    missing = [name for name, by in needed.items() if not _found(search, name, by)]
    if not missing:
        why = _FINE_WHY if is_installed else _EXPECTED
        yield Result(ID, _SUBJECT, Status.FINE, _FINE.format(count=len(needed)), why)
        return
    status = Status.BLOCKS if is_installed or not station.vendor.plugin else Status.DOUBT
    found = _MISSING.format(names=", ".join(missing))
    yield Result(ID, _SUBJECT, status, found, *_remedy(station, search, missing))


def _needed(station: Station) -> Iterator[tuple[str, _Asking]]:
    """What the libraries of the plugin need."""
    folder = station.package(station.vendor.plugin) if station.vendor.plugin else None
    if folder is None:
        return
    for pattern in station.table.plugin.libraries:
        for file in sorted(folder.glob(pattern)):
            library = read_shared_object(file)
            if library is not None:
                for name in library.needed:
                    yield name, (file, library.search)


def _found(search: LibrarySearch, name: str, by: _Asking | None) -> bool:
    if name.startswith("ld-linux"):  # the loader itself
        return True
    return search.find(name, *(by or ())) is not None


def _remedy(station: Station, search: LibrarySearch, missing: list[str]) -> tuple[Text, tuple[Command, ...]]:
    wrong = next(filter(None, map(search.wrong_architecture, missing)), None)
    if wrong is not None:
        return _OTHER_PROCESSOR.format(file=station.shown(wrong)), ()
    toolkit = station.toolkit_folder
    folders = [toolkit / name for name in station.table.toolkit.libraries] if toolkit else []
    for folder in folders:
        if any((folder / library).is_file() for library in missing):
            shown = station.shown(folder)
            line = f'export LD_LIBRARY_PATH={shlex.quote(shown)}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
            return _ELSEWHERE.format(folder=shown), (Command(line, Reach.SHELL),)
    return _NOWHERE, ()
