"""The device's time, and the traces of real devices."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.readiness.trace.making import Events, calls, op, the, write
from torchferry.readiness.model import Phase
from torchferry.readiness.trace import read_trace
from torchferry.vendors.registry import get_vendor, vendor_names

TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"
_WORK = ("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset")


def kernel(start: int, duration: int, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": start,
        "dur": duration,
        "args": args,
    }


def test_kernels_belong_to_the_operator_that_launched_them(tmp_path: Path) -> None:
    events = [
        op("aten::linear", 0, 50),
        op("aten::addmm", 5, 30, External_id=4),
        op("cudaLaunchKernel", 10, 5, category="cuda_runtime", correlation=77),
        op("aten::relu", 60, 10, External_id=5),
        op("aten::as_strided", 62, 2),
        kernel(100, 40, correlation=77),
        kernel(150, 3, **{"External id": 5}),
        kernel(160, 1000, correlation=1),
    ]
    capture = read_trace(write(tmp_path, events))
    assert capture.device == "cuda"
    assert the(capture, "aten::addmm").seconds == pytest.approx(40e-6)
    assert the(capture, "aten::relu").seconds == pytest.approx(3e-6)


def test_the_kernels_of_what_an_operator_calls_are_its_own(tmp_path: Path) -> None:
    events = [
        op("aten::_convolution", 0, 50, External_id=1),
        op("aten::cudnn_convolution", 5, 30, External_id=2),
        kernel(100, 40, **{"External id": 2}),
    ]
    capture = read_trace(write(tmp_path, events))
    assert calls(capture) == {"aten::_convolution": 1}
    assert the(capture, "aten::_convolution").seconds == pytest.approx(40e-6)


def test_loading_data_stays_on_the_host(tmp_path: Path) -> None:
    loader = op(
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 50, category="user_annotation"
    )
    shapes = {"Input_Dims": [[2]], "Input_type": ["float"]}
    events = [loader, op("aten::neg", 5, 5, **shapes), op("aten::relu", 60, 5, **shapes), kernel(100, 4)]
    capture = read_trace(write(tmp_path, events))
    assert [use.operator for use in capture.judged()] == ["aten::relu"]
    assert the(capture, "aten::neg").signature.inputs[0].device == "cpu"
    assert the(capture, "aten::relu").signature.inputs[0].device == "cuda"


@pytest.mark.parametrize("vendor", vendor_names())
def test_flows_lead_to_a_vendors_device(vendor: str, tmp_path: Path) -> None:
    device = get_vendor(vendor).device_type
    flow = {"cat": f"async_{device}", "id": 9, "name": "to the device"}
    events: Events = [
        op("aten::relu", 10, 20),
        {**flow, "ph": "s", "pid": 1, "tid": 7, "ts": 15},
        {**flow, "ph": "f", "pid": 800, "tid": 3, "ts": 40},
        {"ph": "X", "name": "Relu", "pid": 800, "tid": 3, "ts": 40, "dur": 6},
        {"ph": "X", "name": "unlinked", "pid": 800, "tid": 3, "ts": 50, "dur": 100},
    ]
    capture = read_trace(write(tmp_path, events))
    assert capture.device == device
    assert the(capture, "aten::relu").seconds == pytest.approx(6e-6)


def _real(name: str) -> Path:
    found = sorted(TRACES.glob(f"{name}*"))
    if not found:
        pytest.skip("the real traces are not part of the repository")
    return found[0]


@pytest.mark.parametrize(
    "name",
    [
        "h100",
        pytest.param("mi300", marks=pytest.mark.long),
        pytest.param("resnet50_num_workers_0", marks=pytest.mark.long),
        pytest.param("resnet50_num_workers_4", marks=pytest.mark.long),
    ],
)
def test_all_linked_work_of_real_devices_is_given_to_operators(name: str) -> None:
    path = _real(name)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    linked = [
        event["dur"]
        for event in events
        if event.get("cat") in _WORK and {"External id", "external id"} & set(event["args"])
    ]
    capture = read_trace(path)
    assert capture.device == "cuda"
    assert sum(use.seconds for use in capture.uses) == pytest.approx(sum(linked) / 1e6)
    assert not {"truncated", "no_shapes", "no_places"} & set(capture.notes)


@pytest.mark.long
def test_a_real_training_run() -> None:
    capture = read_trace(_real("resnet50_num_workers_0"))
    assert capture.steps == 6
    convolutions = [use for use in capture.uses if use.operator == "aten::_convolution"]
    assert sum(use.calls for use in convolutions) == 6 * 53
    assert all("torchvision/models/resnet.py" in use.site.place for use in convolutions)
    backward = [use for use in capture.uses if use.operator == "aten::cudnn_convolution_backward"]
    assert sum(use.calls for use in backward) == 6 * 53
    assert {use.site.place for use in backward} == {use.site.place for use in convolutions}


def test_a_real_trace_of_another_device() -> None:
    capture = read_trace(_real("ascend_trace_view"))
    assert capture.device == "npu"
    assert capture.steps == 1
    assert {use.site.phase for use in capture.uses} == {
        Phase.DATA,
        Phase.FORWARD,
        Phase.BACKWARD,
        Phase.OPTIMIZER,
    }
    assert sum(use.seconds for use in capture.uses) > 1e-3
