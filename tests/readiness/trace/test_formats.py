"""Files of all years and in all states: what is the same in them, what is repaired, what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.readiness.trace.making import Events, calls, op, the, write
from torchferry.errors import InputError
from torchferry.readiness.model import NOTES, Phase, TensorSpec
from torchferry.readiness.trace import read_trace

LINEAR = [
    op("aten::linear", 100, 50, External_id=1),
    op("aten::addmm", 110, 30, External_id=2),
    op("aten::relu", 160, 10, External_id=3),
]
EXPECTED = {"aten::addmm": 1, "aten::relu": 1}


def _with(events: Events, **changed: Any) -> Events:
    return [{**event, **changed} for event in events]


@pytest.mark.parametrize("category", ["cpu_op", "Operator"])
def test_categories_of_all_years(category: str, tmp_path: Path) -> None:
    assert calls(read_trace(write(tmp_path, _with(LINEAR, cat=category)))) == EXPECTED


def test_a_list_with_times_as_text(tmp_path: Path) -> None:
    """Microseconds since 1970 with nanoseconds: a float would put the second operator into the first."""
    path = tmp_path / "trace_view.json"
    first = op("aten::relu", "1704161511420306.491", "0.020")
    second = op("aten::neg", "1704161511420306.511", "0.020")
    path.write_text(json.dumps([first, second]))
    capture = read_trace(path)
    assert calls(capture) == {"aten::relu": 1, "aten::neg": 1}
    assert the(capture, "aten::relu").seconds == 20e-9


def test_numbers_keep_their_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    event = '{"ph": "X", "cat": "cpu_op", "name": "%s", "pid": 1, "tid": 1, "ts": %s, "dur": %s}'
    first = event % ("aten::relu", "1704161511420306.491", "0.020")
    second = event % ("aten::neg", "1.704161511420306511e15", "2e-2")
    path.write_text(f'{{"traceEvents": [{first}, {second}]}}')
    assert calls(read_trace(path)) == {"aten::relu": 1, "aten::neg": 1}


def test_a_time_that_is_a_float_is_rounded(tmp_path: Path) -> None:
    """Profilers write 139.41899999999998 for 139.419."""
    assert (
        the(read_trace(write(tmp_path, [op("aten::relu", 1, 139.41899999999998)])), "aten::relu").seconds
        == 139419e-9
    )


def test_a_trace_that_a_console_wrote_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": LINEAR}), "utf-16")
    assert calls(read_trace(path)) == EXPECTED


def test_the_first_profilers(tmp_path: Path) -> None:
    """No categories, no `aten::`; the device's work is linked by flows."""
    host = {"ph": "X", "pid": "CPU functions", "tid": 1, "args": {}}
    device = {"ph": "X", "pid": "CUDA functions", "tid": 0, "args": {}}
    flow = {"cat": "cpu_to_cuda", "id": 5, "args": {}}
    events = [
        {**host, "name": "conv2d", "ts": 10, "dur": 90},
        {**host, "name": "_convolution", "ts": 20, "dur": 70},
        {**host, "name": "ThAddBackward", "ts": 200, "dur": 20},
        {**host, "name": "mul", "ts": 205, "dur": 10},
        {**flow, "ph": "s", "name": "x", "pid": "CPU functions", "tid": 1, "ts": 20},
        {**flow, "ph": "f", "name": "x", "pid": "CUDA functions", "tid": 0, "ts": 300},
        {**device, "name": "void kernel", "ts": 300, "dur": 7},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    capture = read_trace(path)
    assert capture.device == "cuda"
    assert the(capture, "aten::_convolution").seconds == 7e-6
    assert the(capture, "aten::mul").site.phase is Phase.BACKWARD
    assert capture.judged()


def test_types_of_2021(tmp_path: Path) -> None:
    event = op(
        "aten::sum", 1, 5, Input_Dims=[[2, 3], [], [], []], Input_type=["float", "GenericList", "Bool", ""]
    )
    signature = the(read_trace(write(tmp_path, [event])), "aten::sum.dim_IntList").signature
    assert signature.inputs == [TensorSpec("float32", (2, 3))]


def test_a_file_that_is_cut_short(tmp_path: Path) -> None:
    """Wherever it is cut, what is there is read; before the first event is whole there is nothing to read."""
    path = write(tmp_path, [op("aten::relu", 0, 5), op("aten::neg", 10, 5), op("aten::cos", 20, 5)])
    whole = path.read_bytes()
    outcomes = []
    for length in range(1, len(whole) - 4):
        path.write_bytes(whole[:length])
        try:
            capture = read_trace(path)
        except InputError:
            outcomes.append(0)
        else:
            assert "truncated" in capture.notes
            outcomes.append(len(capture.uses))
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {0, 1, 2, 3}


def test_a_packed_file_that_is_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    events = [
        op("aten::relu", 10 * i, 5, Input_Dims=[[i * 7919 % 1000, i]], Input_type=["float"])
        for i in range(4000)
    ]
    packed = gzip.compress(json.dumps({"traceEvents": events}).encode())
    path.write_bytes(packed[: len(packed) // 2])
    capture = read_trace(path)
    assert "truncated" in capture.notes
    assert 1000 < calls(capture)["aten::relu"] < 4000


def test_archives_strung_together(tmp_path: Path) -> None:
    whole = write(tmp_path, LINEAR).read_bytes()
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(whole[:100]) + gzip.compress(whole[100:]))
    capture = read_trace(path)
    assert calls(capture) == EXPECTED
    assert "truncated" not in capture.notes


def test_damaged_events_are_passed_over(tmp_path: Path) -> None:
    """Profilers have written `inf`, and quotes inside of names."""
    texts = [json.dumps(event) for event in LINEAR]
    bad = [
        '{"ph": "X", "cat": "cpu_op", "name": "C:\\Users", "ts": 1}',
        '{"ph": "X", "cat": "kernel", "name": "k", "args": {"occupancy": inf}}',
        '{"ph": "X", "cat": "cpu_op", "name": "say "hello"", "ts": 2, "dur": 1}',
        '{"ph": "X", "cat": "cpu_op", "name": "aten::neg", "ts": "soon", "dur": 1}',
        '{"ph": "X", "cat": "cpu_op", "name": "aten::neg", "ts": "1e99999999", "dur": 1}',
        '{"ph": "X", "cat": "cpu_op", "name": "aten::neg", "ts": 5}',
        "17",
    ]
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [' + ",\n".join([texts[0], *bad, *texts[1:]]) + "]}")
    capture = read_trace(path)
    assert calls(capture) == EXPECTED | {"aten::neg": 1}
    assert "truncated" in capture.notes


@pytest.mark.parametrize("field", ["ts", "dur", "pid", "tid"])
def test_a_number_beyond_all_times_costs_one_event(field: str, tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::neg", "ts": 5, "dur": 1, "pid": 1, "tid": 1}
    huge = {**event, field: 10**400}
    capture = read_trace(write(tmp_path, [*LINEAR, huge]))
    assert EXPECTED.items() <= calls(capture).items()


def test_an_event_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    long = op("python", 1, 1, category="python_function", text="x" * 5_000_000)
    assert calls(read_trace(write(tmp_path, [long, *LINEAR, long]))) == EXPECTED


def test_many_pieces(tmp_path: Path) -> None:
    events = [op("aten::relu", 10 * i, 5, note='}, {"name": ' + "é" * (i % 50)) for i in range(12_000)]
    path = write(tmp_path, events)
    assert path.stat().st_size > 3_000_000
    capture = read_trace(path)
    assert calls(capture) == {"aten::relu": 12_000}
    assert "truncated" not in capture.notes


FOREIGN = {
    "empty": (b"", "an empty file"),
    "blank": (b"  \n", "some other text"),
    "checkpoint": (b"PK\x03\x04abc", "a PyTorch checkpoint"),
    "pickle": (b"\x80\x04\x95", "a pickle"),
    "hdf5": (b"\x89HDF\r\n", "an HDF5 file"),
    "packed": (gzip.compress(b"\x80\x04\x95"), "a pickle"),
    "binary": (b"\x01\x02\x00\x03", "a binary file"),
    "source": (b"import torch\n", "some other text"),
    "csv": (b"Name,Duration(us)\nMatMul,3\n", "some other text"),
    "settings": (b'{"name": "x", "version": 1}', "another kind of JSON"),
    "execution trace": (b'{"schema": "1.1", "nodes": [{"id": 1}]}', "an execution trace"),
    "list": (b"[1, 2, 3]", "a JSON list of something else"),
    "broken": (b'{"name": ', "damaged JSON"),
    "events that are no list": (b'{"traceEvents": 5}', "another kind of JSON"),
}


@pytest.mark.parametrize(("content", "what"), FOREIGN.values(), ids=list(FOREIGN))
def test_other_files_are_named_for_what_they_are(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "a file"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_trace(path)
    assert what in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("events", [[], [{"ph": "M", "name": "process_name"}]])
def test_a_trace_of_nothing(events: Events, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without PyTorch operators"):
        read_trace(write(tmp_path, events))


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_trace(tmp_path / "missing\nname")
    with pytest.raises(InputError, match="is a folder"):
        read_trace(tmp_path)


def test_hostile_contents(tmp_path: Path) -> None:
    evil = '<script>alert(1)</script>=HYPERLINK("x")\x1b[31m\n\u202e'
    events = [
        op(evil, 0, 100, Call_stack=evil),
        op("aten::relu", 1, 2, Input_Dims="x", Input_type=[["float"], {"a": 1}, None, 3], Concrete_Inputs=7),
        op(
            "aten::neg",
            4,
            2,
            Input_Dims=[["a"]],
            Input_type=["float"],
            Input_Strides=[{}],
            Sequence_number="many",
        ),
        op(
            "aten::add",
            7,
            2,
            Input_Dims=[[2]],
            Input_type=["float", "float", "Scalar"],
            Concrete_Inputs=["", "", evil],
        ),
        {"ph": "X", "cat": ["cpu_op"], "name": None, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": 5, "ts": 1, "dur": -1, "args": "none"},
        op("aten::cos", 10, 1, External_id="9" * 5000),
    ]
    capture = read_trace(write(tmp_path, events))
    assert calls(capture) == {"aten::relu": 1, "aten::neg": 1, "aten::add.Tensor": 1, "aten::cos": 1}


def test_notes_are_known(tmp_path: Path) -> None:
    events = [*LINEAR, op("Torch-Compiled Region: 0/0", 1, 300), op("torch::jit::x", 1, 299)]
    path = write(tmp_path, events)
    path.write_bytes(path.read_bytes()[:-4])
    notes = read_trace(path).notes
    assert {"compiled", "scripted", "truncated"} <= set(notes) <= set(NOTES)
