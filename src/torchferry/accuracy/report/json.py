"""A comparison as JSON, for programs; `version` counts changes that a reader must know of.

Numbers that JSON has no words for are the texts "nan", "inf" and "-inf". `culprit` is a position in `pairs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from torchferry import __version__
from torchferry.accuracy.compare.model import Comparison, Pair
from torchferry.accuracy.compare.notes import unmatched_counts
from torchferry.accuracy.judge.model import Difference, Judgement
from torchferry.accuracy.model import Call, Header, Metrics, Statistics, TensorRecord
from torchferry.accuracy.report import sentences
from torchferry.report.safe import in_both_languages, printable

FORMAT, VERSION = "torchferry-comparison", 1


def to_json(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """The document in pieces: one with many calls need not be in memory whole."""
    import json

    head = {"format": FORMAT, "version": VERSION, "tool": f"TorchFerry {__version__}"}
    yield json.dumps(head, indent=1)[:-2] + ',\n "comparisons": ['
    for at, comparison in enumerate(comparisons):
        yield ",\n" if at else "\n"
        yield json.dumps(_clean(_facts(comparison)))[:-1] + ', "pairs": ['
        for position, pair in enumerate(comparison.pairs):
            yield (",\n" if position else "\n") + json.dumps(_clean(_pair(pair)))
        yield "\n]}"
    yield "\n]}\n"


def _facts(comparison: Comparison) -> dict[str, Any]:
    """All but the pairs."""
    culprit = comparison.culprit
    unmatched = unmatched_counts(comparison.pairs) if comparison.golden else (0, 0)
    return {
        "rank": comparison.mine.rank,
        "mine": {"path": comparison.mine_path, **_header(comparison.mine)},
        "golden": {"path": comparison.golden_path, **_header(comparison.golden)}
        if comparison.golden
        else None,
        "verdict": comparison.pairs[culprit].judgement.verdict.value if culprit is not None else "fine",
        "culprit": culprit,
        "said": in_both_languages(sentences.headline(comparison)),
        "next": [line for _, commands in sentences.next_commands(comparison) for line in commands],
        "counts": {verdict.value: count for verdict, count in sentences.verdict_counts(comparison).items()},
        "unmatched": {"mine": unmatched[0], "golden": unmatched[1]},
        "seconds": comparison.seconds,
        "bytes": comparison.nbytes,
        "notes": list(map(in_both_languages, comparison.notes)),
        "network": [asdict(each) for each in comparison.network],
        "curves": [asdict(each) for each in comparison.curves],
    }


def _header(header: Header) -> dict[str, Any]:
    return {**asdict(header), "kept": header.kept.value}


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "how": pair.how,
        "mine": _call(pair.mine),
        "golden": _call(pair.golden),
        **_judgement(pair.judgement),
        "inputs": list(map(_difference, pair.inputs)),
        "outputs": list(map(_difference, pair.outputs)),
    }


def _call(call: Call | None) -> dict[str, Any] | None:
    if call is None:
        return None
    names = ("number", "operator", "step", "phase", "model", "module", "place", "node")
    return {name: getattr(call, name) for name in names}


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {
        "verdict": judgement.verdict.value,
        "sort": judgement.sort.value,
        "output": judgement.output,
        "own_error": judgement.own_error,
        "golden_error": judgement.golden_error,
        "limit": judgement.limit,
        "basis": judgement.basis,
        "why": in_both_languages(judgement.why) if judgement.why else None,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "mine": _tensor(difference.mine),
        "golden": _tensor(difference.golden),
        "metrics": metrics_of(difference.metrics),
        "picture": difference.picture,
        "reason": difference.reason,
    }


def _tensor(tensor: TensorRecord) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "stride": list(tensor.stride),
        "device": tensor.device,
        "role": tensor.role,
        "statistics": _plain(tensor.statistics) if tensor.statistics else None,
    }


def metrics_of(metrics: Metrics | None) -> dict[str, Any] | None:
    """All figures by their names."""
    return _plain(metrics) if metrics is not None else None


def _plain(record: Metrics | Statistics) -> dict[str, Any]:
    """Faster than asdict, which copies deeply: a record may have a million tensors."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _clean(value: Any) -> Any:
    """What JSON can hold: no NaN, no lone surrogates."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    return value
