"""Reads evidence from the files of TorchFerry's own commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torchferry.zoo.evidence.model import FORMAT, Curve, Evidence
from torchferry.zoo.evidence.tables import number


def of_record(path: Path) -> Evidence:
    """Of `ferry watch`: the loss of each step that was watched."""
    from torchferry.accuracy.file.reader import open_record

    with open_record(path) as record:
        losses = [
            call.outputs[0].statistics.mean
            for call in record.calls
            if call.operator == "loss" and call.outputs and call.outputs[0].statistics is not None
        ]
        simulated = record.header.simulated
    return Evidence(_loss(losses), {}, path.name, simulated)


def is_proof(content: Mapping[str, Any]) -> bool:
    """Whether it is one of `ferry prove`."""
    return "holds" in content and "reference" in content and "results" in content


def _of_evidence(content: Mapping[str, Any], source: str, _: bool) -> Evidence:
    steps = content.get("steps", {})
    curves = {
        name: Curve(tuple(map(float, values)), tuple((int(a), int(b)) for a, b in steps.get(name, ())))
        for name, values in content.get("curves", {}).items()
    }
    metrics = {name: float(value) for name, value in content.get("metrics", {}).items()}
    return Evidence(curves, metrics, content.get("source") or source, content.get("simulated"))


def _of_proof(content: Mapping[str, Any], source: str, of_original: bool) -> Evidence:
    """Of `ferry prove`: the original on the CPU, or the first vendor's run, on a simulated device."""
    results = content.get("results") or [{}]
    run = content["reference"] if of_original else results[0].get("run", {})
    processes = run.get("processes") or [{}]
    steps = processes[0].get("steps", ())
    losses = [value for step in steps for loss in step["losses"] if (value := number(loss)) is not None]
    return Evidence(_loss(losses), {}, source, None if of_original else True)


def _of_analysis(content: Mapping[str, Any], source: str, _: bool) -> Evidence:
    """Of `ferry analyze`: how many steps a second."""
    run = (content.get("runs") or [{}])[0]
    count, seconds = len(run.get("steps", ())), number(run.get("seconds")) or math.nan
    metrics = {"steps/s": count / seconds} if count and seconds > 0 else {}
    return Evidence({}, metrics, source, run.get("simulated"))


def _loss(losses: list[float]) -> dict[str, Curve]:
    return {"loss": Curve(tuple(losses))} if losses else {}


_Reader = Callable[[Mapping[str, Any], str, bool], Evidence]
KNOWN: tuple[tuple[Callable[[Mapping[str, Any]], bool], _Reader], ...] = (
    (lambda content: content.get("format") == FORMAT, _of_evidence),
    (lambda content: content.get("format") == "torchferry-analysis", _of_analysis),
    (is_proof, _of_proof),
)
