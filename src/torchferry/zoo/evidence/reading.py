"""Reads evidence from whatever a run has left: JSON, CSV, a log, or files of TorchFerry's own."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torchferry.errors import InputError
from torchferry.zoo.evidence.logs import read_log
from torchferry.zoo.evidence.model import FORMAT, Evidence

_RECORDS = (".h5", ".hdf5")
_STEP_NAMES = {"step", "steps", "epoch", "iter", "iteration", "index", "time", "timestamp", ""}
_LARGEST = 512 << 20


def read_evidence(path: Path, *, of_original: bool = False) -> Evidence:
    """What a file shows; `of_original` chooses the side of a proof, which holds both."""
    try:
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


def holds_both(path: Path) -> bool:
    """Whether a file is a proof, which shows the original's run as well."""
    try:
        content = json.loads(path.read_bytes()) if path.suffix.lower() == ".json" else None
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and _is_proof(content)


def _read(path: Path, of_original: bool) -> Evidence:
    suffix = path.suffix.lower()
    if suffix in _RECORDS:
        return _of_record(path)
    text = path.read_text("utf-8-sig", "replace")
    if suffix == ".csv":
        return _of_table(text, path.name)
    if suffix in (".json", ".jsonl"):
        return _of_json(text, path, of_original)
    return read_log(text.splitlines(), path.name)


def _of_json(text: str, path: Path, of_original: bool) -> Evidence:
    try:
        content = json.loads(text)
    except ValueError:
        return _of_lines(text, path)
    if isinstance(content, list):
        return _of_rows([row for row in content if isinstance(row, dict)], path.name)
    if not isinstance(content, dict):
        return Evidence(source=path.name)
    for fits, read in _KNOWN:
        if fits(content):
            return read(content, path.name, of_original)
    return _of_plain(content, path.name)


def _of_lines(text: str, path: Path) -> Evidence:
    """A JSON object on each line, as loggers write them."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                raise InputError(f"{path}: line {number} is no JSON; give a whole file") from None
            if isinstance(row, dict):
                rows.append(row)
    return _of_rows(rows, path.name)


def _of_rows(rows: list[dict[str, Any]], source: str) -> Evidence:
    curves: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            number = _number(value)
            # cells beyond the head of a table have no name
            if number is not None and isinstance(name, str) and name.lower() not in _STEP_NAMES:
                curves.setdefault(name.strip().lower(), []).append(number)
    return _sorted_out(curves, source)


def _of_table(text: str, source: str) -> Evidence:
    return _of_rows(list(csv.DictReader(text.splitlines())), source)


def _sorted_out(columns: Mapping[str, list[float]], source: str) -> Evidence:
    """Losses are curves, of everything else the last value counts."""
    curves = {name: tuple(values) for name, values in columns.items() if "loss" in name and len(values) > 1}
    metrics = {name: values[-1] for name, values in columns.items() if name not in curves and values}
    return Evidence(curves, metrics, source)


def _of_plain(content: Mapping[str, Any], source: str) -> Evidence:
    """{"loss": [...], "acc1": 76.1}, with or without a table of metrics."""
    columns: dict[str, list[float]] = {}
    parts = [content, *(content[key] for key in ("curves", "metrics") if isinstance(content.get(key), dict))]
    for name, value in ((name, value) for part in parts for name, value in part.items()):
        values = [_number(each) for each in value] if isinstance(value, list) else [_number(value)]
        known = [each for each in values if each is not None]
        if known and name.lower() not in (*_STEP_NAMES, "version", "format"):
            columns[name.lower()] = known
    return _sorted_out(columns, source)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _of_evidence(content: Mapping[str, Any], source: str, _: bool) -> Evidence:
    curves = {name: tuple(map(float, curve)) for name, curve in content.get("curves", {}).items()}
    metrics = {name: float(value) for name, value in content.get("metrics", {}).items()}
    return Evidence(curves, metrics, content.get("source") or source, content.get("simulated"))


def _is_proof(content: Mapping[str, Any]) -> bool:
    return "holds" in content and "reference" in content and "results" in content


def _of_proof(content: Mapping[str, Any], source: str, of_original: bool) -> Evidence:
    """Of `ferry prove`: the original on the CPU, or the first vendor's run."""
    results = content.get("results") or [{}]
    run = content["reference"] if of_original else results[0].get("run", {})
    processes = run.get("processes") or [{}]
    steps = processes[0].get("steps", ())
    losses = [number for step in steps for loss in step["losses"] if (number := _number(loss)) is not None]
    return Evidence({"loss": tuple(losses)} if losses else {}, {}, source)


def _of_analysis(content: Mapping[str, Any], source: str, _: bool) -> Evidence:
    """Of `ferry analyze`: how many steps a second."""
    run = (content.get("runs") or [{}])[0]
    count, seconds = len(run.get("steps", ())), _number(run.get("seconds")) or math.nan
    metrics = {"steps/s": count / seconds} if count and seconds > 0 else {}
    return Evidence({}, metrics, source, run.get("simulated"))


def _of_record(path: Path) -> Evidence:
    """Of `ferry watch`: the loss of each step that was watched."""
    from torchferry.accuracy.file.reader import open_record

    with open_record(path) as record:
        losses = [
            call.outputs[0].statistics.mean
            for call in record.calls
            if call.operator == "loss" and call.outputs and call.outputs[0].statistics is not None
        ]
        simulated = record.header.simulated
    return Evidence({"loss": tuple(losses)} if losses else {}, {}, path.name, simulated)


_Reader = Callable[[Mapping[str, Any], str, bool], Evidence]
_KNOWN: tuple[tuple[Callable[[Mapping[str, Any]], bool], _Reader], ...] = (
    (lambda content: content.get("format") == FORMAT, _of_evidence),
    (lambda content: content.get("format") == "torchferry-analysis", _of_analysis),
    (_is_proof, _of_proof),
)
