"""A readiness report as JSON, with the capture in it, so that other devices can be asked without another run.

The document is one object. Its names, and those of every record in it, stay; later versions may add some.

    format       "torchferry-operators"
    version      1
    torchferry   version that wrote it
    weight       "time" or "calls": what shares are parts of
    devices      one for each: vendor, device_type, version (of the adapter), complete (whether the vendor's table lists
                 all operators), verdict (*text*, one line), ready_share (0 to 1), is_ready (every operator has a
                 kernel), moved_bytes (to the CPU and back, by operators that fall back), operators (support -> names,
                 that with the most time first)
    supports     *text* of each kind of support: kernel, structured, composite, limited, unknown, fallback, missing
    operators    one for each operator: operator, calls, seconds, share (of `uses`), uses (positions in `uses`)
    uses         those that were judged: use (its position in capture.uses), operator, inputs, outputs (*tensors*),
                 phase, module, place, node, inside, calls, seconds, share, varied, judgements (one for each device, in
                 the order of `devices`; null where it does not arrive at a device, because that takes the composite
                 operator around it whole, or takes its parts)
    judgement    support, reason (position in `reasons`), moved_bytes, advice (positions in `advice`)
    reasons      *texts*
    advice       remedy, text (*text*), code, source
    capture      see `readiness/capture_json.py`

    tensor       dtype, shape, stride (or null), layout, device
    text         {"en", "zh"}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from torchferry import __version__
from torchferry.readiness.capture_json import REPORT_FORMAT, VERSION, to_document
from torchferry.readiness.model import Advice, OperatorSupport, Readiness, Use, UseJudgement
from torchferry.readiness.report import words
from torchferry.readiness.report.tables import Overview, use_key
from torchferry.report.formats import Options
from torchferry.report.json import picked, plain
from torchferry.text import Text

_TENSOR = ("dtype", "shape", "stride", "layout", "device")


def to_json(readinesses: Sequence[Readiness], options: Options) -> str:
    """The report; see the module's description for the names."""
    overview = Overview(readinesses)
    reasons: dict[Text, int] = {}  # each once, named by its position
    advice: dict[Advice, int] = {}
    judged = [
        {use_key(each.use): _judgement(each, reasons, advice) for each in one.judgements}
        for one in overview.readinesses
    ]
    places = {use_key(use): at for at, use in enumerate(overview.capture.uses)}
    listed = {use_key(use): at for at, use in enumerate(overview.uses)}
    document = {
        "format": REPORT_FORMAT,
        "version": VERSION,
        "torchferry": __version__,
        "weight": "time" if overview.is_timed else "calls",
        "devices": [
            {
                **picked(readiness, "vendor", "device_type", "version", "complete"),
                "verdict": plain(words.verdict(readiness)),
                "ready_share": readiness.ready_share,
                "is_ready": readiness.is_ready,
                "moved_bytes": readiness.moved_bytes,
                "operators": {support.value: readiness.operators(support) for support in OperatorSupport},
            }
            for readiness in overview.readinesses
        ],
        "supports": {support.value: plain(grade.meaning) for support, grade in words.SUPPORT.items()},
        "operators": [
            {
                **picked(row, "operator", "calls", "seconds", "share"),
                "uses": [listed[use_key(use)] for use in row.uses],
            }
            for row in overview.operators
        ],
        "uses": [
            {
                "use": places.get(use_key(use)),
                **_use(use, overview),
                "judgements": [column.get(use_key(use)) for column in judged],
            }
            for use in overview.uses
        ],
        "reasons": plain(list(reasons)),
        "advice": plain(list(advice)),
        "capture": to_document(overview.capture),
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"


def _judgement(
    judgement: UseJudgement, reasons: dict[Text, int], advice: dict[Advice, int]
) -> dict[str, Any]:
    return {
        "support": judgement.support.value,
        "reason": reasons.setdefault(judgement.reason, len(reasons)),
        "moved_bytes": judgement.moved_bytes,
        "advice": [advice.setdefault(each, len(advice)) for each in judgement.advice],
    }


def _use(use: Use, overview: Overview) -> dict[str, Any]:
    return {
        "operator": use.operator,
        "inputs": [picked(spec, *_TENSOR) for spec in use.signature.inputs],
        "outputs": [picked(spec, *_TENSOR) for spec in use.signature.outputs],
        **picked(use.site, "phase", "module", "place", "node", "inside"),
        "calls": use.calls,
        "seconds": use.seconds,
        "share": overview.share([use]),
        "varied": use.varied,
    }
