"""TF121: "gpu" where PyTorch takes it for a device."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param('print("gpu")', id="a message"),
        pytest.param('mode = "gpu" if fast else "cpu"', id="a word of the program's own"),
        pytest.param('p.add_argument("--device", default="gpu")', id="an option of the program's own"),
        pytest.param('if args.device == "gpu":\n    go()', id="a comparison"),
        pytest.param('metrics = {"gpu": 1}', id="a key"),
        pytest.param('path = "gpu_log.txt"', id="a file"),
        pytest.param('"""gpu:0"""', id="a docstring"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF121") == []


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('x = torch.zeros(2, device="gpu")', 'x = torch.zeros(2, device="{device}")'),
        ("d = torch.device('gpu:0')", "d = torch.device('{device}:0')"),
        ('d = torch.device(f"gpu:{i}")', 'd = torch.device(f"{device}:{i}")'),
        ('m = torch.load(f, map_location="gpu:1")', 'm = torch.load(f, map_location="{device}:1")'),
        ('WHERE = "gpu:0"\nm = m.to(WHERE)', 'WHERE = "{device}:0"\nm = m.to(WHERE)'),
    ],
)
def test_what_reaches_torch_names_the_device(name: str, source: str, expected: str) -> None:
    assert expression(source, name) == expected.replace("{device}", vendor(name).device_type)


def test_the_sample_of_the_guide() -> None:
    source = 'CALCULATE_DEVICE = "gpu:0"\ntorch.cuda.set_device(CALCULATE_DEVICE)'
    assert expression(source) == 'CALCULATE_DEVICE = "npu:0"\ntorch.npu.set_device(CALCULATE_DEVICE)'


def test_what_is_known_of_cuda_is_not_taken_for_gpu() -> None:
    source = 'device = "cuda"\nrun(device)\ndevice = "gpu"\nrun(device)'
    assert expression(source) == 'device = "npu"\nrun(device)\ndevice = "gpu"\nrun(device)'


def test_a_device_that_nobody_uses_here_is_reported() -> None:
    assert said_of('device = "gpu:0"', rule="TF121") == [("TF121", "todo", '"gpu:0"')]
