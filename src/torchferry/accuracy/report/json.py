"""A comparison as JSON, for programs; `version` counts changes that a reader must know of.

Numbers that JSON has no words for are the texts "nan", "inf" and "-inf". `culprit` is a position in `pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torchferry import __version__
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.compare.network import unmatched_counts
from torchferry.accuracy.judge.model import CallPair, PairDifference
from torchferry.accuracy.model import TensorRecord
from torchferry.accuracy.report import sentences
from torchferry.report.formats import Options
from torchferry.report.json import picked, plain

FORMAT, VERSION = "torchferry-comparison", 1
_NOT_FINITE = ("nan", "inf", "-inf")
_CALL = ("number", "operator", "step", "phase", "model", "module", "place", "node")
_TENSOR = ("name", "dtype", "shape", "stride", "device", "role", "statistics")


def to_json(comparisons: Sequence[RankComparison], options: Options) -> Iterator[str]:
    """The document in pieces: one with many calls need not be in memory whole."""
    import json

    head = {"format": FORMAT, "version": VERSION, "tool": f"TorchFerry {__version__}"}
    yield json.dumps(head, indent=1)[:-2] + ',\n "comparisons": ['
    for at, comparison in enumerate(comparisons):
        yield ",\n" if at else "\n"
        yield json.dumps(plain(_facts(comparison), _NOT_FINITE))[:-1] + ', "pairs": ['
        for position, pair in enumerate(comparison.pairs):
            yield (",\n" if position else "\n") + json.dumps(_pair(pair))
        yield "\n]}"
    yield "\n]}\n"


def _facts(comparison: RankComparison) -> dict[str, Any]:
    culprit = comparison.culprit
    unmatched = unmatched_counts(comparison.pairs) if comparison.golden else (0, 0)
    mine, golden = plain(comparison.mine), plain(comparison.golden)
    return {
        "rank": comparison.mine.rank,
        "mine": {"path": comparison.mine_path, **mine},
        "golden": {"path": comparison.golden_path, **golden} if golden else None,
        "verdict": comparison.pairs[culprit].judgement.verdict if culprit is not None else "fine",
        "culprit": culprit,
        "said": sentences.headline(comparison),
        "next": [line for _, commands in sentences.next_commands(comparison) for line in commands],
        "counts": sentences.verdict_counts(comparison),
        "unmatched": {"mine": unmatched[0], "golden": unmatched[1]},
        "seconds": comparison.seconds,
        "bytes": comparison.nbytes,
        "notes": comparison.notes,
        "network": comparison.network,
        "stack": list(comparison.stack),
        "curves": comparison.curves,
    }


def _pair(pair: CallPair) -> dict[str, Any]:
    return {
        "how": pair.how,
        "mine": picked(pair.mine, *_CALL) if pair.mine else None,
        "golden": picked(pair.golden, *_CALL) if pair.golden else None,
        **plain(pair.judgement, _NOT_FINITE),
        "inputs": list(map(_difference, pair.inputs)),
        "outputs": list(map(_difference, pair.outputs)),
    }


def _difference(difference: PairDifference) -> dict[str, Any]:
    return {
        "mine": _tensor(difference.mine),
        "golden": _tensor(difference.golden),
        **picked(difference, "metrics", "picture", "reason", not_finite=_NOT_FINITE),
    }


def _tensor(tensor: TensorRecord) -> dict[str, Any]:
    return picked(tensor, *_TENSOR, not_finite=_NOT_FINITE)
