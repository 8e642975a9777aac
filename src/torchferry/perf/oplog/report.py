"""What host logs tell: verdicts and tables for people, JSON, CSV, and the summary that the vendor's guide asks for."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.oplog.model import Basis, LoggedSignature, LoggedTensor, OpLog
from torchferry.report.formats import Options, Reports
from torchferry.report.json import picked, plain
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.text import Text
from torchferry.units import duration

_OPERATORS = 30
SIGNATURES = 5  # of an operator that is compiled again and again
_TENSORS = 4

TITLE = Text("Operators in the host log", "主机日志中的算子")
_NO_RECOMPILES = Text("no operator was compiled after the warm-up", "预热之后没有算子被编译")
_UNKNOWN = Text(
    "whether operators were compiled after the warm-up is unknown", "无法判断预热之后是否有算子被编译"
)
_RECOMPILES = Text(
    "{count} compiles after the warm-up{time}: {operators}", "预热之后有 {count} 次编译{time}：{operators}"
)
_TOOK = Text(", {time}", "，共 {time}")
_BASIS = Text("counting rule: {basis}", "统计口径：{basis}")
_TOTALS = Text(
    "{calls} calls of {operators} operators with {signatures} signatures (processes: {processes}); "
    "{compiles} compiles{time}; {misses} lookups without a compiled operator",
    "{processes} 个进程中 {operators} 种算子共调用 {calls} 次，签名 {signatures} 种；编译 {compiles} "
    "次{time}；{misses} 次查找没有匹配到已编译的算子",
)
_CONVERSIONS = Text(
    "{share} of the calls convert a type, a format or a layout: {operators}",
    "{share} 的调用在转换类型、格式或布局：{operators}",
)
_REMEDY = Text(
    "shapes or attributes change from step to step: keep them constant (drop_last=True, padding, "
    "length buckets), or allow operators for any shape; `ferry doctor host --to {vendor}` lists the "
    "compile options",
    "形状或属性逐步变化：请保持不变（drop_last=True、填充、按长度分桶），或使用适用于任意形状的算子；"
    "`ferry doctor host --to {vendor}` 列出编译选项",
)
_UNREAD = Text("{file} can't be read: {reason}", "{file} 无法读取：{reason}")

_BY_OPERATOR = Text("By operator", "按算子")
_AGAIN = Text("Compiled after the warm-up", "预热之后被编译的算子")
_CONVERTED = Text("Conversions", "转换")
_OPERATOR = Column(Text("operator", "算子"))
_CALLS = Column(Text("calls", "调用"), is_number=True)
_SHAPES = Column(Text("shapes", "形状数"), is_number=True)
_SIGNATURES = Column(Text("signatures", "签名数"), is_number=True)
_COMPILES = Column(Text("compiles", "编译"), is_number=True)
_LATE = Column(Text("after warm-up", "预热后"), is_number=True)
_TIME = Column(Text("compile time", "编译用时"), is_number=True)
_MISSES = Column(Text("not found", "未匹配"), is_number=True)
_WITH = Column(Text("inputs", "输入"))
_CHANGE = Column(Text("from and to", "转换"))


REPORTS: Reports[OpLog] = Reports(
    {"json": f"{__name__}:to_json", "csv": f"{__name__}:to_csv"}, page=f"{__name__}:page_of"
)


def page_of(log: OpLog, options: Options) -> Page:
    """What to print, of the most important operators if not of all."""
    limit = None if options.everything else _OPERATORS
    notes = [_REMEDY.format(vendor=log.vendor)] if log.recompiles else []
    notes += [*log.notes, *(_UNREAD.format(file=file, reason=reason) for file, reason in log.unread.items())]
    return Page(TITLE, tuple(_verdicts(log)), tuple(_tables(log, limit)), tuple(notes))


def _verdicts(log: OpLog) -> Iterator[tuple[Text, str]]:
    if log.basis is Basis.UNKNOWN:
        yield _UNKNOWN, "yellow"
    elif log.recompiles:
        counts = sorted(log.operators, key=lambda row: -row.recompiles)
        names = ", ".join(f"{row.type} {row.recompiles}" for row in counts[:5] if row.recompiles)
        text = _RECOMPILES.format(
            count=len(log.recompiles), time=_took(log.recompile_seconds or None), operators=names
        )
        yield text, "red"
    else:
        yield _NO_RECOMPILES, "green"
    yield _BASIS.format(basis=log.basis_text), "dim"
    yield (
        _TOTALS.format(
            calls=f"{log.calls:,}",
            operators=len(log.operators),
            signatures=f"{sum(len(row.signatures) for row in log.operators):,}",
            processes=len(log.processes),
            compiles=f"{log.compiles:,}",
            time=_took(log.compile_seconds),
            misses=f"{log.misses:,}",
        ),
        "",
    )
    changing = [row for row in log.conversions if row.calls]
    if changing:
        share = sum(row.calls for row in changing) / log.calls
        names = ", ".join(f"{row.type} {row.calls:,}" for row in sorted(changing, key=lambda row: -row.calls))
        yield _CONVERSIONS.format(share=f"{share:.1%}", operators=names), ""


def _took(seconds: float | None) -> Text:
    return Text("", "") if seconds is None else _TOOK.format(time=duration(seconds))


def _tables(log: OpLog, limit: int | None) -> Iterator[Table]:
    again = sorted((row for row in log.operators if row.recompiles), key=lambda row: -row.recompiles)
    late = {(entry.operator, entry.signature.text) for entry in log.recompiles if entry.signature is not None}
    rows = tuple(
        (
            Cell(operator.type, is_code=True),
            Cell(_inputs(signature), is_code=True),
            Cell(f"{signature.calls:,}"),
            Cell(f"{signature.compiles:,}"),
        )
        for operator in again[:limit]
        for signature in [each for each in operator.signatures if (operator.type, each.text) in late][
            :SIGNATURES
        ]
    )
    yield Table(_AGAIN, (_OPERATOR, _WITH, _CALLS, _COMPILES), rows)
    shown = log.operators[:limit]
    yield Table(
        _BY_OPERATOR,
        (_OPERATOR, _CALLS, _SHAPES, _SIGNATURES, _COMPILES, _LATE, _TIME, _MISSES),
        tuple(
            (
                Cell(row.type, is_code=True),
                *(Cell(f"{count:,}") for count in (row.calls, row.shapes, len(row.signatures), row.compiles)),
                Cell(f"{row.recompiles:,}", "red" if row.recompiles else ""),
                Cell(duration(row.compile_seconds) if row.compile_seconds else ""),
                Cell(f"{row.misses:,}"),
            )
            for row in shown
        ),
        len(log.operators) - len(shown),
    )
    yield Table(_CONVERTED, (_OPERATOR, _CHANGE, _CALLS), tuple(_conversion_rows(log)))


def _conversion_rows(log: OpLog) -> Iterator[tuple[Cell, ...]]:
    changes: dict[tuple[str, str], int] = {}
    for operator in log.conversions:
        for signature in operator.signatures:
            change = ""
            if signature.inputs and signature.outputs:
                before, after = signature.inputs[0], signature.outputs[0]
                change = f"{before.dtype} {before.storage} → {after.dtype} {after.storage}"
            key = (operator.type, change)
            changes[key] = changes.get(key, 0) + signature.calls
    greatest = sorted(changes.items(), key=lambda item: -item[1])
    for (kind, change), calls in greatest[:10]:
        yield Cell(kind, is_code=True), Cell(change, is_code=True), Cell(f"{calls:,}")


def _inputs(signature: LoggedSignature) -> str:
    more = ["…"] if len(signature.inputs) > _TENSORS else []
    return "; ".join([*map(tensor_text, signature.inputs[:_TENSORS]), *more])


def tensor_text(tensor: LoggedTensor) -> str:
    """float16[8, 3, 224, 224] NCHW, with the format in memory where it is another."""
    form = tensor.format if tensor.format == tensor.storage else f"{tensor.format}/{tensor.storage}"
    return f"{tensor.dtype}{list(tensor.shape)} {form}"


COLUMNS = ("operator", "calls", "compiles", "inputs", "outputs", "attributes", "cut")


def to_json(log: OpLog, options: Options) -> str:
    """Everything; what the log does not say is null."""
    import json

    content = {
        "format": "torchferry-oplog",
        "version": 1,
        **picked(log, "vendor", "sources"),
        "bytes": log.bytes_read,
        **picked(log, "calls", "compiles", "compile_seconds", "misses", "basis", "basis_text"),
        "recompiles": [
            {**entry._asdict(), "signature": entry.signature and entry.signature.inputs}
            for entry in log.recompiles
        ],
        "processes": log.processes,
        "operators": [
            {
                **picked(
                    row, "type", "calls", "shapes", "compiles", "compile_seconds", "recompiles", "misses"
                ),
                **picked(row, "is_conversion", "uncounted"),
                "signatures": [
                    picked(each, "inputs", "outputs", "attributes", "calls", "compiles", "cut")
                    for each in row.signatures
                ],
            }
            for row in log.operators
        ],
        **picked(log, "unread", "notes"),
    }
    return json.dumps(plain(content), indent=2) + "\n"


def to_csv(log: OpLog, options: Options) -> Iterator[str]:
    """One row for each signature."""
    from torchferry.report.csv import csv_lines

    rows = [
        (
            operator.type,
            signature.calls,
            signature.compiles,
            "; ".join(map(tensor_text, signature.inputs)),
            "; ".join(map(tensor_text, signature.outputs)),
            signature.attributes,
            int(signature.cut),
        )
        for operator in log.operators
        for signature in operator.signatures
    ]
    yield from csv_lines([COLUMNS, *rows])


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
