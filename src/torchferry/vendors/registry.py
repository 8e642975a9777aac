"""Which vendors there are, and one of them from its folder: built-in, of an installed package, or the user's.

Only vendor.toml, apis.toml and replacements.toml are read here; the other files where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.errors import VendorError
from torchferry.text import NOTHING, Text, did_you_mean, then
from torchferry.vendors.model import (
    Api,
    ApisFile,
    DtypeLimit,
    Narrowing,
    ReplacementsFile,
    Support,
    Vendor,
    natural_name,
)
from torchferry.vendors.schema import (
    APIS_FILE,
    REPLACEMENTS_FILE,
    VENDOR_FILE,
    check_files,
    make_record,
    read_file,
    read_table,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "torchferry.vendors"
_BUILT_IN = Path(__file__).parent
_WITHOUT_NAME = {entry.value: entry for entry in (Support.SAME, Support.UNSUPPORTED, Support.UNKNOWN)}


def vendor_names(extra: Sequence[Path] = ()) -> list[str]:
    """The names of all known vendors, in alphabetical order."""
    return sorted(_folders(extra))


def get_vendor(name: str, extra: Sequence[Path] = ()) -> Vendor:
    """One vendor by name; the user's folders come before the built-in ones, those before installed packages."""
    if not extra and (_BUILT_IN / name / VENDOR_FILE).is_file():
        return _built_in(name)  # without asking every installed package for entry points
    folders = _folders(extra)
    if name not in folders:
        for vendor in _known_by(name, folders):
            return vendor
        import difflib

        match = difflib.get_close_matches(name, folders, n=1)
        known = ", ".join(sorted(folders))
        unknown = Text(f"unknown vendor '{name}'", f"未知的厂商 '{name}'")
        listed = Text(
            f"known: {known}; add your own with --vendor-path DIR",
            f"已知厂商：{known}；可用 --vendor-path DIR 添加自己的厂商",
        )
        hint = did_you_mean([f"'{match[0]}'"]) if match else NOTHING
        raise VendorError(then(then(unknown, hint), listed))
    return load_vendor(folders[name]())


def _known_by(word: str, folders: dict[str, Callable[[], Path]]) -> Iterator[Vendor]:
    """The vendors that a word means in any case: by name, type of device or another name; the user's own first."""
    for find in reversed(folders.values()):
        with suppress(VendorError):  # of a package that is broken, and that nobody has asked for
            folder = find()
            record = read_table(folder / VENDOR_FILE)
            names = (record.get("name"), record.get("device_type"), *record.get("aliases", ()))
            if word.lower() in names:
                yield load_vendor(folder)


def vendor_of_device(device_type: str) -> Vendor | None:
    """The vendor whose devices PyTorch calls so; None: it is not known here."""
    return next(
        (vendor for vendor in map(get_vendor, vendor_names()) if vendor.device_type == device_type), None
    )


def load_vendor(folder: Path) -> Vendor:
    """Read and check a vendor folder; only vendor.toml is needed, what is missing is unknown."""
    if not (folder / VENDOR_FILE).is_file():
        raise VendorError(
            Text(
                f"{folder}: has no {VENDOR_FILE}; give a vendor folder",
                f"{folder}：没有 {VENDOR_FILE}；请给出厂商文件夹",
            )
        )
    check_files(folder)
    vendor = make_record(Vendor, read_table(folder / VENDOR_FILE))
    apis = read_file(folder / APIS_FILE, ApisFile)
    replacements = read_file(folder / REPLACEMENTS_FILE, ReplacementsFile)
    sources = (*vendor.sources, *apis.sources, *replacements.sources)
    return replace(
        vendor,
        # torch.autocast takes a device type; only a vendor that wants another one says so
        autocast_device_type=vendor.autocast_device_type or vendor.device_type,
        apis=_apis(apis, vendor.torch_module),
        apis_complete=apis.complete,
        api_notes=apis.notes,
        replacements=replacements.replacements,
        sources=tuple(dict.fromkeys(sources)),  # each once, the vendor's own first
        folder=str(folder),
    )


def _apis(file: ApisFile, torch_module: str) -> Mapping[str, Api]:
    basis = {name: how for how, names in file.basis.items() for name in names}
    found = {}
    for name, value in file.apis.items():
        support = _WITHOUT_NAME.get(value, Support.RENAMED)
        if support is Support.RENAMED:
            new = value
        else:
            new = "" if support is Support.UNSUPPORTED else natural_name(name, torch_module)
        found[name] = Api(support, new, basis.get(name, ""))
    return found


@cache
def _built_in(name: str) -> Vendor:
    """Read once: a process under `ferry run` asks for its vendor several times while it starts."""
    return load_vendor(_BUILT_IN / name)


def _folders(extra: Sequence[Path]) -> dict[str, Callable[[], Path]]:
    """Vendor name -> how to find its folder; an installed package is imported only when it is asked for."""
    from importlib.metadata import entry_points

    found: dict[str, Callable[[], Path]] = {}
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name):
        found[entry.name] = partial(_installed_folder, entry)
    for folder in _vendor_folders(_BUILT_IN):
        found[folder.name] = partial(Path, folder)
    for folder in extra:
        if not folder.is_dir():
            raise VendorError(
                Text(
                    f"no such folder: {folder}; --vendor-path takes a vendor folder or a folder of vendor folders",
                    f"没有该文件夹：{folder}；--vendor-path 需要厂商文件夹，或包含厂商文件夹的文件夹",
                )
            )
        folders = [folder] if (folder / VENDOR_FILE).is_file() else _vendor_folders(folder)
        if not folders:
            raise VendorError(
                Text(
                    f"{folder}: no {VENDOR_FILE} in it or in a folder below; add one",
                    f"{folder}：其中及下级文件夹都没有 {VENDOR_FILE}；请添加",
                )
            )
        for each in folders:
            found[read_table(each / VENDOR_FILE)["name"]] = partial(Path, each)
    return found


def _vendor_folders(folder: Path) -> list[Path]:
    return sorted(file.parent for file in folder.glob(f"*/{VENDOR_FILE}"))


def _installed_folder(entry: EntryPoint) -> Path:
    """The folder that an entry point leads to: a path, or a module beside a vendor.toml."""
    where = f"entry point '{entry.name}' ({entry.value})"
    try:
        target = entry.load()
    except Exception as error:  # whatever an installed package raises when it is imported
        raise VendorError(
            Text(
                f"{where} can't be loaded ({error}); repair or uninstall its package",
                f"{where} 无法加载（{error}）；请修复或卸载对应的包",
            )
        ) from error
    folder = None
    if isinstance(target, (str, Path)):
        folder = Path(target)
    elif file := getattr(target, "__file__", None):
        folder = Path(file).parent
    else:
        # a folder of data without __init__.py imports as a namespace package, which has only a search path
        folder = next((Path(entry) for entry in getattr(target, "__path__", ())), None)
    if folder is None or not (folder / VENDOR_FILE).is_file():
        raise VendorError(
            Text(
                f"{where} is not a vendor folder; it must be a path or a module beside a {VENDOR_FILE}",
                f"{where} 不是厂商文件夹；必须是 {VENDOR_FILE} 旁边的路径或模块",
            )
        )
    name = read_table(folder / VENDOR_FILE)["name"]
    if name != entry.name:
        raise VendorError(
            Text(
                f"{where} leads to the vendor '{name}'; give both the same name",
                f"{where} 指向厂商 '{name}'；请使两者名称一致",
            )
        )
    return folder


def with_card(vendor: Vendor, name: str | None) -> Vendor:
    """The vendor as a machine with this card shows it; the typical server's has its name, too."""
    if not name or name.lower() == vendor.limits.device_name.lower():
        return vendor
    card = next((card for card in vendor.cards if card.name.lower() == name.lower()), None)
    if card is None:
        known = ", ".join(card_names(vendor))
        raise VendorError(
            then(
                then(
                    Text(f"{vendor.name}: unknown card '{name}'", f"{vendor.name}：未知的卡 '{name}'"),
                    Text(f"known: {known}", f"已知的卡：{known}")
                    if known
                    else Text("leave --card out", "请去掉 --card"),
                ),
                Text(f"see `ferry vendors {vendor.name}`", f"见 `ferry vendors {vendor.name}`"),
            )
        )
    limits = vendor.limits
    dtypes = dict(limits.dtypes)
    if card.without_message:
        refused = DtypeLimit(Narrowing.REFUSED, message=card.without_message)
        dtypes.update(dict.fromkeys(card.without, refused))
    limits = replace(
        limits,
        device_name=card.name,
        device_memory=card.memory or limits.device_memory,
        device_count=card.count or limits.device_count,
        dtypes=dtypes,
    )
    return replace(vendor, card=card, amp_dtypes=card.amp_dtypes or vendor.amp_dtypes, limits=limits)


def card_names(vendor: Vendor) -> list[str]:
    """The cards that can be chosen, the typical one first."""
    return [*filter(None, [vendor.limits.device_name]), *(card.name for card in vendor.cards)]
