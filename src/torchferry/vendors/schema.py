"""Reads the files of a vendor's folder: what they say is checked against their keys, and becomes a record."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from torchferry.errors import VendorError, not_readable
from torchferry.text import Text, did_you_mean, then
from torchferry.vendors.keys import Key, KeyType, fields_of, keys_of

Table = dict[str, Any]  # parsed TOML, of which the check below vouches for the types
Record = TypeVar("Record")

VENDOR_FILE = "vendor.toml"
APIS_FILE = "apis.toml"
REPLACEMENTS_FILE = "replacements.toml"
SIMILAR_FILE = "similar.toml"
ERRORS_FILE = "errors.toml"
HOST_FILE = "host.toml"
MACHINE_FILE = "machine.toml"
ZOO_FILE = "zoo.toml"
OFFLINE_FILE = "offline.toml"
LIBRARIES_FILE = "libraries.toml"
OLD_NAMES_FILE = "old_names.toml"
OPS_FILE = "ops.txt"
FOR_ALL = Path(__file__).parent / "any"  # what holds for every vendor
_MEANINGS = Path(__file__).parent / "meanings.toml"
# The record of each file, in a module that is imported only where the file is read.
RECORDS = {
    VENDOR_FILE: "model.Vendor",
    APIS_FILE: "model.ApisFile",
    REPLACEMENTS_FILE: "model.ReplacementsFile",
    SIMILAR_FILE: "similar.SimilarFile",
    ERRORS_FILE: "error_patterns.ErrorsFile",
    OLD_NAMES_FILE: "calls.OldNamesFile",
    LIBRARIES_FILE: "calls.LibrariesFile",
    HOST_FILE: "host.HostTable",
    MACHINE_FILE: "machine.MachineTable",
    ZOO_FILE: "zoo.ZooTable",
    OFFLINE_FILE: "offline.OfflineTable",
}


def record_type(file_name: str) -> type[Any]:
    """The record whose fields are the keys of a file."""
    module, _, name = RECORDS[file_name].partition(".")
    found: type[Any] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return found


def read_file(file: Path, record: type[Record]) -> Record:
    """What a file says; a file that is not there says nothing."""
    return make_record(record, read_table(file) if file.exists() else {})


def read_table(file: Path) -> Table:
    """Read one file of a vendor folder and check its keys."""
    data = _parse(file)
    _check_keys(file, data, keys_of(record_type(file.name)), "")
    return data


def make_record(record: type[Record], data: Table, **others: Any) -> Record:
    """The record of a checked table, with the fields that are no keys."""
    values: Table = {
        field: _value(key, data[name], data.get(f"{name}_zh"))
        for field, name, key in fields_of(record)
        if name in data
    }
    return record(**{**values, **others})


def _value(key: Key, value: Any, in_chinese: Any) -> Any:
    if key.translated:
        return Text(value, in_chinese or value)
    if key.record and key.kind is KeyType.TABLE:
        return make_record(key.record, value)
    if key.record and key.kind is KeyType.TABLES:
        return {name: make_record(key.record, table) for name, table in value.items()}
    if key.record:
        return tuple(make_record(key.record, row) for row in value)
    if key.kind is KeyType.LIST_TABLE:
        return {name: tuple(names) for name, names in value.items()}
    if key.kind is KeyType.TEXTS:
        return (key.value or tuple)(value)
    return key.value(value) if key.value else value


@dataclass(frozen=True)
class KeyMeaning:
    """What a key is for, and what `ferry vendors NAME` calls it where it shows it."""

    text: Text
    label: Text | None = None


def meanings(record: type[Any]) -> Mapping[str, KeyMeaning]:
    """What the keys of a record mean."""
    known = {**_meanings()[record.__name__], **_meanings()["every_file"]}
    if "sources" not in keys_of(record):
        del known["sources"]
    return {
        name: KeyMeaning(Text(english, chinese), Text(*label) if label else None)
        for name, (english, chinese, *label) in known.items()
    }


@cache
def _meanings() -> Mapping[str, Mapping[str, list[str]]]:
    return _parse(_MEANINGS)


def check_files(folder: Path) -> None:
    """Raise VendorError for a table whose name is none of the known ones: it would be passed over in silence."""
    for file in sorted(folder.glob("*.toml")):
        if file.name not in RECORDS:
            hint = _closest(file.name, RECORDS)
            raise VendorError(
                then(
                    Text(f"{file}: unknown file in a vendor folder", f"{file}：厂商文件夹中的未知文件"), hint
                )
            )


def toml_module() -> Any:
    """The reader of TOML that this Python has; imported late, as it takes longer than everything else here."""
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def _parse(file: Path) -> Table:
    toml = toml_module()
    try:
        data: Table = toml.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise VendorError(
            *not_readable(file, error, Text("check the path and its permissions", "请检查路径和权限")).texts
        ) from None
    except UnicodeDecodeError:
        raise VendorError(
            Text(f"{file}: not UTF-8; save it as UTF-8", f"{file}：不是 UTF-8；请保存为 UTF-8")
        ) from None
    except toml.TOMLDecodeError as error:
        raise VendorError(
            Text(
                f"{file}: not valid TOML, {error}; correct the syntax there",
                f"{file}：不是合法的 TOML，{error}；请改正该处语法",
            )
        ) from None
    return data


def _check_keys(file: Path, data: Table, keys: Mapping[str, Key], prefix: str) -> None:
    for name in data:
        if name not in keys:
            unknown = Text(f"{file}: unknown key '{prefix}{name}'", f"{file}：未知的键 '{prefix}{name}'")
            raise VendorError(then(unknown, _closest(name, keys)))
    for name, key in keys.items():
        if name in data:
            _check_value(file, prefix + name, data[name], key)
        elif key.required:
            raise VendorError(
                Text(
                    f"{file}: key '{prefix}{name}' is missing; add {name} = {key.example}{key.hint}",
                    f"{file}：缺少键 '{prefix}{name}'；请添加 {name} = {key.example}{key.hint}",
                )
            )


def _check_value(file: Path, name: str, value: Any, key: Key) -> None:
    if not _FITS[key.kind](value):
        raise _wrong(file, name, value, key.kind.value, key)
    if isinstance(value, str):
        _check_text(file, name, value, key)
    elif isinstance(value, dict) and key.pattern:
        for inner, text in value.items():
            _check_text(file, f"{name}.{inner}", text, key)
    elif isinstance(value, list) and (key.pattern or key.regex):
        for number, text in enumerate(value, 1):
            _check_text(file, f"{name}[{number}]", text, key)
    if key.record:
        tables = {f"{name}.": value}  # by what stands before their keys in an error message
        if key.kind is KeyType.TABLES:
            tables = {f"{name}.{inner}.": table for inner, table in value.items()}
        elif key.kind is KeyType.ROWS:
            tables = {f"{name}[{number}].": row for number, row in enumerate(value, 1)}
        for prefix, table in tables.items():
            _check_keys(file, table, keys_of(key.record), prefix)


def _check_text(file: Path, name: str, value: str, key: Key) -> None:
    if key.choices and value not in key.choices:
        raise _wrong(file, name, value, _one_of(key.choices), key)
    if key.pattern and not re.fullmatch(key.pattern, value):
        raise _wrong(
            file,
            name,
            value,
            Text(f"a string that matches {key.pattern}", f"与 {key.pattern} 匹配的字符串"),
            key,
        )
    if key.regex:  # a pattern that does not compile is found here, not in the midst of a log
        try:
            re.compile(value)
        except re.error as error:
            raise VendorError(
                Text(
                    f"{file}: key '{name}' is not a valid regular expression ({error}); correct it",
                    f"{file}：键 '{name}' 不是合法的正则表达式（{error}）；请改正",
                )
            ) from None


def _wrong(file: Path, name: str, value: object, expected: Text, key: Key) -> VendorError:
    example = key.example + key.hint
    said = Text(
        "{file}: key '{name}' must be {expected}, found {found}; write it as {example}",
        "{file}：键 '{name}' 必须是{expected}，实际为{found}；请写成 {example}",
    )
    return VendorError(
        said.format(file=file, name=name, expected=expected, found=_shown(value), example=example)
    )


def _one_of(choices: Iterable[str]) -> Text:
    listed = ", ".join(f'"{entry}"' for entry in choices)
    return Text(f"one of {listed}", f" {listed} 之一")


_TABLE = Text("the table", "表")
_KINDS: Mapping[type, Text] = {
    bool: Text("the flag", "开关"),
    str: Text("the string", "字符串"),
    int: Text("the number", "数字"),
    float: Text("the number", "数字"),
    list: Text("the list", "列表"),
}


def _shown(value: object) -> Text:
    text = (repr(value).lower() if isinstance(value, bool) else repr(value))[:60]
    return Text("{kind} {text}", "{kind} {text}").format(kind=_KINDS.get(type(value), _TABLE), text=text)


def _closest(name: str, known: Iterable[str]) -> Text:
    import difflib

    names = list(known)
    match = difflib.get_close_matches(name, names, n=1)
    shown = ", ".join(names)
    others = Text(f"remove it, or use one of {shown}", f"请删除，或改用其中之一：{shown}")
    return did_you_mean([f"'{match[0]}'"]) if match else others


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


_FITS: Mapping[KeyType, Callable[[object], bool]] = {
    KeyType.TEXT: lambda value: isinstance(value, str),
    KeyType.FLAG: lambda value: isinstance(value, bool),
    KeyType.NUMBER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    KeyType.TEXTS: _texts,
    KeyType.TEXT_TABLE: lambda value: isinstance(value, dict) and _texts(list(value.values())),
    KeyType.LIST_TABLE: lambda value: isinstance(value, dict) and all(map(_texts, value.values())),
    KeyType.TABLE: lambda value: isinstance(value, dict),
    KeyType.TABLES: lambda value: (
        isinstance(value, dict) and all(isinstance(row, dict) for row in value.values())
    ),
    KeyType.ROWS: lambda value: isinstance(value, list) and all(isinstance(row, dict) for row in value),
}
