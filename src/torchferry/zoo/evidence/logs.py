"""Reads a training program's printed log: the loss of each step, figures of accuracy, throughput."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable

from torchferry.zoo.evidence.model import Evidence

_NUMBER = r"(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b)"
_LOSS = re.compile(rf"(?i)(?<![\w/])(?:train[_ ])?loss\b\W{{0,3}}?{_NUMBER}")
_METRIC = re.compile(
    rf"(?i)(?<![\w/])(?P<name>acc(?:uracy)?(?:@?[15])?|top-?[15]|prec@[15]|map(?:@?[\d.:]+)?|miou|f1|bleu|auc|wer|cer|"
    rf"perplexity|ppl|rmse|psnr|ssim)\b\W{{0,3}}?{_NUMBER}"
)
_SPEED = re.compile(
    r"(?i)(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>images?|imgs?|samples?|tokens?|sentences?|frames?)\s*/\s*s(?:ec)?\b"
)
_LONGEST_LINE = 2000  # progress bars and dumps are no lines of a log


def read_log(lines: Iterable[str], source: str) -> Evidence:
    """The last value of a metric and the median of the speed count; a line has one loss."""
    losses: list[float] = []
    metrics: dict[str, float] = {}
    speeds: dict[str, list[float]] = {}
    for line in (line[:_LONGEST_LINE] for text in lines for line in re.split(r"[\r\n]", text)):
        loss = _LOSS.search(line)
        if loss:
            losses.append(float(loss["value"]))
        for found in _METRIC.finditer(line):
            metrics[_name(found["name"])] = float(found["value"])
        for found in _SPEED.finditer(line):
            unit = f"{found['unit'].lower().rstrip('s').replace('image', 'img').replace('img', 'image')}s/s"
            speeds.setdefault(unit, []).append(float(found["value"]))
    metrics.update({unit: statistics.median(values) for unit, values in speeds.items()})
    return Evidence({"loss": tuple(losses)} if losses else {}, metrics, source)


def _name(text: str) -> str:
    """acc@1, Top-1 and Prec@1 are the same figure."""
    name = text.lower().replace("accuracy", "acc").replace("-", "").replace("@", "")
    return name.replace("prec", "acc").replace("top", "acc")
