"""What a vendor's variables and options do to speed, and how its host log is read; read only when asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors.model import Source
from torchferry.vendors.schema import HOST_FILE, Table, read_table


@dataclass(frozen=True)
class Tuning:
    """One variable or option; "" means: not known, or nothing to say."""

    name: str
    what: Text
    source: str
    cost: Text
    option: str = ""  # the statement that sets it, if it is no environment variable
    values: str = ""
    default: str | None = None  # what holds when it is not set; None: unknown
    recommended: str = ""
    slow: str = ""  # pattern of values that cost speed
    improvable: str = ""  # pattern of values that are worth another try


@dataclass(frozen=True)
class HostLog:
    """The forms of the lines that a runtime logs about operators. Patterns are those of Python."""

    operator: tuple[str, ...]  # what stands before an operator's type
    compile: str  # what every line about compiling has
    compile_line: str  # type, and milliseconds where it has them
    header: str  # level, process, time, thread
    tensor: str  # side, dtype, format, storage, shape
    miss: str = ""  # what a line has where no compiled operator was found; "": there is no such line
    miss_line: str = ""
    attributes: str = ""
    line_limit: int = 0  # characters; 0: lines are never cut
    summary_prefix: str = ""  # how a line begins that counts for the summary of the vendor's guide
    conversions: tuple[str, ...] = ()  # operators that change type, format or layout
    skipped_folders: str = ""  # pattern of folders that hold logs of devices
    folder: str = ""  # where logs lie by default
    settings: tuple[str, ...] = ()  # VARIABLE=value that make the runtime log all this
    written_when: tuple[
        str, ...
    ] = ()  # VARIABLE=pattern: a simulated device writes the log if all of them fit
    operator_text: str = ""  # the line that it writes: process, thread, time, type, tensors
    tensor_text: str = ""  # each of its tensors: side, number, dtype, format, shape
    compile_text: str = ""  # the line where an operator is compiled
    dtypes: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WeightFormats:
    """The storage formats in which the device's kernels take weights."""

    cast: str  # the function that casts: tensor, number of the format
    modules: Mapping[str, str]  # class of torch.nn -> number of the format
    source: str


@dataclass(frozen=True)
class HostTable:
    """What host.toml says."""

    tuning: tuple[Tuning, ...]
    log: HostLog | None
    sources: tuple[Source, ...]
    weight_formats: WeightFormats | None = None


def load_host(vendor_folder: Path) -> HostTable:
    """Read host.toml of a vendor folder; without one nothing is known."""
    file = vendor_folder / HOST_FILE
    data = read_table(file) if file.exists() else {}
    _check_patterns(file, data)
    sources = tuple(
        Source(row["name"], row.get("version", ""), row.get("path", "")) for row in data.get("sources", ())
    )
    log = _log(data["host_log"]) if "host_log" in data else None
    formats = WeightFormats(**data["weight_formats"]) if "weight_formats" in data else None
    return HostTable(tuple(map(_tuning, data.get("tuning", ()))), log, sources, formats)


def _tuning(row: Table) -> Tuning:
    plain = {
        key: row[key]
        for key in ("option", "values", "default", "recommended", "slow", "improvable")
        if key in row
    }
    cost = row.get("cost", "")
    return Tuning(
        row["name"],
        Text(row["what"], row.get("what_zh") or row["what"]),
        row["source"],
        Text(cost, row.get("cost_zh") or cost),
        **plain,
    )


def _log(table: Table) -> HostLog:
    values: Table = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return HostLog(**values)


def _check_patterns(file: Path, data: Table) -> None:
    """A pattern that does not compile is found here, not in the midst of a log."""
    log = data.get("host_log", {})
    named = {
        f"host_log.{key}": log[key]
        for key in ("compile_line", "miss_line", "header", "tensor", "attributes", "skipped_folders")
        if key in log
    }
    for number, row in enumerate(data.get("tuning", ()), 1):
        named |= {f"tuning[{number}].{key}": row[key] for key in ("slow", "improvable") if key in row}
    for name, pattern in named.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise VendorError(
                f"{file}: key '{name}' is no regular expression ({error}); correct it"
            ) from None
