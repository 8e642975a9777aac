"""TF122: numbers as devices in portable code."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression

CPU = 'DEVICE_TYPE != "cpu" else DEVICE_TYPE'


def portable(source: str) -> str:
    return expression(source, "portable").partition("\n")[2] or expression(source, "portable")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("m = m.to(dtype)", id="a dtype"),
        pytest.param("m = m.to(device)", id="a device"),
        pytest.param("d = torch.device(name)\nm = m.to(d)", id="a device made before"),
        pytest.param("m = m.to(other)", id="nobody knows"),
        pytest.param("x = torch.zeros(2, 0)", id="a size"),
        pytest.param("plot(device=0)", id="not torch's"),
        pytest.param("flag = True\nm = m.to(flag)", id="a flag"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "portable") == source


@pytest.mark.parametrize("name", VENDORS)
def test_vendors_know_numbers(name: str) -> None:
    assert expression("m = m.to(0)", name) == "m = m.to(0)"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("m = m.to(0)", f"m = m.to(0 if {CPU})"),
        ("m.to(gpu_id)", f"m.to(gpu_id if gpu_id is not None and {CPU})"),
        ("m.to(rank)", f"m.to(rank if rank is not None and {CPU})"),
        ("m.to(args.gpu, True)", f"m.to(args.gpu if args.gpu is not None and {CPU}, True)"),
        ("x = torch.zeros(2, device=1)", f"x = torch.zeros(2, device=1 if {CPU})"),
        ("d = torch.device(0)", f"d = torch.device(0 if {CPU})"),
    ],
)
def test_the_cpu_where_there_is_no_accelerator(source: str, expected: str) -> None:
    assert portable(source) == expected
    compile(expected, "", "exec")


def test_a_name_that_holds_a_number() -> None:
    text = expression("device = 0\nm = m.to(device)", "portable")
    assert f"m = m.to(device if device is not None and {CPU})" in text


def test_with_cuda_kept_the_helper_decides() -> None:
    assert "m.to(ferry_device.place(0))" in expression("m.to(0)", "ascend+cuda")
