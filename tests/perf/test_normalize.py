"""Traces that every viewer shows as they were."""

from __future__ import annotations

import gzip
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.perf.real_traces import VENDORS_TIMELINE, real_trace
from torchferry.errors import InputError, OutputError
from torchferry.perf.normalize import normalize
from torchferry.traces import chunks
from torchferry.traces.reader import read_trace

START = 1704161511420306


def event(start: str, duration: Any, **others: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::a",
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": duration,
        **others,
    }


def normalized(folder: Path, content: Any, name: str = "fixed.json") -> dict[str, Any]:
    source = folder / "trace_view.json"
    source.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    normalize(source, folder / name)
    text = (folder / name).read_bytes()
    read: dict[str, Any] = json.loads(gzip.decompress(text) if name.endswith("gz") else text)
    return read


def test_times_are_numbers_from_zero_on(tmp_path: Path) -> None:
    read = normalized(tmp_path, [event(f"{START}.491", 13.08), event(f"{START + 7}.002", "4.001")])
    assert [(each["ts"], each["dur"]) for each in read["traceEvents"]] == [(0.491, 13.08), (7.002, 4.001)]


def test_a_list_becomes_an_object_and_other_keys_stay(tmp_path: Path) -> None:
    assert normalized(tmp_path, [event("5", 1)])["displayTimeUnit"] == "ms"
    about = {
        "deviceProperties": [{"id": 0, "name": "A"}],
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": 1000,
    }
    read = normalized(tmp_path, {"schemaVersion": 1, "traceEvents": [event("5", 1)], **about})
    del read["traceEvents"]
    assert read == {"schemaVersion": 1, **about, "baseTimeNanoseconds": 1000 + 5000}


def test_a_thread_that_is_written_in_two_ways_becomes_one(tmp_path: Path) -> None:
    read = normalized(tmp_path, [event("1", 1, tid="25738", pid="007"), event("2", 1, tid=25738)])
    assert [each["tid"] for each in read["traceEvents"]] == [25738, 25738]
    assert read["traceEvents"][0]["pid"] == "007"  # no number that any other event may have written


def test_everything_else_stays_as_it_is(tmp_path: Path) -> None:
    args = {"Input Dims": [[2, 3], []], "big": 2**63, "text": '\u4e2d "}, {"', "id": 0.1}
    read = normalized(
        tmp_path, [event("1", 1, args=args, id="x7"), {"ph": "M", "name": "process_name", "pid": 1}]
    )
    assert read["traceEvents"] == [
        {**event("1", 1.0), "ts": 0.0, "args": args, "id": "x7"},
        {"ph": "M", "name": "process_name", "pid": 1},
    ]


@pytest.mark.parametrize("digits", [3, 6])
def test_what_lay_in_another_still_does(tmp_path: Path, digits: int) -> None:
    """Of an outer event and the inner ones that begin with it, or end with it, or fill it."""
    outer = (Decimal(START) + Decimal("0.100999"), Decimal("1.000999"))
    inner = [
        (outer[0], Decimal("0.5")),
        (outer[0] + Decimal("0.500001"), outer[1] - Decimal("0.500001")),
        outer,
    ]
    cut = Decimal(1).scaleb(-digits)
    spans = [(start.quantize(cut), length.quantize(cut)) for start, length in (*inner, outer)]
    read = normalized(tmp_path, [event(str(start), str(length)) for start, length in spans])
    shown = [
        (round(each["ts"] * 1000), round((each["ts"] + each["dur"]) * 1000)) for each in read["traceEvents"]
    ]
    assert shown[0] == (
        min(start for start, _ in shown),
        max(end for _, end in shown),
    )  # the outer one comes first
    expected = sorted(
        (int((start - START) * 1000 // 1), int((start + length - START) * 1000 // 1))
        for start, length in spans
    )
    assert sorted(shown) == expected


def test_a_cut_file_is_given_an_end(tmp_path: Path) -> None:
    source = tmp_path / "cut.json"
    source.write_text(json.dumps([event(str(number), 1) for number in range(9)])[:-30])
    done = normalize(source, tmp_path / "fixed.json")
    assert done.is_repaired
    assert done.events == len(json.loads((tmp_path / "fixed.json").read_text())["traceEvents"]) == 8


def test_what_no_viewer_reads_is_repaired_or_dropped(tmp_path: Path) -> None:
    source = tmp_path / "odd.json"
    events = json.dumps([event("1", 1, args={"x": 1}), event("2", 1, name="bad \\ name"), event("3", -5)])
    source.write_bytes(events.encode().replace(b'"x": 1', b'"x": NaN').replace(b"bad", b"b\xffd\x01"))
    done = normalize(source, tmp_path / "fixed.json")
    assert (done.events, done.dropped) == (2, 1)
    first, second = json.loads((tmp_path / "fixed.json").read_text())["traceEvents"]
    assert first["args"] == {"x": None}
    assert second["name"] == "b\ufffdd\x01 \\ name"


def test_piece_by_piece_is_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event(str(START + number), 1, args={"n": number}) for number in range(500)]
    whole = normalized(tmp_path, {"traceEvents": events, "z": 1})
    monkeypatch.setattr(chunks, "BLOCK", 777)
    assert normalized(tmp_path, {"traceEvents": events, "z": 1}) == whole
    assert len(whole["traceEvents"]) == 500


def test_packed_in_and_out(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps([event("3", 1)]).encode())
    assert normalized(tmp_path, packed, "fixed.json.gz")["traceEvents"] == [{**event("3", 1.0), "ts": 0.0}]
    first = (tmp_path / "fixed.json.gz").read_bytes()
    normalized(tmp_path, packed, "fixed.json.gz")
    assert (tmp_path / "fixed.json.gz").read_bytes() == first


def test_a_file_may_be_replaced_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([event(f"{START}.5", 1)]))
    normalize(path, path)
    assert json.loads(path.read_text())["traceEvents"][0]["ts"] == 0.5


@pytest.mark.parametrize("content", [b"hello", b"[]", b'[{"ph": "M", "name": "x"}]'])
def test_nothing_is_written_of_what_is_no_trace(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "x.json"
    source.write_bytes(content)
    with pytest.raises(InputError):
        normalize(source, tmp_path / "fixed.json")
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["x.json"]


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    source, target = tmp_path / "t.json", tmp_path / "fixed.json"
    source.write_text(json.dumps([event("1", 1)]))
    target.write_text("before")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        normalize(source, target, interrupt)
    assert target.read_text() == "before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fixed.json", "t.json"]


def test_a_place_that_can_not_be_written_to(tmp_path: Path) -> None:
    source = tmp_path / "t.json"
    source.write_text(json.dumps([event("1", 1)]))
    with pytest.raises(OutputError, match="in a folder that exists"):
        normalize(source, source / "fixed.json")
    with pytest.raises(OutputError, match="in a folder that exists"):
        normalize(source, tmp_path / "missing" / "fixed.json")
    assert [each.name for each in tmp_path.iterdir()] == ["t.json"]


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    source, pipe = tmp_path / "t.json", tmp_path / "pipe.json"
    source.write_text(json.dumps([event("1", 1)]))
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="can't be written there"):
        normalize(source, pipe)
    assert pipe.is_fifo()


def test_a_real_timeline_is_the_same_trace_afterwards(tmp_path: Path) -> None:
    source, target = real_trace(VENDORS_TIMELINE), tmp_path / "fixed.json"
    done = normalize(source, target)
    assert (done.dropped, done.events) == (0, len(json.loads(source.read_text())))
    before, after = read_trace(source), read_trace(target)
    assert (after.parent == before.parent).all()
    assert (after.host.start == before.host.start).all()
    # two of them have digits below a nanosecond
    assert abs(after.device.duration - before.device.duration).max() <= 1
    assert (after.owner == before.owner).all()
    times = [each["ts"] for each in json.loads(target.read_text())["traceEvents"] if each["ph"] == "X"]
    assert all(isinstance(time, float) and 0 <= time < 1e6 for time in times)
