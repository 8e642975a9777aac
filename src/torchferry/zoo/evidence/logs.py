"""Reads a training program's printed log: the loss of each step, figures of accuracy, throughput."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator

from torchferry.zoo.evidence.model import Evidence, Step, numbered
from torchferry.zoo.evidence.names import METRIC, canonical

_NUMBER = r"(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b)"
_LOSS = re.compile(rf"(?i)(?<![\w/])(?P<train>train(?:ing)?[_./ ])?loss\b['\"]?\W{{0,3}}?{_NUMBER}")
_OTHER_LOSS = re.compile(r"(?i)\b(?:val|valid|validation|test|eval|evaluation|average)\b[^|,;]*$")
_METRIC = re.compile(rf"(?i)(?<![\w/])(?P<name>{METRIC})\b\W{{0,3}}?{_NUMBER}")
_SPEED = re.compile(
    r"(?i)(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>images?|imgs?|samples?|tokens?|sentences?|frames?)\s*/\s*s(?:ec)?\b"
)
_RANK = re.compile(r"(?i)\brank\W{0,4}(\d+)")
_EPOCH = re.compile(r"(?i)\bepoch\W{0,4}(\d+)(?:\W{1,4}(\d+)\s*/)?")
_STEP = re.compile(r"(?i)\b(?:iter|iteration|step)\W{0,4}(\d+)")
_SIMULATED = re.compile(r"\bon a simulated \w+ device\b")
# Several processes print into one line, each record with the mark of the logger.
_RECORD = re.compile(r"[\r\n]|(?=\b(?:TCAPPDLL|DLL) \d{4}-)")
_LONGEST_LINE = 2000  # progress bars and dumps are no lines of a log


def read_log(lines: Iterable[str], source: str) -> Evidence:
    """The last value of a metric and the median of the speed count; a record has one loss, and rank 0 speaks for all."""
    losses: dict[bool, tuple[list[float], list[Step | None]]] = {True: ([], []), False: ([], [])}
    metrics: dict[str, float] = {}
    speeds: dict[str, list[float]] = {}
    simulated = False
    for record in _records(lines):
        simulated = simulated or _SIMULATED.search(record) is not None
        rank = _RANK.search(record)
        if rank and int(rank[1]):
            continue
        loss = _loss(record)
        if loss:
            values, steps = losses[bool(loss["train"])]
            values.append(float(loss["value"]))
            steps.append(_step(record))
        for found in _METRIC.finditer(record):
            metrics[canonical(found["name"])] = float(found["value"])
        for found in _SPEED.finditer(record):
            speeds.setdefault(canonical(f"{found['unit']}/s"), []).append(float(found["value"]))
    metrics.update({unit: statistics.median(values) for unit, values in speeds.items()})
    # a loss that says that it is the training's is that of each step; another beside it is some mean of it
    values, steps = losses[True] if losses[True][0] else losses[False]
    curves = {"loss": numbered(values, steps)} if values else {}
    return Evidence(curves, metrics, source, simulated or None)


def _records(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        for record in _RECORD.split(line):
            if record:
                yield record[:_LONGEST_LINE]


def _loss(record: str) -> re.Match[str] | None:
    """The first loss that is the training's."""
    for found in _LOSS.finditer(record):
        if not _OTHER_LOSS.search(record, 0, found.start()):
            return found
    return None


def _step(record: str) -> Step | None:
    epoch, step = _EPOCH.search(record), _STEP.search(record)
    if step:
        return int(epoch[1]) if epoch else 0, int(step[1])
    return (int(epoch[1]), int(epoch[2] or 0)) if epoch else None
