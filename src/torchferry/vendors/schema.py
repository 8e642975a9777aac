"""What a vendor folder may hold: each file's keys, their types and allowed values, and the check of them.

A user's own vendor needs only vendor.toml with the keys marked as required below: name, company, device_type,
plugin, torch_module, dist_backend, tensor_method, is_attribute. What it doesn't say is unknown.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from torchferry.errors import VendorError
from torchferry.vendors.keys import DOTTED as _DOTTED
from torchferry.vendors.keys import NAME as _NAME
from torchferry.vendors.keys import OPTIONAL_DOTTED as _OPTIONAL_DOTTED
from torchferry.vendors.keys import SOURCES as _SOURCES
from torchferry.vendors.keys import Key, Kind
from torchferry.vendors.keys import text as _text
from torchferry.vendors.machine_keys import MACHINE
from torchferry.vendors.model import MissingOperator, Narrowing, Support
from torchferry.vendors.offline_keys import OFFLINE
from torchferry.vendors.zoo_keys import ZOO

Table = dict[str, Any]  # parsed TOML, of which the check below vouches for the types

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


def _wording(*placeholders: str) -> Key:
    """A message in which nothing but these placeholders stands in braces."""
    example = (
        '"text with ' + ", ".join(f"{{{name}}}" for name in placeholders) + '"' if placeholders else '"text"'
    )
    inside = "".join(rf"|\{{{name}\}}" for name in placeholders)
    return _text(example, rf"(?s)([^{{}}]{inside})*")


_SETTINGS = Key(Kind.TEXTS, '["VARIABLE=1"]', pattern=rf"{_NAME}=.*")

_LIMITS = Key(
    Kind.TABLE,
    '[limits] with missing_operator = "raises" and others',
    rows={
        "operator_version": _text('"2.4"', r"(\d+(\.\d+)*)?"),
        "missing_operator": Key(
            Kind.TEXT, '"raises"', allowed=tuple(entry.value for entry in MissingOperator)
        ),
        "raise_when": _SETTINGS,
        "fall_back_when": _SETTINGS,
        "backend_name": _text('"ACME"', r"\w*"),
        "missing_message": _wording("operator", "backend"),
        "raise_when_message": _wording("operator", "backend"),
        "fallback_message": _wording("operator"),
        "out_of_memory_message": _wording("device", "wanted", "total", "allocated", "reserved", "free"),
        "data_parallel_message": _wording(),
        "refused_reductions": Key(Kind.TEXTS, '["float64"]', pattern=r"\w+"),
        "refused_reduction_message": _wording("dtype"),
        "shallow_copy": Key(Kind.FLAG, "true"),
        "device_name": _text('"Acme 100"'),
        "device_memory": _text('"64GiB"', r"(\d+[KMGT]iB)?"),
        "device_count": Key(Kind.NUMBER, "8"),
        "dtypes": Key(
            Kind.TABLES,
            '[limits.dtypes.float64] with narrowing = "computed_as", becomes = "float32"',
            rows={
                "narrowing": Key(
                    Kind.TEXT,
                    '"computed_as"',
                    required=True,
                    allowed=tuple(entry.value for entry in Narrowing),
                ),
                "becomes": _text('"float32"', r"\w*"),
                "message": _wording("dtype", "becomes"),
                "when": _SETTINGS,
                "unlisted": Key(Kind.TEXTS, '["mm"]', pattern=r"\w+"),
            },
        ),
        "sparse": Key(
            Kind.TABLE,
            '[limits.sparse] with missing_operator = "raises"',
            rows={
                "missing_operator": Key(
                    Kind.TEXT,
                    '"raises"',
                    required=True,
                    allowed=tuple(entry.value for entry in MissingOperator),
                ),
                "kernels": Key(Kind.TEXTS, '["add.out"]', pattern=r"[\w.]+"),
                "missing_message": _wording("operator"),
                "fallback_message": _wording("operator"),
            },
        ),
        "saturation": Key(
            Kind.TABLE,
            '[limits.saturation] with dtypes = ["float16"]',
            rows={
                "dtypes": Key(Kind.TEXTS, '["float16"]', required=True, pattern=r"\w+"),
                "cards": Key(Kind.TEXTS, '["Acme 10"]'),
                "when": _SETTINGS,
                "refused_when": _SETTINGS,
                "refused_message": _wording(),
            },
        ),
    },
)

_CARDS = Key(
    Kind.ROWS,
    '[[cards]] with name = "Acme 50", memory = "32GiB", source = "..."',
    rows={
        "name": _text('"Acme 50"', r".+", required=True),
        "memory": _text('"32GiB"', r"(\d+[KMGT]iB)?"),
        "count": Key(Kind.NUMBER, "8"),
        "without": Key(Kind.TEXTS, '["bfloat16"]', pattern=r"\w+"),
        "without_message": _wording("dtype"),
        "amp_dtypes": Key(Kind.TEXTS, '["float16"]', pattern=r"\w+"),
        "ranks": Key(Kind.TEXTS, '["1", "2", "4"]', pattern=r"[1-9]\d*"),
        "source": _text('"where this is known from"', r".+", required=True),
    },
)

_TUNING = Key(
    Kind.ROWS,
    '[[tuning]] with name = "...", what = "...", source = "..."',
    rows={
        "name": _text('"ACME_QUEUE"', _NAME, required=True),
        "option": _text('"torch.acme.set_option(queue=True)"'),
        "values": _text('"0|1"'),
        "default": _text('"0"'),
        "recommended": _text('"1"'),
        "slow": _text('"0"'),
        "improvable": _text('"1"'),
        "what": _text('"what it does"', r".+", required=True),
        "what_zh": _text('"the same in Chinese"'),
        "cost": _text('"what the slow values cost"'),
        "cost_zh": _text('"the same in Chinese"'),
        "source": _text('"where this is known from"', r".+", required=True),
    },
)

_WEIGHT_FORMATS = Key(
    Kind.TABLE,
    '[weight_formats] with cast = "torch_acme.format_cast" and [weight_formats.modules]',
    rows={
        "cast": _text('"torch_acme.format_cast"', r"[\w.]+\.\w+", required=True),
        "source": _text('"where this is known from"', r".+", required=True),
        "modules": Key(Kind.TEXT_TABLE, '[weight_formats.modules] with Conv2d = "4"', required=True),
    },
)

_HOST_LOG = Key(
    Kind.TABLE,
    '[host_log] with operator = ["..."] and others',
    rows={
        "operator": Key(Kind.TEXTS, '["text before an operator\'s type"]', required=True),
        "compile": _text('"text of each line about compiling"', required=True),
        "compile_line": _text("'compiled (?P<type>.*)'", r".*\(\?P<type>.*", required=True),
        "miss": _text('"text of a failed look-up"'),
        "miss_line": _text("'for (?P<type>.*)'"),
        "header": _text("'(?P<process>\\d+) (?P<time>.*)'", required=True),
        "tensor": _text("'(?P<side>In|Out) (?P<shape>.*)'", required=True),
        "attributes": _text("'Attr: (?P<attributes>.*)'"),
        "line_limit": Key(Kind.NUMBER, "1024"),
        "summary_prefix": _text('"[INFO]"'),
        "conversions": Key(Kind.TEXTS, '["Cast"]'),
        "skipped_folders": _text('"device-.*"'),
        "folder": _text('"~/acme/log"'),
        "settings": _SETTINGS,
        "written_when": Key(Kind.TEXTS, '["ACME_LOG=1"]'),
        "operator_text": _text("'{time} {process} {type} {tensors}'"),
        "tensor_text": _text("'{side} {shape}'"),
        "compile_text": _text("'{time} {process} compiled {type}'"),
        "dtypes": Key(Kind.TEXT_TABLE, '[host_log.dtypes] with 0 = "float32"'),
        "formats": Key(Kind.TEXT_TABLE, '[host_log.formats] with 0 = "NCHW"'),
    },
)

SCHEMA: Mapping[str, Mapping[str, Key]] = {
    VENDOR_FILE: {
        # Required: without these nothing can be converted. Everything else defaults to unknown.
        "name": _text('"acme"', r"(?!portable$)[a-z][a-z0-9_-]*", required=True),
        "company": _text('"Acme Ltd"', r".+", required=True),
        "company_zh": _text('"the same in Chinese"'),
        "device_type": _text('"acme"', r"[a-z]\w*", required=True),
        "plugin": _text('"torch_acme" ("" when PyTorch has the device in tree)', _OPTIONAL_DOTTED, True),
        "torch_module": _text('"torch.acme"', _DOTTED, required=True),
        "dist_backend": _text('"accl"', r"\w*", required=True),
        "tensor_method": _text('"acme", as in tensor.acme()', _NAME, required=True),
        "is_attribute": _text('"is_acme"', _NAME, required=True),
        "visible_devices_env": _text('"ACME_VISIBLE_DEVICES"', rf"({_NAME})?"),
        "smi": _text('"acme-smi"'),
        "amp_module": _text('"torch.acme.amp"', _OPTIONAL_DOTTED),
        "autocast_device_type": _text('"acme"', r"\w*"),
        "amp_dtypes": Key(Kind.TEXTS, '["float16", "bfloat16"]'),
        "fused_optimizer_module": _text('"torch_acme.optim"', _OPTIONAL_DOTTED),
        "fused_optimizers": Key(Kind.TEXTS, '["FusedAdam"]'),
        "profiler_module": _text('"torch.profiler"', _OPTIONAL_DOTTED),
        "profiler_activity": _text('"ACME"', rf"({_NAME})?"),
        "marker_module": _text('"torch.acme.marks"', _OPTIONAL_DOTTED),
        "memory_format": _text(),
        "channels_last": Key(Kind.FLAG, "false"),
        "data_parallel": Key(Kind.TEXT, '"unknown"', allowed=tuple(entry.value for entry in Support)),
        "jit_script": _text(),
        "jit_script_by_migration": Key(Kind.FLAG, "false"),
        "migrations": Key(Kind.TEXTS, '["torch_acme.utils.cuda_migrate"]'),
        "graphs": _text(),
        "apex": _text(),
        "apex_initialize": _text('"combine_grad=True"', rf"({_NAME}=.+)?"),
        "triton": _text(),
        "extension": _text(),
        "missing_op": _text(),
        "oom_exception": _text('"torch.acme.OutOfMemoryError"', _OPTIONAL_DOTTED),
        "dtypes": Key(Kind.TEXT_TABLE, '[dtypes] with float64 = "limit in words"'),
        "env": Key(Kind.TEXT_TABLE, '[env] with VARIABLE = "meaning"'),
        "env_map": Key(
            Kind.TEXT_TABLE, '[env_map] with CUDA_VARIABLE = "VARIABLE" or ""', pattern=rf"({_NAME})?"
        ),
        "launch_env": Key(Kind.TEXT_TABLE, '[launch_env] with VARIABLE = "value"', pattern=r"[\w.:/,-]+"),
        "emulation": Key(
            Kind.TABLE,
            '[emulation] with toolkit = "cann"',
            rows={
                "toolkit": _text('"cann"', r"[a-z]\w*", required=True),
                "card": _text('"Acme100"', r"\w*"),
            },
        ),
        "cards": _CARDS,
        "limits": _LIMITS,
        "sources": _SOURCES,
    },
    APIS_FILE: {
        "complete": Key(Kind.FLAG, "false"),
        "apis": Key(
            Kind.TEXT_TABLE,
            '[apis] with "torch.cuda.NAME" = "same", "unsupported", "unknown" or the new full name',
            pattern=_DOTTED,
        ),
        "basis": Key(Kind.LIST_TABLE, '[basis] with how = ["torch.cuda.NAME"]'),
        "notes": Key(Kind.TEXT_TABLE, '[notes] with "torch.cuda.NAME" = "limit in words"'),
        "sources": _SOURCES,
    },
    REPLACEMENTS_FILE: {
        "replacements": Key(
            Kind.ROWS,
            '[[replacements]] with cuda = "...", use = "..."',
            rows={
                "cuda": _text('"apex.optimizers.FusedAdam"', _DOTTED, required=True),
                "use": _text('"what to use instead"', required=True),
                "automatic": _text('"torch.optim.AdamW"', _OPTIONAL_DOTTED),
                "same_arguments": Key(Kind.FLAG, "true"),
            },
        ),
        "sources": _SOURCES,
    },
    SIMILAR_FILE: {
        "similar": Key(
            Kind.ROWS,
            '[[similar]] with cuda = "...", use = "...", why = "...", source = "..."',
            rows={
                "cuda": _text('"torch.logit(input, eps=None)"', rf"{_DOTTED}(\(.*\))?", required=True),
                "use": _text('"torch.log({input} / (1 - {input}))"'),
                "kind": Key(Kind.TEXT, '"unsupported"', allowed=("unsupported", "risk")),
                "also": Key(Kind.TEXTS, '["torch.special.logit"]', pattern=_DOTTED),
                "when": Key(Kind.TEXTS, '["eps=None"]', pattern=rf"{_NAME}(=.+|:whole)?"),
                "takes": Key(Kind.TEXTS, '["params", "lr"]', pattern=_NAME),
                "ignored": Key(Kind.TEXTS, '["foreach"]', pattern=_NAME),
                "exact": Key(Kind.FLAG, "true"),
                "keeps_gradients": Key(Kind.FLAG, "true"),
                "why": _text('"what is wrong with the original"', r".+", required=True),
                "why_zh": _text('"the same in Chinese"'),
                "remark": _text('"what may differ"'),
                "remark_zh": _text('"the same in Chinese"'),
                "source": _text('"where this is known from"', r".+", required=True),
            },
        ),
        "sources": _SOURCES,
    },
    ERRORS_FILE: {
        "errors": Key(
            Kind.ROWS,
            '[[errors]] with regex = "...", class = "...", cause = "...", remedy = "..."',
            rows={
                "id": _text('"out-of-memory"', r"[a-z0-9-]+"),
                "regex": _text('"out of memory"', r"(?s).+"),
                "frames": _text('"/urllib/"', r"(?s).+"),
                "codes": Key(Kind.TEXTS, '["207001"]', pattern=r"\w+|\*"),
                "class": _text('"oom"', r"\w+", required=True),
                "effect": _text('"consequence"', allowed=("error", "consequence", "notice", "harmless")),
                "cause": _text('"why"', required=True),
                "cause_zh": _text('"the same in Chinese"'),
                "remedy": _text('"what to do"', required=True),
                "remedy_zh": _text('"the same in Chinese"'),
                "late": _text('"CUDA_LAUNCH_BLOCKING=1"'),
                "rank": Key(Kind.NUMBER, "1"),
                "source": _text('"where this is known from"'),
            },
        ),
        "code_forms": Key(Kind.TEXTS, '["error code is ([0-9]+)"]'),
        "codes": Key(Kind.TEXT_TABLE, '[codes] with E001 = "meaning"'),
        "codes_zh": Key(Kind.TEXT_TABLE, '[codes_zh] with E001 = "the same in Chinese"'),
        "sources": _SOURCES,
    },
    OLD_NAMES_FILE: {
        "old": Key(
            Kind.ROWS,
            '[[old]] with name = "torch.acme.old", new = "torch_acme.today", why = "...", source = "..."',
            rows={
                "name": _text('"torch.acme.old"', _OPTIONAL_DOTTED),
                "method": _text('"acme_cast"', rf"({_NAME})?"),
                "argument": _text('"use_acme"', rf"({_NAME})?"),
                "new": _text('"torch_acme.today"', _OPTIONAL_DOTTED),
                "write": _text('"use_device=\\"acme\\""', rf"({_NAME}=.+)?"),
                "why": _text('"why"', r".+", required=True),
                "why_zh": _text('"the same in Chinese"'),
                "source": _text('"where this is known from"', r".+", required=True),
            },
        ),
        "sources": _SOURCES,
    },
    LIBRARIES_FILE: {
        "libraries": Key(
            Kind.ROWS,
            '[[libraries]] with name = "...", calls = ["..."], what = "...", source = "..."',
            rows={
                "name": _text('"timm"', r".+", required=True),
                "calls": Key(Kind.TEXTS, '["timm.data.create_loader"]', required=True, pattern=_DOTTED),
                "knows": Key(Kind.TEXTS, '["cuda", "npu"]', pattern=r"[a-z]\w*"),
                "what": _text('"what it does on other devices"', r".+", required=True),
                "what_zh": _text('"the same in Chinese"'),
                "helper": _text('"ferry_lightning"', rf"({_NAME})?"),
                "argument": _text('"device"', rf"({_NAME})?"),
                "position": Key(Kind.NUMBER, "1"),
                "write": _text('"{device}"'),
                "source": _text('"where this is known from"', r".+", required=True),
            },
        ),
        "sources": _SOURCES,
    },
    HOST_FILE: {
        "tuning": _TUNING,
        "host_log": _HOST_LOG,
        "weight_formats": _WEIGHT_FORMATS,
        "sources": _SOURCES,
    },
    MACHINE_FILE: MACHINE,
    ZOO_FILE: ZOO,
    OFFLINE_FILE: OFFLINE,
}


def read_table(file: Path) -> Table:
    """Read one file of a vendor folder and check it against the schema."""
    data = _parse(file)
    check(file, data)
    return data


def check(file: Path, data: Table) -> None:
    """Raise VendorError at the first key that does not fit the file's schema."""
    _check_keys(file, data, SCHEMA[file.name], "")


def check_files(folder: Path) -> None:
    """Raise VendorError for a table whose name is none of the known ones: it would be passed over in silence."""
    for file in sorted(folder.glob("*.toml")):
        if file.name not in SCHEMA:
            hint = _closest(file.name, SCHEMA)
            raise VendorError(f"{file}: unknown file in a vendor folder; {hint}")


def toml_module() -> Any:
    """The reader of TOML that this Python has; imported late, as it takes longer than everything else here."""
    return importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def _parse(file: Path) -> Table:
    toml = toml_module()
    try:
        data: Table = toml.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise VendorError(
            f"{file}: can't be read ({error.strerror}); check the path and its permissions"
        ) from None
    except UnicodeDecodeError:
        raise VendorError(f"{file}: not UTF-8; save it as UTF-8") from None
    except toml.TOMLDecodeError as error:
        raise VendorError(f"{file}: not valid TOML, {error}; correct the syntax there") from None
    return data


def _check_keys(file: Path, data: Table, keys: Mapping[str, Key], prefix: str) -> None:
    for name in data:
        if name not in keys:
            raise VendorError(f"{file}: unknown key '{prefix}{name}'; {_closest(name, keys)}")
    for name, key in keys.items():
        if name in data:
            _check_value(file, prefix + name, data[name], key)
        elif key.required:
            raise VendorError(f"{file}: key '{prefix}{name}' is missing; add {name} = {key.example}")


def _check_value(file: Path, name: str, value: object, key: Key) -> None:
    if not _FITS[key.kind](value):
        raise _wrong(file, name, value, key.kind.value, key)
    if isinstance(value, str):
        _check_text(file, name, value, key)
    elif isinstance(value, dict) and key.pattern:
        for inner, text in value.items():
            _check_text(file, f"{name}.{inner}", text, key)
    elif isinstance(value, list) and key.pattern:
        for number, text in enumerate(value, 1):
            _check_text(file, f"{name}[{number}]", text, key)
    for prefix, table in _tables(name, value, key.kind):
        _check_keys(file, table, key.rows, prefix)


def _tables(name: str, value: Any, kind: Kind) -> list[tuple[str, Table]]:
    """The tables within a value, each with what stands before its keys in an error message."""
    if kind is Kind.TABLE:
        return [(f"{name}.", value)]
    if kind is Kind.TABLES:
        return [(f"{name}.{inner}.", table) for inner, table in value.items()]
    if kind is Kind.ROWS:
        return [(f"{name}[{number}].", row) for number, row in enumerate(value, 1)]
    return []


def _check_text(file: Path, name: str, value: str, key: Key) -> None:
    if key.allowed and value not in key.allowed:
        raise _wrong(file, name, value, "one of " + ", ".join(f'"{entry}"' for entry in key.allowed), key)
    if key.pattern and not re.fullmatch(key.pattern, value):
        raise _wrong(file, name, value, f"a string that matches {key.pattern}", key)


def _wrong(file: Path, name: str, value: object, expected: str, key: Key) -> VendorError:
    return VendorError(
        f"{file}: key '{name}' must be {expected}, found {_shown(value)}; write it as {key.example}"
    )


def _shown(value: object) -> str:
    kinds = {bool: "the flag", str: "the string", int: "the number", float: "the number", list: "the list"}
    text = repr(value).lower() if isinstance(value, bool) else repr(value)
    return f"{kinds.get(type(value), 'the table')} {text[:60]}"


def _closest(name: str, known: Iterable[str]) -> str:
    import difflib

    names = list(known)
    match = difflib.get_close_matches(name, names, n=1)
    return f"did you mean '{match[0]}'?" if match else f"remove it, or use one of {', '.join(names)}"


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


_FITS: Mapping[Kind, Callable[[object], bool]] = {
    Kind.TEXT: lambda value: isinstance(value, str),
    Kind.FLAG: lambda value: isinstance(value, bool),
    Kind.NUMBER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    Kind.TEXTS: _texts,
    Kind.TEXT_TABLE: lambda value: isinstance(value, dict) and _texts(list(value.values())),
    Kind.LIST_TABLE: lambda value: isinstance(value, dict) and all(map(_texts, value.values())),
    Kind.TABLE: lambda value: isinstance(value, dict),
    Kind.TABLES: lambda value: (
        isinstance(value, dict) and all(isinstance(row, dict) for row in value.values())
    ),
    Kind.ROWS: lambda value: isinstance(value, list) and all(isinstance(row, dict) for row in value),
}
