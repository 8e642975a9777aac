"""Writes docs/schemas/*.json, the JSON Schema of every report in JSON, from the shapes below; `make docs` calls it.

A shape is a word (`text`, `whole`, `number`, `flag`, `said` for a sentence in both languages, `any`), words of an enum
with bars between them, `[shape]` for a list, or a dictionary: of the keys of an object, or of `*` for any key. A `?`
behind a key: it may be left out; behind a word: it may be null.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Shape = str | list[Any] | dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "schemas"


def each(keys: str, shape: Any) -> dict[str, Any]:
    """The same for several keys."""
    return dict.fromkeys(keys.replace("|", " ").split(), shape)


# A figure that may be no number: JSON has none, so it is a text then ("nan", "inf", "NaN", "Infinity"), or null.
FIGURE = "figure"
SHAPED = {"shape": ["whole"], "dtype": "text"}

# What the checks of doctor and zoo have in common.
COUNTS = each("blocks doubt costs could unseen info fine", "whole")
RESULT = {
    "id": "text",
    "subject": "text",
    "status": "|".join(COUNTS),
    "found": "said",
    "why": "said?",
    "commands": [{"line": "text", "reach": "shell|install|processes|root"}],
    "source": "text?",
}
HOST = {"vendor": "text?", "counts": COUNTS, "results": [RESULT]}

# Of an error in a log.
FRAME = {"file": "text", "line": "whole", "function": "text"}
MESSAGE = {
    "rule": "text?",
    "kind": "text?",
    "effect": "text",
    **each("certain spoken_of survived", "flag"),
    **each("cause remedy meaning", "said?"),
    "source": "text?",
    "log": "whole",
    **each("line rank", "whole?"),
    **each("process time", "text?"),
    "count": "whole",
    "text": "text",
    "before": ["text"],
    "frame": ("null", FRAME),
}

# Of a run.
DEVICE_USE = each("index peak_allocated peak_reserved limit allocations out_of_memory", "whole")
OPERATOR_COUNT = {"name": "text", "calls": "whole", "support": "text"}

# Of a proof.
CHECKED_TENSOR = {**SHAPED, "checksum": "text", "norm": FIGURE, "projections": [FIGURE]}
STEP = {
    **each("ordinal optimizer skipped step", "whole"),
    "losses": [FIGURE],
    "gradient_norm": FIGURE,
    "checksum": "text",
}
PROOF_RUN = {
    **each("name stdout stderr", "text"),
    "exit_code": "whole",
    "seconds": "number",
    "processes": [
        {
            "identity": {
                "rank": "whole?",
                **each("role torch", "text"),
                **each("pid started restart", "whole"),
            },
            "optimizers": ["text"],
            "steps": [STEP],
        }
    ],
}
DIFFERENCE = {
    "what": "loss|gradient|parameter|buffer",
    **each("step optimizer", "whole"),
    "rank": "whole?",
    "name": "text",
    **each("reference migrated", ("null", CHECKED_TENSOR)),
    **each("distance relative tolerance", FIGURE),
}
PROOF_CALL = {
    "ordinal": "whole",
    **each("name phase module place arguments node", "text"),
    **each("outputs inputs", [CHECKED_TENSOR]),
}

# Of a comparison of records.
STATISTICS = {
    **each("count nans infinities zeros checksum", "whole"),
    **each("minimum maximum mean rms", FIGURE),
}
RECORD_HEAD = {
    **each("path kept program device torch vendor replayed selected in_part", "text"),
    "options": "text",
    **each("rank world", "whole"),
    **each("simulated modules_only complete apis", "flag"),
    "notes": ["text"],
}
RANK_HEAD = {key: shape for key, shape in RECORD_HEAD.items() if key != "path"}
RECORD_CALL = {
    **each("number step", "whole"),
    **each("operator phase model module place node", "text"),
}
RECORD_TENSOR = {
    **SHAPED,
    **each("name device role", "text"),
    "stride": ["whole"],
    "statistics": ("null", STATISTICS),
}
METRICS = {
    **each("count equal wrong_zeros wrong_nonfinite nans infinities", "whole"),
    **each("zeros golden_zeros worst", "whole"),
    **each(
        "max_abs max_rel mean_abs mean_rel rms_rel rms_error relative_euclidean cosine bias within_thousandth within_five_thousandths max_ulp mean_ulp",
        FIGURE,
    ),
}
TENSOR_PAIR = {
    **each("mine golden", RECORD_TENSOR),
    "metrics": ("null", METRICS),
    **each("picture reason", "text"),
}

# Of an analysis.
PARTS = {
    f"{name}?": "number" for name in ("compute", "communication", "copy", "move", "loader", "host", "other")
}
WORDS = ("text", "said")  # a name, or words where there is none
COMPARED_RUN = {
    "sources": ["text"],
    **each("device device_name torch measure", "text"),
    "rank": "whole?",
    "steps": "whole",
    "has_steps": "flag",
    **each("step_seconds work_seconds", "number"),
    "parts": PARTS,
    "notes": ["said"],
}
TIMES = {"calls": "number", **each("seconds host_seconds", "number"), "kernels": ["text"]}
OPERATOR_PAIR = {
    **each("operator shapes dtypes place", "text"),
    **each("baseline_operator baseline_shapes baseline_dtypes", "text"),
    "match": "text?",
    **each("baseline compared", ("null", TIMES)),
    **each("more ratio", "number?"),
}
BOTH_SIDES = {"baseline": "number", "compared": "number"}

# Of an overflow.
CHECKED_CALL = {
    **RECORD_CALL,
    **each("inputs outputs", [{**SHAPED, "name": "text", "statistics": ("null", STATISTICS)}]),
}
OVERFLOW = {
    "kind": "nan|infinite|half",
    "call": CHECKED_CALL,
    "standing": "found|skipped|intended",
    "why": "text",
    "before": [CHECKED_CALL],
    "scale": FIGURE,
    "record": "text",
    "unsaved": ["text"],
    "time": "number",
}

# Of an ONNX model.
PORT = {**each("name dtype", "text"), "shape": ["text"]}

# Of operators.
SUPPORTS = "kernel|structured|composite|limited|unknown|fallback|missing"
OPERATOR_TENSOR = {
    **SHAPED,
    "stride": ("null", ["whole"]),
    **each("layout device", "text"),
}
CAPTURE = {
    **each("torchferry program origin device torch", "text"),
    **each("steps processes", "whole"),
    "seconds": "number",
    "notes": ["text"],
    "modules": [["text"]],
    "strings": ["text"],
    **each("tensors signatures sites uses", [["any"]]),
}

# What is in each besides its head -> what makes it.
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "torchferry-findings": (
        "ferry scan, ferry convert",
        {
            **each("tool vendor project", "text"),
            "command": "scan|convert",
            "files_seen": "whole",
            "summary": {
                **each("sites automatic todo unsupported unknown findings", "whole"),
                "automatic_percent": "number?",
                **each("files_changed files_failed", "whole"),
                **each("by_kind by_severity by_rule", {"*": "whole"}),
                **each("files_with_work minutes", "whole"),
            },
            "files": [
                {
                    "path": "text",
                    "status": "changed|unchanged|failed|added",
                    "reason": "text",
                    "hunks": [{"old_start": "whole", "new_start": "whole", "lines": [["any"]]}],
                }
            ],
            "findings": [
                {
                    **each("rule path before after title title_zh why why_zh do do_zh", "text"),
                    **each("vendor url source", "text"),
                    "kind": "change|todo|unsupported|unknown|risk|info",
                    "severity": "blocker|decision|check|note|done",
                    **each("line col effort effort_each", "whole"),
                }
            ],
            "written?": {"*": "text"},
        },
    ),
    "torchferry-operators": (
        "ferry ops",
        {
            "torchferry": "text",
            "weight": "calls|time",
            "devices": [
                {
                    **each("vendor device_type version", "text"),
                    **each("complete is_ready", "flag"),
                    "verdict": "said",
                    "ready_share": "number?",
                    "moved_bytes": "number",
                    "operators": each(SUPPORTS, ["text"]),
                }
            ],
            "supports": each(SUPPORTS, "said"),
            "operators": [
                {
                    "operator": "text",
                    "calls": "whole",
                    "seconds": "number",
                    "share": "number",
                    "uses": ["whole"],
                }
            ],
            "uses": [
                {
                    **each("use calls", "whole"),
                    **each("operator phase module place node inside", "text"),
                    **each("inputs outputs", [OPERATOR_TENSOR]),
                    **each("seconds share", "number"),
                    "varied": "flag",
                    "judgements": [
                        (
                            "null",
                            {
                                "support": SUPPORTS,
                                "reason": "whole",
                                "moved_bytes": "number",
                                "advice": ["whole"],
                            },
                        )
                    ],
                }
            ],
            "reasons": ["said"],
            "advice": [{"remedy": "text", "text": "said", **each("code source", "text")}],
            "capture": {"format": "text", "version": "whole", **CAPTURE},
        },
    ),
    "torchferry-capture": ("a process that ferry ops watches", CAPTURE),
    "torchferry-proof": (
        "ferry prove",
        {
            "torchferry": "text",
            "holds": "flag",
            "request": {
                **each("original vendors", ["text"]),
                "converted": "text",
                "steps": "whole?",
                **each("seed processes", "whole"),
                **each("same_weights exact emulated", "flag"),
                **each("rtol atol", "number?"),
            },
            "reference": PROOF_RUN,
            "results": [
                {
                    **each("vendor device_type", "text"),
                    "verdict": "equal|close|parted|incomparable|crashed|unrepeatable",
                    "run": ("null", PROOF_RUN),
                    "compared_steps": "whole",
                    "reason": "said?",
                    **each("parting largest", ("null", DIFFERENCE)),
                    "operator": (
                        "null",
                        {
                            **each("reference migrated", ("null", PROOF_CALL)),
                            "output": "whole?",
                            **each("distance relative", FIGURE),
                            "cause": "result|random|arguments|calls|data|state|communication|none",
                            "notes": ["text"],
                            "step": "whole",
                        },
                    ),
                    "judgement": (
                        "null",
                        {
                            **each("verdict sort record", "text"),
                            **each("own_error limit", FIGURE),
                            "why": "said?",
                            "step": "whole",
                        },
                    ),
                    "notes": ["said"],
                }
            ],
            **each("torch date", "text"),
        },
    ),
    "torchferry-comparison": (
        "ferry compare",
        {
            "tool": "text",
            "comparisons": [
                {
                    "rank": "whole",
                    "mine": RECORD_HEAD,
                    "golden": ("null", RECORD_HEAD),
                    "verdict": "text",
                    "culprit": "whole?",
                    "said": "said",
                    "next": ["text"],
                    "counts": {"*": "whole"},
                    "unmatched": {"mine": "whole", "golden": "whole"},
                    "seconds": "number",
                    "bytes": "whole",
                    "notes": ["said"],
                    "network": [{"what": "text", "step": "whole", "mean_abs": FIGURE}],
                    "stack": ["text"],
                    "curves": [
                        {"name": "text", "steps": ["whole"], "mine": [FIGURE], "golden": [FIGURE]},
                    ],
                    "pairs": [
                        {
                            "how": "text",
                            **each("mine golden", ("null", RECORD_CALL)),
                            **each("verdict sort output basis", "text"),
                            **each("own_error golden_error limit", FIGURE),
                            "why": "said?",
                            **each("inputs outputs", [TENSOR_PAIR]),
                        }
                    ],
                }
            ],
        },
    ),
    "torchferry-ranks-comparison": (
        "ferry compare, of runs with another number of processes or another layout",
        {
            "tool": "text",
            "verdict": "fits|parts|random",
            "culprit": "whole?",
            "said": "said",
            **each("many few", {"path": "text", "ranks": [RANK_HEAD]}),
            "division": "said?",
            "stages": [
                {
                    "step": "whole",
                    "stage": "batch|parameters|forward|loss|backward|reduction|optimizer|update",
                    "outcome": "fits|parts|random|follows|unknown",
                    "compared": "whole",
                    "why": "said?",
                    "rank": "whole?",
                    "spot": (
                        "null",
                        {"number": "whole", **each("operator phase module place", "text")},
                    ),
                    "tensor": "text",
                    **each("distance limit", FIGURE),
                }
            ],
            "layouts": [
                {
                    "role": "text",
                    "way": "same|rows|split|fused|sum|mean|one",
                    "axis": "whole?",
                    "parts": "whole",
                    "said": "said",
                    "count": "whole",
                    "example": "text",
                }
            ],
            "notes": ["said"],
            "seconds": "number",
        },
    ),
    "torchferry-analysis": (
        "ferry analyze",
        {
            "tool": "text",
            "slowest": "whole",
            "said": "said?",
            "runs": [
                {
                    **each("sources command checked", ["text"]),
                    "rank": "whole?",
                    **each("device device_name torch", "text"),
                    **each("simulated host_only", "flag"),
                    "verdict": "text?",
                    "said": "said",
                    "seconds": "number",
                    "parts": PARTS,
                    "steps": [{"number": "whole", "start": "number", "seconds": "number", "parts": PARTS}],
                    "diagnoses": [
                        {
                            "id": "text",
                            "severity": "high|medium|low",
                            **each("title summary", "said"),
                            **each("share gain", "number?"),
                            "gain_basis": "said?",
                            "remedies": ["said"],
                            "evidence": [
                                {
                                    "what": WORDS,
                                    "detail": WORDS,
                                    "place": "text",
                                    "count": "whole",
                                    **each("seconds share", "number"),
                                    "example": "number?",
                                }
                            ],
                        }
                    ],
                    "operators": [
                        {
                            **each("operator shapes dtypes place", "text"),
                            "calls": "number",
                            **each("host_seconds device_seconds", "number"),
                            "roofline": "number?",
                        }
                    ],
                    "kernels": [
                        {
                            **each("name kind operator", "text"),
                            "calls": "number",
                            "seconds": "number",
                        }
                    ],
                    "memory": {
                        "*": {"start": ["number"], "allocated": ["number?"], "reserved": ["number?"]},
                    },
                    "memory_limit": "number?",
                    "unchecked": {"*": "said"},
                    "notes": ["said"],
                }
            ],
            "comparisons": [
                {
                    "said": "said",
                    **each("ratio work_ratio", "number?"),
                    "matched": BOTH_SIDES,
                    "matched_by": {"*": BOTH_SIDES},
                    **each("baseline compared", COMPARED_RUN),
                    **each("pairs only_baseline only_compared", [OPERATOR_PAIR]),
                    "notes": ["said"],
                }
            ],
        },
    ),
    "torchferry-oplog": (
        "ferry oplog",
        {
            "vendor": "text",
            "sources": ["text"],
            **each("bytes calls", "whole"),
            **each("compiles misses", "whole?"),
            "compile_seconds": "number?",
            "basis": "any",
            "basis_text": "any",
            "recompiles": ["any"],
            "processes": ["any"],
            "operators": [
                {
                    "type": "text",
                    "calls": "whole",
                    **each("shapes compiles recompiles misses uncounted", "whole?"),
                    "compile_seconds": "number?",
                    "is_conversion": "flag",
                    "signatures": ["any"],
                }
            ],
            "unread": "any",
            "notes": ["any"],
        },
    ),
    "torchferry-host": ("ferry doctor host", HOST),
    "torchferry-doctor": (
        "ferry doctor",
        {
            "vendor": "text?",
            "ready": "flag?",
            "others?": ["text"],
            "versions": {"*": "text?"},
            "counts": COUNTS,
            "results": [RESULT],
            "host": {"format": "text", "version": "whole", **HOST},
        },
    ),
    "torchferry-bundle": (
        "ferry bundle",
        {
            "tool": "text",
            "archive": "text?",
            "bytes": "whole",
            "files": [{"name": "text", "sha256": "text", "bytes": "whole", "what": "said"}],
            "replaced": [
                {
                    "kind": "secret|email|url|address|path|host|user|value|word",
                    "what": "said",
                    **each("original placeholder", "text"),
                    "count": "whole",
                }
            ],
            "notes": ["said"],
            "left_out": {"*": "text"},
        },
    ),
    "torchferry-explanation": (
        "ferry explain; `rules` alone of --list, `findings` alone of --code",
        {
            "cause?": "whole?",
            "surfaced?": ("null", FRAME),
            "findings?": [MESSAGE],
            "failures?": [{"log": "whole", "rank": "whole?", "finding": "whole"}],
            "logs?": [
                {
                    "name": "text",
                    "rank": "whole?",
                    **each("lines bytes findings_left_out lines_only_counted", "whole"),
                    "damage": "text?",
                    "launcher": ("null", {"rank": "whole", "exit_code": "whole?", "time": "text"}),
                }
            ],
            "unread?": {"*": "text"},
            "rules?": [
                {
                    **each("id kind effect regex source", "text"),
                    "codes": ["text"],
                    **each("cause remedy", "said"),
                }
            ],
        },
    ),
    "torchferry-overflow": (
        "ferry overflow",
        {
            **each("tool program", "text"),
            "overflow": "flag",
            "rank": "whole?",
            "first": ("null", OVERFLOW),
            **each("case case_file", "text?"),
            "exit_code": "whole",
            "processes": [
                {
                    **each("program device torch", "text"),
                    **each("rank world steps operators skipped_steps", "whole"),
                    "end": "found|steps|program|unfinished",
                    "checks_half": "flag",
                    "events": [OVERFLOW],
                    "largest": ("null", {"value": FIGURE, "call": CHECKED_CALL}),
                    "underflow": [{"share": "number", "call": CHECKED_CALL}],
                    "notes": ["text"],
                }
            ],
        },
    ),
    "torchferry-vendors-work": (
        "ferry scan --to VENDOR,VENDOR",
        {
            **each("tool project", "text"),
            "vendors": [{"vendor": "text", **each("blockers decisions checks done minutes", "whole")}],
        },
    ),
    "torchferry-made": (
        "ferry record, watch, profile, replay, case, and run on a real device, with --json",
        {
            **each("tool command vendor device", "text"),
            "exit_code": "whole",
            **each("verdict said", "text"),
            "files": [
                {"path": "text", "rank": "whole", **each("calls steps", "whole?"), "is_complete": "flag"}
            ],
        },
    ),
    "torchferry-rules": (
        "ferry rules --json",
        {"tool": "text", "rules": [{**each("id name option", "text"), "summary": "said"}]},
    ),
    "torchferry-run": (
        "ferry run -o",
        {
            **each("torchferry vendor device_type", "text"),
            **each("exit_code left_running unreported", "whole"),
            "seconds": "number",
            "converted": "flag",
            "means": "real|emulated|simulated",
            "devices": [DEVICE_USE],
            "operators": [OPERATOR_COUNT],
            "dtypes": {"*": "whole"},
            "processes": [
                {
                    "pid": "whole",
                    "rank": "whole?",
                    "restart": "whole",
                    "torch": "text",
                    "devices": [DEVICE_USE],
                    "operators": [OPERATOR_COUNT],
                    "dtypes": {"*": "whole"},
                }
            ],
        },
    ),
    "torchferry-checkpoint": (
        "ferry checkpoint info; `layout` is how the file is laid out",
        {
            **each("tool path layout", "text"),
            "bytes": "whole",
            "parts": {"*": "text"},
            "state_dicts": [{"name": "text", "tensors": "whole", "prefixes": ["text"]}],
            "classes": {"*": ["text"]},
            "metadata": {"*": "text"},
            "others": ["text"],
            "tensors": {
                "*": {"shape": ["whole"], **each("dtype device", "text"), "bytes": "whole"},
            },
        },
    ),
    "torchferry-export": (
        "ferry export",
        {
            **each("tool output way", "text"),
            **each("opset bytes", "whole"),
            **each("inputs outputs", [PORT]),
            "checks": [
                {
                    "sizes": {"*": "whole"},
                    **each("output problem", "text"),
                    **each("error relative", "number?"),
                    "scale": "number",
                    "verdict": "same|rounding|empty|different|chaotic|random|failed",
                    **each("pytorch_off onnx_off", "number?"),
                    "is_good": "flag",
                }
            ],
            "operators": {"*": "whole"},
            "notes": ["text"],
            "is_good": "flag",
            "vendor": "text?",
            "not_listed": ("null", ["text"], {"*": "any"}),
            "command": ("null", ["text"]),
        },
    ),
    "torchferry-migration-steps": (
        "ferry migrate",
        {
            **each("tool project to copy", "text"),
            "device": "sim|emulate|real",
            "program": ["text"],
            "complete": "flag",
            "verdict": "said",
            "steps": [
                {
                    **each("name command", "text"),
                    "state": "done|unchanged|accepted|decide|failed|interrupted|waiting",
                    "verdict": "said",
                    "seconds": "number",
                    **each("exit_code run", "whole"),
                }
            ],
            "decisions": [{"name": "text", "places": ["text"], "text": "said"}],
            "advice": ["said"],
            "accepted": ["text"],
        },
    ),
    "torchferry-zoo-review": (
        "ferry zoo check",
        {
            **each("zoo vendor framework domain model", "text"),
            "complete": "flag?",
            "counts": {"*": "whole"},
            "items": [
                {
                    **each("id subject status", "text"),
                    "found": "said",
                    "why": "said?",
                    "commands?": RESULT["commands"],
                    "source?": "text?",
                    "place": "text?",
                }
            ],
        },
    ),
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a format."""
    made_by, content = FORMATS[name]
    head: dict[str, Any] = {"format": name, "version": "whole"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": f"Made by: {made_by}. Later versions may add keys.",
        **_schema({**head, **content}),
        "$defs": {"said": _schema({"en": "text", "zh": "text"})},
    }


_WORDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
    "said": {"$ref": "#/$defs/said"},
    FIGURE: {"type": ["number", "string", "null"]},
}


def _schema(shape: Shape | tuple[Shape, ...]) -> dict[str, Any]:
    if isinstance(shape, tuple):
        return {"anyOf": [_schema(each) for each in shape]}
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0])}
    if isinstance(shape, dict):
        return _object(shape)
    if shape in _WORDS:
        return _WORDS[shape]
    if shape.endswith("?"):
        return _schema((shape[:-1], "null"))
    return {"enum": shape.split("|")}


def _object(keys: dict[str, Any]) -> dict[str, Any]:
    if "*" in keys:
        return {"type": "object", "additionalProperties": _schema(keys["*"])}
    return {
        "type": "object",
        "properties": {key.removesuffix("?"): _schema(shape) for key, shape in keys.items()},
        "required": [key for key in keys if not key.endswith("?")],
    }


def written(name: str) -> str:
    """The file of a format."""
    return json.dumps(schema(name), indent=1) + "\n"


def main() -> int:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name in FORMATS:
        (FOLDER / f"{name}.json").write_text(written(name), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
