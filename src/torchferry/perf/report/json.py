"""Analyses as JSON, for programs; `version` counts changes that a reader must know of. Times are seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchferry import __version__
from torchferry.perf.compare.model import MatchKind, RunComparison
from torchferry.perf.model import Analysis, MemoryPoint, in_words
from torchferry.perf.report import sentences
from torchferry.perf.report.sentences import RunsReport
from torchferry.report.formats import Options
from torchferry.report.json import picked, plain

FORMAT, VERSION = "torchferry-analysis", 1


def to_json(report: RunsReport, options: Options) -> str:
    """The document. It is ASCII; the timeline, which is made for a page, is not in it."""
    import json

    several = len(report.analyses) > 1
    document = {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"TorchFerry {__version__}",
        "slowest": sentences.slowest(report.analyses),
        "said": sentences.ranks(report.analyses) if several else None,
        "runs": list(map(_run, report.analyses)),
        "comparisons": list(map(_comparison, report.comparisons)),
    }
    return json.dumps(plain(document), indent=1) + "\n"


def _run(analysis: Analysis) -> dict[str, Any]:
    return {
        **picked(analysis, "sources", "command", "rank", "device", "device_name", "simulated"),
        "host_only": analysis.is_host_only,
        "torch": analysis.torch,
        "verdict": analysis.diagnoses[0].id if analysis.diagnoses else None,
        "said": sentences.joined(sentences.verdict(analysis)),
        **picked(analysis, "seconds", "parts", "steps"),
        "diagnoses": [
            {
                **picked(
                    each, "id", "severity", "title", "summary", "share", "gain", "gain_basis", "remedies"
                ),
                # for programs these two are texts whatever they hold: names, or English
                "evidence": [
                    replace(one, what=in_words(one.what, "en"), detail=in_words(one.detail, "en"))
                    for one in each.evidence
                ],
            }
            for each in analysis.diagnoses
        ],
        **picked(analysis, "operators", "kernels"),
        # as columns: a thousand points take half the text that rows would
        "memory": {
            device: {name: [getattr(point, name) for point in points] for name in MemoryPoint._fields}
            for device, points in analysis.memory.items()
        },
        "memory_limit": analysis.memory_limit or None,
        "checked": analysis.checked,
        "unchecked": dict(sentences.unchecked(analysis)),
        "notes": analysis.notes,
    }


def _comparison(comparison: RunComparison) -> dict[str, Any]:
    shares = comparison.matched_shares
    return {
        "said": sentences.joined(sentences.comparison(comparison)),
        **picked(comparison, "ratio", "work_ratio"),
        "matched": {"baseline": shares[0], "compared": shares[1]},
        "matched_by": {
            match: {"baseline": one, "compared": other} for match, (one, other) in comparison.matched.items()
        },
        **picked(comparison, "baseline", "compared"),
        **{
            name: [
                {
                    **picked(pair, "operator", "shapes", "dtypes"),
                    **picked(pair, "baseline_operator", "baseline_shapes", "baseline_dtypes", "place"),
                    "match": None if pair.match is MatchKind.NONE else pair.match,
                    **picked(pair, "baseline", "compared", "more", "ratio"),
                }
                for pair in getattr(comparison, name)
            ]
            for name in ("pairs", "only_baseline", "only_compared")
        },
        "notes": comparison.notes,
    }
