"""The test of the operator that an issue is about: of a record's call, or one that `ferry case` has written."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy import case_inputs
from torchferry.accuracy.compare.comparing import ComparingPlan, compare_files
from torchferry.accuracy.cutting import CutRequest, NumberRange, chosen_calls, cut
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Call, Kept, RecordHeader
from torchferry.accuracy.native.library import statistics_of
from torchferry.accuracy.report import sentences
from torchferry.bundle.model import RECORD, STATISTICS, BundleRequest, IssueCase
from torchferry.errors import InputError, not_readable
from torchferry.files.aside import whole_file, write_whole
from torchferry.readiness.cases.bench import BenchSetting, bench_for
from torchferry.readiness.cases.building import CaseRequest, build
from torchferry.readiness.cases.model import (
    Case,
    CaseOutcome,
    CaseValue,
    CaseVerdict,
    Draw,
    TensorContents,
    TensorInput,
    TrialFacts,
)
from torchferry.readiness.cases.notation import COMPLEX, described_call, is_floating
from torchferry.readiness.cases.writing import (
    FileFrame,
    data_name,
    platforms_for,
    short_name,
    write_case,
)
from torchferry.report.anonymous import Anonymiser
from torchferry.text import Text

_NOT_IN_NAMES = r"^(?:aten|torch)(?:::|\.)|\W+"
_CALL = Text("call", "调用")
_STEP = Text("step", "步")
_PHASE = Text("phase", "阶段")
_MODULE = Text("module", "模块")
_PLACE = Text("line", "代码行")
_DEVICE = Text("device", "设备")
_TORCH = Text("torch of the run", "运行时的 torch")


@dataclass(frozen=True)
class CaseWork:
    """What a case is made with."""

    request: BundleRequest
    folder: Path  # in which the archive's files are put together
    anonymiser: Anonymiser


def cut_call(work: CaseWork, record: Path) -> Call:
    """Put the wanted call of a record into the folder, as a record of its own."""
    request = CutRequest(_numbers(work.request, record))
    _learn(work, record, request)
    cut(record, work.folder / RECORD, request, work.anonymiser)
    with open_record(work.folder / RECORD) as made:
        if len(made.calls) > 1:
            raise InputError(
                Text(
                    f"{record}: several calls have this number; cut one out with `ferry record cut`",
                    f"{record}：有多个调用使用该编号；请先用 `ferry record cut` 截取一个",
                )
            )
        return made.calls[0]


def _numbers(request: BundleRequest, record: Path) -> tuple[NumberRange, ...]:
    if request.call is not None:
        return (NumberRange(request.call, request.call),)
    with open_record(record) as opened:
        count = len(opened.calls)
        if count == 1:
            return ()
        if not count:
            raise InputError(
                Text(
                    f"{record}: an empty recording, without a single call; record again",
                    f"{record}：记录为空，没有任何调用；请重新记录",
                )
            )
        raise InputError(
            Text(
                f"{record}: which of its {count:,} calls? Name one with --call N, as `ferry compare` counts them",
                f"{record}：其中有 {count:,} 次调用，请用 --call N 指定一次（编号与 `ferry compare` 相同）",
            )
        )


def _learn(work: CaseWork, record: Path, request: CutRequest) -> None:
    with open_record(record) as opened:
        header = opened.header
        for text in (header.program, header.options, *header.notes):
            work.anonymiser.learn(text)
        for at in chosen_calls(opened, request):
            work.anonymiser.learn(opened.calls[at].place)


def recorded_case(work: CaseWork, call: Call, is_drawn: bool = False) -> IssueCase:
    """Write the test of a call that lies in the folder, and run it; with inputs that are drawn if they are too large."""
    record = work.folder / RECORD
    with open_record(record) as opened:
        header = opened.header
    if header.kept is Kept.STATISTICS:
        raise InputError(
            Text(
                "the recording holds only statistics, no inputs to call an operator with; record without --stats",
                "该记录只有统计值，没有可用于调用算子的输入；请去掉 --stats 重新记录",
            )
        )
    case = build(CaseRequest(call.operator, source=record, call=call.number), case_inputs)
    if is_drawn:
        write_whole(work.folder / STATISTICS, (json.dumps(_statistics(case), indent=1) + "\n").encode())
        case = replace(case, args=_drawn_all(case, case.args), kwargs=_drawn_named(case), stored={})
    name, vendor = f"test_{short_name(case)}.py", work.request.vendor
    target, platforms = platforms_for(vendor)
    words = [
        "ferry",
        "case",
        call.operator,
        "--from",
        RECORD,
        "--call",
        str(call.number),
        "--to",
        vendor.name,
    ]
    frame = FileFrame(
        target,
        platforms,
        style="unittest",
        command="" if is_drawn else " ".join(words),
        file_name=name,
    )
    outcome = _written(work, case, frame)
    is_wrong, recorded = (False, ()) if is_drawn else _verdicts(record)
    return IssueCase(
        case.callee.name,
        name,
        f"python {name}",
        described_call(case),
        outcome,
        recorded,
        tuple(_run_of(call, header)),
        is_wrong,
        is_drawn,
    )


def _written(work: CaseWork, case: Case, frame: FileFrame) -> CaseOutcome | None:
    with _bench(work) as bench, tempfile.TemporaryDirectory(prefix="torchferry-bundle-") as scratch:
        facts = bench.probe(write_case(case, TrialFacts(), frame, Path(scratch) / "test_probe.py"))
        if facts.error:
            raise InputError(
                Text(
                    f"{described_call(case)}: the CPU rejects this call: {facts.error}",
                    f"{described_call(case)}：CPU 拒绝该调用：{facts.error}",
                )
            )
        facts = replace(facts, uninitialised=case.callee.returns_raw_memory)
        file = write_case(case, facts, frame, work.folder / frame.file_name)
        return _told(work, bench.run(file)) if work.request.is_run else None


def _bench(work: CaseWork) -> Any:
    request = work.request
    paths = tuple(str(path.resolve()) for path in request.vendor_path)
    setting = BenchSetting(request.vendor, paths, request.emulate, request.is_run, request.is_quiet)
    return bench_for(setting, request.timeout)


def _told(work: CaseWork, outcome: CaseOutcome) -> CaseOutcome:
    """What a process said may name its machine, too."""
    work.anonymiser.learn(outcome.message)
    return replace(outcome, message=work.anonymiser(outcome.message))


def given_case(work: CaseWork, case: Path) -> IssueCase:
    """Put a test that `ferry case` has written into the folder, with its tensors, and run it there."""
    text = case.read_bytes().decode("utf-8", "replace")
    work.anonymiser.learn(text)
    operator = work.anonymiser(text.partition('"""')[2].partition(": a device")[0])
    file = work.folder / f"test_{re.sub(_NOT_IN_NAMES, '_', operator).strip('_').lower() or 'operator'}.py"
    write_whole(file, work.anonymiser.in_source(text).encode())
    data = case.with_name(data_name(case.name))
    if data.is_file():
        with whole_file(work.folder / data_name(file.name)) as stream:
            torch.save(_tensors_in(data), stream)
    outcome = None
    if work.request.is_run:
        with _bench(work) as bench:
            outcome = _told(work, bench.run(file))
    if outcome is not None and outcome.kind is CaseVerdict.INVALID:
        raise InputError(
            Text(f"{case}: can't be run: {outcome.message}", f"{case}：无法运行：{outcome.message}")
        )
    runner = "python" if "unittest.main()" in text else "python -m pytest"
    return IssueCase(operator, file.name, f"{runner} {file.name}", outcome=outcome)


def _tensors_in(data: Path) -> Mapping[str, torch.Tensor]:
    try:
        found = torch.load(data, weights_only=True)
    except Exception as error:  # of a file that anybody may have made
        raise not_readable(data, str(error).splitlines()[0]) from None
    if not isinstance(found, dict) or not all(isinstance(each, torch.Tensor) for each in found.values()):
        raise InputError(
            Text(
                f"{data}: must hold named tensors only; `ferry case` writes the test again",
                f"{data}：只能包含带名称的张量；请用 `ferry case` 重新生成测试",
            )
        )
    return {str(name): tensor for name, tensor in found.items()}


def _verdicts(record: Path) -> tuple[bool, tuple[tuple[Text, Text], ...]]:
    """Whether the recorded results are wrong, and what is said of them, held against double precision."""
    (comparison,) = compare_files(record, None, ComparingPlan())
    headline = (Text("verdict", "结论"), sentences.headline(comparison))
    return comparison.culprit is not None, (headline, *sentences.details(comparison))


def _run_of(call: Call, header: RecordHeader) -> Iterator[tuple[Text, str]]:
    simulated = " (simulated)" if header.simulated else ""
    facts = {
        _CALL: str(call.number),
        _STEP: str(call.step),
        _PHASE: call.phase,
        _MODULE: call.module,
        _PLACE: call.place,
        _DEVICE: f"{header.device}{simulated}" if header.device else "",
        _TORCH: header.torch,
    }
    yield from ((name, value) for name, value in facts.items() if value)


# Inputs that take the place of recorded ones: of the same shape, layout, dtype and range, drawn from a seed.


def _drawn_all(case: Case, values: tuple[CaseValue, ...]) -> tuple[CaseValue, ...]:
    return tuple(_drawn(case, value) for value in values)


def _drawn_named(case: Case) -> tuple[tuple[str, CaseValue], ...]:
    return tuple((name, _drawn(case, value)) for name, value in case.kwargs)


def _drawn(case: Case, value: CaseValue) -> CaseValue:
    if isinstance(value, tuple):
        return _drawn_all(case, value)
    if not isinstance(value, TensorInput) or value.contents.draw is not Draw.STORED:
        return value
    return replace(value, contents=_alike(value.dtype, case.stored[value.contents.key]))


def _alike(dtype: str, stored: torch.Tensor) -> TensorContents:
    if dtype == "bool" or dtype in COMPLEX or not stored.numel():
        return TensorContents(Draw.NORMAL)
    if not is_floating(dtype):
        least, most = int(stored.min()), int(stored.max())
        is_same = least == most
        return TensorContents(Draw.FULL, least) if is_same else TensorContents(Draw.INTS, least, most + 1)
    wide = stored.double()
    finite = wide[wide.isfinite()]
    tests = {"nan": wide.isnan(), "inf": wide == math.inf, "-inf": wide == -math.inf}
    special = tuple(name for name, where in tests.items() if bool(where.any()))
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    draw = Draw.UNIFORM if low < high else Draw.FULL
    return TensorContents(draw, low, high, special)


def _statistics(case: Case) -> list[dict[str, Any]]:
    """Of the recorded inputs, which are not in the archive."""
    return [
        {
            "input": tensor.contents.key,
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "stride": list(tensor.strides),
            **_figures(tensor.dtype, case.stored[tensor.contents.key]),
        }
        for tensor in case.tensors
        if tensor.contents.draw is Draw.STORED
    ]


def _figures(dtype: str, stored: torch.Tensor) -> dict[str, Any]:
    flat = stored.contiguous().reshape(-1)
    return asdict(statistics_of(flat.data_ptr(), dtype, flat.numel()))
