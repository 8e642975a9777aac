"""Whether the loader finds the libraries that the plugin needs, before a program fails with ImportError."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from torchferry.examination.device.elf import LibrarySearch, Needs, read_shared_object
from torchferry.examination.device.station import Station, library_path
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "libraries"
_SUBJECT = "libraries"
_FINE = Text("all {count} libraries that the plugin needs were found", "插件需要的 {count} 个库均已找到")
_FINE_WHY = Text(
    "read from the plugin's files and their dependencies, without loading them",
    "读自插件文件及其依赖的库，没有加载它们",
)
_MISSING = Text("not found: {names}", "未找到：{names}")
_NEEDED_BY = Text("{name} (for {file})", "{name}（{file} 需要）")
_ELSEWHERE = Text(
    "they are in {folder}, where the loader does not look: `import` fails with 'cannot open shared "
    "object file'",
    "它们位于 {folder}，但加载器不在该处查找：`import` 会报 'cannot open shared object file'",
)
_NOWHERE = Text(
    "the loader uses LD_LIBRARY_PATH and ld.so.conf; install the toolkit, or add its folders there",
    "加载器按 LD_LIBRARY_PATH 与 ld.so.conf 查找；请安装工具包，或将其文件夹加入其中",
)
_OTHER_PROCESSOR = Text("{file} is built for another processor", "{file} 是为其他处理器编译的")
_EXPECTED = Text(
    "the plugin is not installed, so the libraries it is known to need were checked",
    "插件未安装，因此检查的是已知它需要的库",
)
_OLD = Text("{file} lacks {versions}", "{file} 缺少 {versions}")
_OLD_WHY = Text(
    "{by} needs it: `import` fails with 'version ... not found'. Another {name} is found first, for "
    "example from a conda environment; use a newer one (conda install -c conda-forge libstdcxx-ng), "
    "or a newer system",
    "{by} 需要它：`import` 会报 'version ... not found'。有另一个 {name} 排在前面，例如 conda "
    "环境中的；请使用更新的版本（conda install -c conda-forge libstdcxx-ng），或更新的系统",
)
_MIXED = Text("{name} is found in {found}", "{name} 位于 {found}")
_MIXED_WHY = Text(
    "but the variables point to the toolkit {toolkit}: mixing libraries of two toolkits in one "
    "program causes strange errors; open a new shell and source only one script",
    "而变量指向的工具包是 {toolkit}：同一程序混用两个工具包的库会出现奇怪的错误；请新开 shell，"
    "只执行一个脚本",
)


def check(station: Station) -> Iterator[CheckResult]:
    """A result for what is missing, for what is too old, and for what is of another toolkit."""
    search = LibrarySearch(station)
    files = station.plugin_files
    needs = search.needs(files)
    # Without a plugin to ask: those that it is known to need.
    for name in () if files else station.table.libraries:
        place = search.find(name)
        if place is not None:
            needs.found[name] = place
        else:
            needs.missing[name] = Path()
    if not needs.found and not needs.missing:
        return
    if needs.missing:
        status = Status.BLOCKS if files or not station.vendor.plugin else Status.DOUBT
        yield CheckResult(ID, _SUBJECT, status, _list(station, needs), *_remedy(station, search, needs))
    else:
        why = _FINE_WHY if files else _EXPECTED
        yield CheckResult(ID, _SUBJECT, Status.FINE, _FINE.format(count=len(needs.found)), why)
    yield from _too_old(station, needs)
    yield from _mixed(station, needs)


def _list(station: Station, needs: Needs) -> Text:
    """The names; with the file that needs it where that is not the plugin itself, as then nobody would guess it."""
    own = station.package(station.vendor.plugin) if station.vendor.plugin else None
    names = []
    for name, file in needs.missing.items():
        is_known = not file.name or (own is not None and own in file.parents)
        names.append(Text(name, name) if is_known else _NEEDED_BY.format(name=name, file=station.shown(file)))
    listed = Text(", ".join(name.en for name in names), ", ".join(name.zh for name in names))
    return _MISSING.format(names=listed)


def _remedy(station: Station, search: LibrarySearch, needs: Needs) -> tuple[Text, tuple[Command, ...]]:
    wrong = next(filter(None, map(search.wrong_architecture, needs.missing)), None)
    if wrong is not None:
        return _OTHER_PROCESSOR.format(file=station.shown(wrong)), ()
    toolkit = station.toolkit_folder
    folders = [toolkit / name for name in station.table.toolkit.libraries] if toolkit else []
    folders += map(station.path, station.table.driver.libraries)
    useful = [folder for folder in folders if any(os.path.isfile(folder / name) for name in needs.missing)]
    if not useful:
        return _NOWHERE, ()
    shown = list(map(station.shown, useful))
    return _ELSEWHERE.format(folder=", ".join(shown)), (Command(library_path(shown), Reach.SHELL),)


def _too_old(station: Station, needs: Needs) -> Iterator[CheckResult]:
    """Libraries that are there, but without the versions of symbols that are asked for."""
    lacking: dict[str, dict[str, Path]] = {}
    for file, name, version in needs.wants:
        place = needs.found.get(name)
        library = read_shared_object(place) if place else None
        if library is not None and library.has and version not in library.has:
            lacking.setdefault(name, {}).setdefault(version, file)
    for name, versions in lacking.items():
        found = _OLD.format(file=station.shown(needs.found[name]), versions=", ".join(sorted(versions)))
        by = station.shown(next(iter(versions.values())))
        yield CheckResult(ID, name, Status.BLOCKS, found, _OLD_WHY.format(by=by, name=name))


def _mixed(station: Station, needs: Needs) -> Iterator[CheckResult]:
    """Libraries of the toolkit that come from another folder than the one that the variables name."""
    folder = station.toolkit_folder
    if folder is None or station.toolkit_architecture:
        return
    own = Path(os.path.realpath(folder))
    for name in station.table.libraries:
        place = needs.found.get(name)
        is_in_toolkit = any(os.path.isfile(folder / each / name) for each in station.table.toolkit.libraries)
        if place is not None and is_in_toolkit and own not in Path(os.path.realpath(place)).parents:
            found = _MIXED.format(name=name, found=station.shown(place.parent))
            why = _MIXED_WHY.format(toolkit=station.shown(folder))
            yield CheckResult(ID, "two toolkits", Status.DOUBT, found, why)
            return
