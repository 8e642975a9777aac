"""What a vendor's variables and options do to speed, and how its host log is read; read only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors import keys
from torchferry.vendors.schema import HOST_FILE, read_file


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """One variable or option; "" means: not known, or nothing to say."""

    name: str = keys.text('"ACME_QUEUE"', keys.NAME, required=True)
    option: str = keys.text('"torch.acme.set_option(queue=True)"')
    values: str = keys.text('"0|1"')
    default: str | None = keys.text('"0"', default=None)  # None: unknown
    recommended: str = keys.text('"1"')
    slow: str = keys.expression('"0"')
    improvable: str = keys.expression('"1"')
    what: Text = keys.translated('"what it does"', r".+", required=True)
    cost: Text = keys.translated('"what the slow values cost"')
    source: str = keys.text('"where this is known from"', r".+", required=True)


@dataclass(frozen=True, kw_only=True)
class HostLog:
    """The forms of the lines that a runtime logs about operators. Patterns are those of Python."""

    operator: tuple[str, ...] = keys.texts('["text before an operator\'s type"]', required=True)
    compile: str = keys.text('"text of each line about compiling"', required=True)
    compile_line: str = keys.expression("'compiled (?P<type>.*)'", r".*\(\?P<type>.*", required=True)
    miss: str = keys.text('"text of a failed look-up"')
    miss_line: str = keys.expression("'for (?P<type>.*)'")
    header: str = keys.expression(r"'(?P<process>\d+) (?P<time>.*)'", required=True)
    tensor: str = keys.expression("'(?P<side>In|Out) (?P<shape>.*)'", required=True)
    attributes: str = keys.expression("'Attr: (?P<attributes>.*)'")
    line_limit: int = keys.number("1024")
    summary_prefix: str = keys.text('"[INFO]"')
    conversions: tuple[str, ...] = keys.texts('["Cast"]')
    skipped_folders: str = keys.expression('"device-.*"')
    folder: str = keys.text('"~/acme/log"')
    settings: tuple[str, ...] = keys.settings()
    written_when: tuple[str, ...] = keys.texts('["ACME_LOG=1"]')
    operator_text: str = keys.text("'{time} {process} {type} {tensors}'")
    tensor_text: str = keys.text("'{side} {shape}'")
    compile_text: str = keys.text("'{time} {process} compiled {type}'")
    dtypes: Mapping[str, str] = keys.text_table('[host_log.dtypes] with 0 = "float32"')
    formats: Mapping[str, str] = keys.text_table('[host_log.formats] with 0 = "NCHW"')


@dataclass(frozen=True)
class WeightFormats:
    """The storage formats in which the device's kernels take weights."""

    cast: str = keys.text('"torch_acme.format_cast"', r"[\w.]+\.\w+", required=True)
    modules: Mapping[str, str] = keys.text_table('[weight_formats.modules] with Conv2d = "4"', required=True)
    source: str = keys.text('"where this is known from"', r".+", required=True)


@dataclass(frozen=True)
class HostTable:
    """What host.toml says."""

    tuning: tuple[Tuning, ...] = keys.rows(
        Tuning, '[[tuning]] with name = "...", what = "...", source = "..."'
    )
    host_log: HostLog | None = keys.table(HostLog, '[host_log] with operator = ["..."] and others', None)
    weight_formats: WeightFormats | None = keys.table(
        WeightFormats,
        '[weight_formats] with cast = "torch_acme.format_cast" and [weight_formats.modules]',
        None,
    )
    sources: tuple[keys.Source, ...] = keys.sources()


def load_host(vendor_folder: Path) -> HostTable:
    """Read host.toml of a vendor folder; without one nothing is known."""
    return read_file(vendor_folder / HOST_FILE, HostTable)
