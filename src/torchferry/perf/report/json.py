"""Analyses as JSON, for programs; `version` counts changes that a reader must know of. Times are seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torchferry import __version__
from torchferry.perf.compare.model import Comparison, Match, OperatorPair, Side
from torchferry.perf.model import Analysis, Diagnosis, Evidence, MemoryPoint, Part, in_words
from torchferry.perf.report import sentences
from torchferry.perf.report.sentences import Report
from torchferry.report.safe import in_both_languages, printable

FORMAT, VERSION = "torchferry-analysis", 1


def to_json(report: Report) -> str:
    """The document. It is ASCII; the timeline, which is made for a page, is not in it."""
    import json

    several = len(report.analyses) > 1
    document = {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"TorchFerry {__version__}",
        "slowest": sentences.slowest(report.analyses),
        "said": in_both_languages(sentences.ranks(report.analyses)) if several else None,
        "runs": list(map(_run, report.analyses)),
        "comparisons": list(map(_comparison, report.comparisons)),
    }
    return json.dumps(_clean(document), indent=1) + "\n"


def _run(analysis: Analysis) -> dict[str, Any]:
    return {
        "sources": analysis.sources,
        "command": analysis.command,
        "rank": analysis.rank,
        "device": analysis.device,
        "device_name": analysis.device_name,
        "simulated": analysis.simulated,
        "host_only": analysis.is_host_only,
        "torch": analysis.torch,
        "verdict": analysis.diagnoses[0].id if analysis.diagnoses else None,
        "said": in_both_languages(sentences.joined(sentences.verdict(analysis))),
        "seconds": analysis.seconds,
        "parts": _parts(analysis.parts),
        "steps": [{**step._asdict(), "parts": _parts(step.parts)} for step in analysis.steps],
        "diagnoses": list(map(_diagnosis, analysis.diagnoses)),
        "operators": [row._asdict() for row in analysis.operators],
        "kernels": [row._asdict() for row in analysis.kernels],
        "memory": {device: _curve(points) for device, points in analysis.memory.items()},
        "memory_limit": analysis.memory_limit or None,
        "checked": analysis.checked,
        "unchecked": {name: in_both_languages(why) for name, why in sentences.unchecked(analysis)},
        "notes": list(map(in_both_languages, analysis.notes)),
    }


def _parts(parts: Mapping[Part, float]) -> dict[str, float]:
    return {part.value: seconds for part, seconds in parts.items()}


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "id": diagnosis.id,
        "severity": diagnosis.severity.value,
        "title": in_both_languages(diagnosis.title),
        "summary": in_both_languages(diagnosis.summary),
        "share": diagnosis.share,
        "gain": diagnosis.gain,
        "gain_basis": in_both_languages(diagnosis.gain_basis) if diagnosis.gain_basis else None,
        "remedies": list(map(in_both_languages, diagnosis.remedies)),
        "evidence": list(map(_evidence, diagnosis.evidence)),
    }


def _evidence(each: Evidence) -> dict[str, Any]:
    """For programs `what` and `detail` are texts whatever they hold: names, or English."""
    return {
        **asdict(each),
        "what": in_words(each.what, "en"),
        "detail": in_words(each.detail, "en"),
    }


def _curve(points: Sequence[MemoryPoint]) -> dict[str, list[Any]]:
    """As columns: a thousand points take half the text that rows would."""
    return {
        "start": [point.start for point in points],
        "allocated": [point.allocated for point in points],
        "reserved": [point.reserved for point in points],
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    shares = comparison.matched_shares
    return {
        "said": in_both_languages(sentences.joined(sentences.comparison(comparison))),
        "ratio": comparison.ratio,
        "work_ratio": comparison.work_ratio,
        "matched": {"baseline": shares[0], "compared": shares[1]},
        "matched_by": {
            match.value: {"baseline": one, "compared": other}
            for match, (one, other) in comparison.matched.items()
        },
        "baseline": _side(comparison.baseline),
        "compared": _side(comparison.compared),
        "pairs": list(map(_pair, comparison.pairs)),
        "only_baseline": list(map(_pair, comparison.only_baseline)),
        "only_compared": list(map(_pair, comparison.only_compared)),
        "notes": list(map(in_both_languages, comparison.notes)),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        **side._asdict(),
        "measure": side.measure.value,
        "parts": _parts(side.parts),
        "notes": list(map(in_both_languages, side.notes)),
    }


def _pair(pair: OperatorPair) -> dict[str, Any]:
    names = (
        "operator",
        "shapes",
        "dtypes",
        "baseline_operator",
        "baseline_shapes",
        "baseline_dtypes",
        "place",
    )
    return {
        **{name: getattr(pair, name) for name in names},
        "match": None if pair.match is Match.NONE else pair.match.value,
        "baseline": pair.baseline._asdict() if pair.baseline else None,
        "compared": pair.compared._asdict() if pair.compared else None,
        "more": pair.more,
        "ratio": pair.ratio,
    }


def _clean(value: Any) -> Any:
    """What JSON can hold: no NaN, no lone surrogates, no numbers of numpy."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    return value.item() if hasattr(value, "item") else value
