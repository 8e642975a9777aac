"""Reads evidence from whatever a run has left: JSON, CSV, a log, or files of TorchFerry's own."""

from __future__ import annotations

import codecs
import csv
import json
from pathlib import Path

from torchferry.errors import InputError
from torchferry.zoo.evidence import tables
from torchferry.zoo.evidence.logs import read_log
from torchferry.zoo.evidence.model import Evidence
from torchferry.zoo.evidence.own_files import KNOWN, is_proof, of_record

_RECORDS = (".h5", ".hdf5")
TEXTS = (".log", ".txt", ".csv", ".json", ".jsonl", "")
SUFFIXES = (*TEXTS, *_RECORDS)
_LARGEST = 512 << 20


def read_evidence(path: Path, *, of_original: bool = False) -> Evidence:
    """What a file shows; `of_original` chooses the side of a proof, which holds both."""
    try:
        if not path.is_file() and path.exists():
            raise InputError(f"{path}: is no file; give the log, CSV or JSON of a run")
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path}: more than {_LARGEST >> 20} MiB; give a summary, or a part of the log")
        found = _read(path, of_original)
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError, csv.Error):
        raise InputError(f"{path}: is damaged, or not of the form that it says; make it anew") from None
    if found.is_empty:
        raise InputError(
            f"{path}: no loss, accuracy or throughput found; give a log that prints them, a CSV with a head, JSON as "
            '{"curves": {"loss": [...]}, "metrics": {"acc1": 76.1}}, or a file of `ferry prove`, `watch`, `analyze`'
        )
    return found


def is_plain(path: Path) -> bool:
    """Whether it is a text of the run's own, that everybody can read, and not a file of TorchFerry's."""
    if path.suffix.lower() not in TEXTS:
        return False
    content = _json(path)
    return not (isinstance(content, dict) and any(fits(content) for fits, _ in KNOWN))


def holds_both(path: Path) -> bool:
    """Whether a file is a proof, which shows the original's run as well."""
    content = _json(path)
    return isinstance(content, dict) and is_proof(content)


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes()) if path.suffix.lower() == ".json" else None
    except (OSError, ValueError, RecursionError):
        return None


def _read(path: Path, of_original: bool) -> Evidence:
    suffix = path.suffix.lower()
    if suffix in _RECORDS:
        return of_record(path)
    text = _text(path.read_bytes())
    if suffix == ".csv":
        return tables.of_csv(text, path.name)
    if suffix in (".json", ".jsonl"):
        return _of_json(text, path, of_original)
    return read_log(text.splitlines(), path.name)


def _text(data: bytes) -> str:
    """The shells of Windows write UTF-16."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _of_json(text: str, path: Path, of_original: bool) -> Evidence:
    try:
        content = json.loads(text)
    except ValueError:
        return tables.of_lines(text, path)
    if isinstance(content, list):
        return tables.of_rows([row for row in content if isinstance(row, dict)], path.name)
    if not isinstance(content, dict):
        return Evidence(source=path.name)
    for fits, read in KNOWN:
        if fits(content):
            return read(content, path.name, of_original)
    return tables.of_plain(content, path.name)
