"""Reads tables of a run's figures: CSV, a JSON object on each line, lists in JSON."""

from __future__ import annotations

import ast
import csv
import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchferry.errors import InputError
from torchferry.zoo.evidence.model import Curve, Evidence, Step, numbered
from torchferry.zoo.evidence.names import canonical, is_loss, is_result

_STEP_NAMES = ("step", "steps", "global_step", "iter", "iteration")
_MARK = re.compile(r"[A-Z]{3,10} (?=\{)")  # of loggers, before the object


def number(value: object) -> float | None:
    """A number, also one that is written as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def of_csv(text: str, source: str) -> Evidence:
    """A table with a head."""
    return of_rows(list(csv.DictReader(text.splitlines())), source)


def of_lines(text: str, path: Path) -> Evidence:
    """A JSON object on each line, as loggers write them."""
    rows = []
    for count, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(_MARK.sub("", line, count=1))
            except ValueError:
                raise InputError(f"{path}: line {count} is no JSON; give a whole file") from None
            if isinstance(row, dict):
                rows.append(row)
    return of_rows(rows, path.name)


def of_rows(rows: Sequence[Mapping[str, Any]], source: str) -> Evidence:
    """Columns: losses are curves, of everything else the last value counts, of speeds the median."""
    columns: dict[str, tuple[list[float], list[Step | None]]] = {}
    for row in map(_flat, rows):
        rank = number(row.get("rank"))
        if rank:
            continue
        step = _step(row)
        for name, value in row.items():
            known = number(value)
            if known is not None and is_result(name):
                values, steps = columns.setdefault(canonical(name), ([], []))
                values.append(known)
                steps.append(step)
    return _sorted_out({name: numbered(values, steps) for name, (values, steps) in columns.items()}, source)


def of_plain(content: Mapping[str, Any], source: str) -> Evidence:
    """{"loss": [...], "acc1": 76.1}, with or without a table of metrics."""
    columns: dict[str, Curve] = {}
    parts = [content, *(content[key] for key in ("curves", "metrics") if isinstance(content.get(key), dict))]
    for name, value in ((name, value) for part in parts for name, value in part.items()):
        values = [number(each) for each in value] if isinstance(value, list) else [number(value)]
        known = tuple(each for each in values if each is not None)
        if known and is_result(name):
            columns[canonical(name)] = Curve(known)
    return _sorted_out(columns, source)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with what lies one level deeper; cells beyond the head of a table have no name."""
    flat = {name.strip().lower(): value for name, value in row.items() if isinstance(name, str)}
    data = flat.get("data")
    if isinstance(data, str) and data.startswith("{"):
        try:
            data = ast.literal_eval(data)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            data = None
    if isinstance(data, dict):
        flat = {**{name: value for name, value in flat.items() if name == "step"}, **data}
    return flat


def _step(row: Mapping[str, Any]) -> Step | None:
    given = next((row[name] for name in _STEP_NAMES if name in row), None)
    if isinstance(given, list):
        known = [int(each) for each in map(number, given) if each is not None]
        return (known[0], known[1]) if len(known) > 1 else None
    step, epoch = number(given), number(row.get("epoch"))
    if step is None and epoch is None:
        return None
    return int(epoch or 0), int(step or 0)


def _sorted_out(columns: Mapping[str, Curve], source: str) -> Evidence:
    curves = {name: curve for name, curve in columns.items() if is_loss(name)}
    rest = {name: curve.values for name, curve in columns.items() if name not in curves}
    metrics = {
        name: statistics.median(values) if name.endswith("/s") else values[-1]
        for name, values in rest.items()
    }
    return Evidence(curves, metrics, source)
