"""What host logs tell, for programs: JSON, CSV, and the summary that the vendor's guide asks for."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.oplog.model import Compile, Operator, OpLog, Signature, Tensor
from torchferry.perf.oplog.report.page import tensor_text
from torchferry.report.safe import looks_like_formula, printable, xml_text
from torchferry.text import Text

COLUMNS = ("operator", "calls", "compiles", "inputs", "outputs", "attributes", "cut")


def to_json(log: OpLog) -> str:
    """Everything; what the log does not say is null."""
    import json

    return json.dumps(_log(log), indent=2, ensure_ascii=True) + "\n"


def _log(log: OpLog) -> dict[str, object]:
    return {
        "format": "torchferry-oplog",
        "version": 1,
        "vendor": log.vendor,
        "sources": [printable(source) for source in log.sources],
        "bytes": log.bytes_read,
        "calls": log.calls,
        "compiles": log.compiles,
        "compile_seconds": log.compile_seconds,
        "misses": log.misses,
        "basis": log.basis.value,
        "basis_text": _text(log.basis_text),
        "recompiles": [_compile(entry) for entry in log.recompiles],
        "processes": [entry._asdict() for entry in log.processes],
        "operators": [_operator(entry) for entry in log.operators],
        "unread": {printable(file): reason for file, reason in log.unread.items()},
        "notes": [_text(note) for note in log.notes],
    }


def _text(text: Text) -> dict[str, str]:
    return {"en": printable(text.en), "zh": printable(text.zh)}


def _compile(entry: Compile) -> dict[str, object]:
    inputs = None if entry.signature is None else [_tensor(tensor) for tensor in entry.signature.inputs]
    return {**entry._asdict(), "operator": printable(entry.operator), "signature": inputs}


def _operator(row: Operator) -> dict[str, object]:
    return {
        "type": printable(row.type),
        "calls": row.calls,
        "shapes": row.shapes,
        "compiles": row.compiles,
        "compile_seconds": row.compile_seconds,
        "recompiles": row.recompiles,
        "misses": row.misses,
        "is_conversion": row.is_conversion,
        "uncounted": row.uncounted,
        "signatures": [_signature(signature) for signature in row.signatures],
    }


def _signature(signature: Signature) -> dict[str, object]:
    return {
        "inputs": [_tensor(tensor) for tensor in signature.inputs],
        "outputs": [_tensor(tensor) for tensor in signature.outputs],
        "attributes": printable(signature.attributes),
        "calls": signature.calls,
        "compiles": signature.compiles,
        "cut": signature.cut,
    }


def _tensor(tensor: Tensor) -> dict[str, object]:
    return {**tensor._asdict(), "shape": list(tensor.shape)}


def to_csv(log: OpLog) -> bytes:
    """One row for each signature, in UTF-8 with the mark by which Excel knows it."""
    import csv
    import io

    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(COLUMNS)
    for operator in log.operators:
        for signature in operator.signatures:
            writer.writerow(list(_cells(operator, signature)))
    return output.getvalue().encode("utf-8-sig")


def _cells(operator: Operator, signature: Signature) -> Iterator[str | int]:
    yield _safe(operator.type)
    yield signature.calls
    yield signature.compiles
    yield _safe("; ".join(map(tensor_text, signature.inputs)))
    yield _safe("; ".join(map(tensor_text, signature.outputs)))
    yield _safe(signature.attributes)
    yield int(signature.cut)


def _safe(text: str) -> str:
    shown = xml_text(text)
    return "'" + shown if looks_like_formula(shown) else shown


def to_summary(log: OpLog) -> bytes:
    """The lines of the guide's summary of OP_INFO: type and signature, each once.

    As in that file, the last character of a signature is missing: the guide's script cuts off two, one of which is the
    end of the line.
    """
    lines = (
        f"{operator.type} {signature.text[:-1]}\n"
        for operator in log.operators
        for signature in operator.signatures
        if signature.summarized
    )
    return "".join(dict.fromkeys(lines)).encode("utf-8", "surrogateescape")
