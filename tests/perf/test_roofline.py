"""What operators have to compute and to move, beside what PyTorch's own counter says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from torchferry.perf.roofline import all_peaks, kernel_work, peaks_of, work_of
from torchferry.perf.tables.kernels import KernelSignature
from torchferry.traces.model import TraceSignature
from torchferry.traces.reader import read_trace


def convolutions() -> None:
    images = torch.randn(2, 6, 9, 11, requires_grad=True)
    plain = torch.nn.Conv2d(6, 4, (3, 2), stride=(2, 1), padding=1, dilation=(1, 2))
    spread = torch.nn.ConvTranspose2d(6, 4, 3, stride=2)
    for module in (plain, spread):
        module(images).sum().backward()
    with torch.no_grad():
        torch.nn.Conv2d(6, 12, 3, groups=3)(images)  # its backward pass is counted as if it had one group


def products() -> None:
    left, right = torch.randn(5, 7, requires_grad=True), torch.randn(7, 3, requires_grad=True)
    torch.mm(left, right).sum().backward()
    torch.addmm(torch.randn(3), left, right)
    torch.bmm(torch.randn(4, 5, 6), torch.randn(4, 6, 2))
    torch.nn.functional.linear(torch.randn(2, 3, 8), torch.randn(5, 8), torch.randn(5))


@pytest.mark.parametrize("program", [convolutions, products])
def test_operations_are_those_that_pytorch_counts(program: Any, tmp_path: Path) -> None:
    with FlopCounterMode(display=False) as counter:
        program()
    with torch.profiler.profile(record_shapes=True) as profiler:
        program()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = read_trace(tmp_path / "trace.json")
    ours = 0.0
    for row in range(len(trace.host)):
        name = trace.names[int(trace.host.name[row])]
        if name in _COUNTED:
            work = work_of(name, trace.signature(int(trace.host.signature[row])))
            assert work is not None, name
            ours += work.flops
    assert ours == counter.get_total_flops() > 0


# each product once: not the operators that call these
_COUNTED = (
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::convolution",
    "aten::convolution_backward",
)


def test_attention_is_two_products() -> None:
    query, key = [2, 16, 4, 8], [2, 24, 4, 8]  # batch, length, heads, width
    signature = TraceSignature([query, key, key], ["c10::Half"] * 3, [], [])
    work = work_of("aten::_flash_attention_forward", signature)
    assert work is not None
    assert work.flops == 2 * (2 * 2 * 4 * 16 * 24 * 8)


@pytest.mark.parametrize(
    ("operator", "dims", "types", "strides", "moved"),
    [
        ("aten::add", [[8, 4], [8, 4]], ["float", "float"], [[4, 1], [4, 1]], 3 * 32 * 4),
        ("aten::mul", [[8, 4], [8, 4]], ["float", "float"], [[4, 1], [0, 1]], (2 * 32 + 4) * 4),
        ("aten::copy_", [[8, 4], [8, 4]], ["c10::Half", "float"], [[4, 1], [4, 1]], 32 * 6),
        ("aten::sum", [[8, 4]], ["double"], [[4, 1]], 32 * 8),
        ("aten::add_", [[8], [8]], ["float", "float"], [], 3 * 32),
    ],
)
def test_bytes(operator: str, dims: list[Any], types: list[str], strides: list[Any], moved: int) -> None:
    work = work_of(operator, TraceSignature(dims, types, strides, []))
    assert work is not None
    assert (work.kind, work.flops, work.nbytes) == ("memory", 0.0, moved)


@pytest.mark.parametrize(
    ("operator", "dims", "types"),
    [
        ("aten::embedding", [[1000, 64], [8]], ["float", "long int"]),  # reads what the values say
        ("aten::mm", [[2, 3], [4, 5]], ["float", "float"]),
        ("aten::mm", [["x"], 5], ["float", "float"]),
        ("aten::add", [[2], [2]], ["Unknown", "Unknown"]),
        ("aten::convolution", [[1, 3, 8, 8], [4, 3, 3, 3]], ["float", "float"]),  # without stride and padding
        ("aten::cat", [[[2], [2]], []], ["TensorList", "Scalar"]),
    ],
)
def test_not_known(operator: str, dims: list[Any], types: list[str]) -> None:
    assert work_of(operator, TraceSignature(dims, types, [], [])) is None


def test_kernels_of_a_table() -> None:
    product = KernelSignature("64,32;128,32", "FLOAT16;FLOAT16", "ND;ND", "64,128", "FLOAT16", "ND")
    work = kernel_work("MatMulV2", product)
    assert work is not None
    assert work.flops == 2 * 64 * 32 * 128
    assert work.nbytes == 2 * (64 * 32 + 128 * 32 + 64 * 128)
    assert kernel_work("MatMulV2", product._replace(output_shapes="63,128")) is None
    assert kernel_work("Acme", product) is None


def test_devices_are_told_apart() -> None:
    names = [
        "NVIDIA H100 80GB HBM3",
        "NVIDIA H100 PCIe",
        "Tesla V100-DGXS-32GB",
        "AMD Instinct MI300X VF",
        "Ascend910B3",
    ]
    found = [peaks_of(name) for name in names]
    assert None not in found
    assert len({peaks.pattern for peaks in found if peaks}) == len(names)
    assert peaks_of("Intel(R) Xeon(R)") is None
    assert all(peaks.source and peaks.bandwidth > 1e11 for peaks in all_peaks())
    assert json.dumps([dict(peaks.flops) for peaks in all_peaks()])
