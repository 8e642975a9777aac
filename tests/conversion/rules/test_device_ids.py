"""TF205: DistributedDataParallel gets no device ids on the CPU, in code for every device."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression

DDP = "torch.nn.parallel.DistributedDataParallel"


@pytest.mark.parametrize("to", ["ascend", "cambricon"])
def test_a_vendor_keeps_them(to: str) -> None:
    source = f"model = {DDP}(model, device_ids=[rank])"
    assert expression(source, to) == source


@pytest.mark.parametrize(
    "arguments",
    ["model", "model, device_ids=None", "model, device_ids=[0] if has_gpu else None", "model, **options"],
)
def test_noop(arguments: str) -> None:
    source = f"model = {DDP}({arguments})"
    assert expression(source, "portable") == source


def test_of_another_class() -> None:
    source = "model = mine.DistributedDataParallel(model, device_ids=[rank])"
    assert expression(source, "portable") == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"model = {DDP}(model, device_ids=[rank])",
            f'model = {DDP}(model, device_ids=[rank] if DEVICE_TYPE != "cpu" else None)',
        ),
        (
            f"model = {DDP}(model, device_ids=ids, output_device=rank)",
            f'model = {DDP}(model, device_ids=ids if DEVICE_TYPE != "cpu" else None, '
            'output_device=rank if DEVICE_TYPE != "cpu" else None)',
        ),
        (
            "torch.distributed.barrier(device_ids=[rank])",
            'torch.distributed.barrier(device_ids=[rank] if DEVICE_TYPE != "cpu" else None)',
        ),
    ],
)
def test_left_out_on_the_cpu(before: str, after: str) -> None:
    assert expression(before, "portable") == after
