"""Traces in every state: cut, damaged, of other years, with hostile contents."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.perf.real_traces import KERNEL_TABLE, VENDORS_TIMELINE, real_trace
from torchferry.errors import InputError
from torchferry.traces import chunks
from torchferry.traces.columns import EventKind
from torchferry.traces.model import Trace
from torchferry.traces.reader import read_trace

COUNT = 200


def op(number: int, **changed: Any) -> dict[str, Any]:
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"aten::op{number % 3}",
        "pid": 1,
        "tid": 1,
        "ts": 10.5 * number,
        "dur": 5,
        "args": {"External id": number + 1},
    }
    return {**event, **changed}


def ops(count: int = COUNT) -> list[dict[str, Any]]:
    return [op(number) for number in range(count)]


def read(folder: Path, content: Any) -> Trace:
    """Of bytes, or of what JSON makes of anything else."""
    path = folder / "trace.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_trace(path)


def notes(trace: Trace) -> list[str]:
    return [note.en for note in trace.notes]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ops()).encode(),
        json.dumps({"traceEvents": ops()}).encode(),
        json.dumps({"traceEvents": ops()}, indent=1).replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + json.dumps(ops()).encode(),
        gzip.compress(json.dumps({"traceEvents": ops()}).encode()),
        gzip.compress(json.dumps(ops()[:50]).encode()[:-1] + b",")
        + gzip.compress(json.dumps(ops()[50:]).encode()[1:]),
        json.dumps([{"weird": 1, **event} for event in ops()]).encode(),
        json.dumps([{"args": {}, **event} for event in ops()]).encode(),
        json.dumps(ops()).encode()[:-1] + b",\n]",
    ],
    ids=["list", "object", "pretty", "mark", "packed", "packed twice", "own keys", "args first", "comma"],
)
def test_all_events_are_read(tmp_path: Path, content: bytes) -> None:
    trace = read(tmp_path, content)
    assert len(trace.host) == COUNT
    assert notes(trace) == []


def test_a_cut_file_is_read_up_to_its_last_whole_event(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": ops()}).encode()
    trace = read(tmp_path, text[: text.rindex(b'"ts"')])
    assert len(trace.host) == COUNT - 1
    assert notes(trace) == ["trace.json ends in the middle: it was read up to its last whole event."]


@pytest.mark.parametrize("lost", [8, 40, 300])
def test_a_cut_archive_gives_what_it_still_holds(tmp_path: Path, lost: int) -> None:
    packed = gzip.compress(json.dumps({"traceEvents": ops()}).encode())
    trace = read(tmp_path, packed[:-lost])
    assert COUNT // 2 < len(trace.host) <= COUNT
    assert "ends in the middle" in notes(trace)[0]


def test_an_archive_whose_sum_is_wrong_loses_nothing(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps({"traceEvents": ops()}).encode())
    assert len(read(tmp_path, packed[:-8] + bytes(8)).host) == COUNT


def test_keys_after_the_events_are_no_events(tmp_path: Path) -> None:
    devices = [{"id": 0, "name": "A", "totalGlobalMem": 5}, {"id": 1, "name": "B"}]
    named_first = [{"name": f"B{number}"} for number in range(50)]
    for about in (devices, named_first):
        trace = read(tmp_path, {"traceEvents": ops(), "deviceProperties": about, "trace_id": "X"})
        assert len(trace.host) == COUNT
        assert notes(trace) == []
        assert (trace.about["deviceProperties"], trace.about["trace_id"]) == (about, "X")


def test_events_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "BLOCK", 1000)
    long = op(70, args={"text": "}, {" * 1000, "list": [{"a": 1}] * 2000})
    events = [*ops(70), long, *[op(number) for number in range(71, COUNT)]]
    trace = read(tmp_path, {"traceEvents": events, "deviceProperties": [{"name": "A"}]})
    assert len(trace.host) == COUNT
    assert notes(trace) == []


def test_objects_in_an_event_are_no_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = {"list": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    events = [op(number, args=inner) for number in range(COUNT)]
    for block in (8 << 20, 1000, 999, 998):
        monkeypatch.setattr(chunks, "BLOCK", block)
        trace = read(tmp_path, events)
        assert (len(trace.host), notes(trace)) == (COUNT, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"aten::op1", b"aten::\xff\xfe"),
        (b"aten::op1", b"aten::\x01\n"),
        (b"aten::op1", rb"aten::\ud800"),
        (b'"External id": 5}', b'"External id": 5, "bandwidth": NaN, "x": -Infinity}'),
        (b'"External id": 5}', b'"External id": {}}'),
        (b'{"External id": 5}', b"null"),
        (b'{"External id": 5}', b"[1]"),
        (b'"dur": 5', b'"dur": "5.125"'),
        (b'"dur": 5', b'"dur": null'),
        (b'"tid": 1', b'"tid": "1"'),
        (b'"name": "aten::op1"', b'"name": 17'),
    ],
)
def test_odd_events_are_kept(tmp_path: Path, old: bytes, new: bytes) -> None:
    text = json.dumps(ops()).encode()
    assert old in text
    trace = read(tmp_path, text.replace(old, new, 3))
    assert len(trace.host) == COUNT
    assert notes(trace) == []


@pytest.mark.parametrize("time", ["-1", '"soon"', "1e300", "9" * 400, "true", "{}"])
def test_events_without_a_usable_time_are_left_out_with_a_note(tmp_path: Path, time: str) -> None:
    key = b'"dur": 5' if time == "-1" else b'"ts": 0.0'
    text = json.dumps(ops()).encode()
    trace = read(tmp_path, text.replace(key, key[: key.index(b":") + 1] + time.encode(), 1))
    assert len(trace.host) == COUNT - 1
    assert notes(trace) == ["trace.json: 1 damaged events were left out."]


def test_events_without_a_duration_take_no_time(tmp_path: Path) -> None:
    without = [{key: value for key, value in op(1).items() if key != "dur"}, op(2)]
    assert sorted(read(tmp_path, without).host.duration.tolist()) == [0, 5000]


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"12", b"\x89PNG\r\n", b'{"a": 1}', b"null", b"\x1f\x8bnothing packed", b"[[[[" * 50_000],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match=r"trace\.json"):
        read(tmp_path, content)


@pytest.mark.parametrize("content", [b"[]", b'{"traceEvents": []}', b"[", b'{"traceEvents": [{"ph": "M"}]}'])
def test_traces_without_events_say_what_to_record(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="holds no profiler events; record with"):
        read(tmp_path, content)


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        read_trace(tmp_path)


def test_an_event_that_is_too_deep_does_no_harm(tmp_path: Path) -> None:
    deep = b'{"ph": "X", "args": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    before, after = json.dumps(ops()).encode()[:-1], json.dumps(ops()).encode()[1:]
    assert len(read(tmp_path, before + b"," + deep + b"]").host) == COUNT
    assert len(read(tmp_path, before + b"," + deep + b"," + after).host) == 2 * COUNT


@pytest.mark.parametrize("as_text", [True, False], ids=["texts", "numbers"])
def test_times_since_1970_are_exact(tmp_path: Path, as_text: bool) -> None:
    first = Decimal("1704161511420306.491")
    times = [first + Decimal("0.001") * step for step in range(300)]
    quote = '"' if as_text else ""
    events = ",".join(
        f'{{"ph": "X", "cat": "cpu_op", "name": "aten::a", "pid": 1, "tid": 1, "ts": {quote}{time}{quote}, "dur": 0.001}}'
        for time in times
    )
    trace = read(tmp_path, f"[{events}]".encode())
    assert trace.origin == int(first * 1000)
    assert trace.host.start.tolist() == list(range(300))


def test_texts_and_numbers_in_one_file(tmp_path: Path) -> None:
    mixed = [op(0, ts="5.123"), op(1, ts=7.25), op(2, ts=8), op(3, ts="9")]
    assert read(tmp_path, mixed).host.start.tolist() == [0, 2127, 2877, 3877]


def test_categories_of_2021_and_of_today(tmp_path: Path) -> None:
    def events(operator: str, kernel: str, copy: str, runtime: str, key: str) -> list[dict[str, Any]]:
        return [
            op(0, cat=operator, ts=0, dur=100, args={key: 7}),
            {"ph": "X", "cat": runtime, "name": "launch", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "args": {key: 7, "correlation": 3}},
            {"ph": "X", "cat": kernel, "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 30, "args": {key: 7, "correlation": 3}},
            {"ph": "X", "cat": copy, "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 60, "dur": 3, "args": {key: 7, "correlation": 4}},
        ]  # fmt: skip

    old = read(tmp_path, events("Operator", "Kernel", "Memcpy", "Runtime", "external id"))
    new = read(tmp_path, events("cpu_op", "kernel", "gpu_memcpy", "cuda_runtime", "External id"))
    for trace in (old, new):
        assert trace.device.kind.tolist() == [EventKind.COMPUTE, EventKind.COPY]
        assert trace.owner.tolist() == [0, 0]
        assert trace.device_time.tolist() == [33_000]


def test_totals_of_a_vendors_timeline_are_those_of_its_text() -> None:
    path = real_trace(VENDORS_TIMELINE)
    events = json.loads(path.read_text(), parse_float=Decimal)
    processes = {
        event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"
    }
    hardware = [
        event for event in events if event["ph"] == "X" and processes.get(event["pid"]) == "Ascend Hardware"
    ]
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    trace = read_trace(path)
    assert len(trace.device) == len(hardware)
    for events, duration in ((hardware, trace.device.duration), (operators, trace.host.duration)):
        exact = sum(event["dur"] for event in events) * 1000
        assert abs(int(duration.sum()) - exact) <= len(events) / 2  # each to the nearest nanosecond
    first = min(Decimal(event["ts"]) for event in operators)
    starts = trace.host.start + trace.origin
    assert int(starts.min()) == int(first * 1000)


def test_a_table_is_no_trace() -> None:
    with pytest.raises(InputError, match="is not a profiler trace"):
        read_trace(real_trace(KERNEL_TABLE))


def test_a_step_with_a_number_that_none_can_have_is_no_step(tmp_path: Path) -> None:
    mark = op(0, cat="user_annotation", dur=50)
    trace = read(
        tmp_path, [op(1), {**mark, "name": f"ProfilerStep#{'9' * 30}"}, {**mark, "name": "ProfilerStep#7"}]
    )
    assert trace.steps.number.tolist() == [7]
