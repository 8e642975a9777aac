"""TF706 (opt-in): float32 instead of float64."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, said_with


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = torch.zeros(3, dtype=torch.float32)", id="float32"),
        pytest.param("x = y.double", id="not called"),
        pytest.param("float64 = 1", id="a name of the user's"),
        pytest.param("x = torch.eye(3, device='cpu', dtype=torch.float64)", id="data of the CPU"),
        pytest.param(
            "x = torch.eye(3, dtype=torch.float64, device=torch.device('cpu'))", id="the CPU's device"
        ),
        pytest.param("pitch = pyworld.dio(wave.double().numpy())", id="an array for another library"),
        pytest.param("assert dtype == torch.float or torch.double", id="a question that is always true"),
        pytest.param("if x.dtype == torch.float64: pass", id="a question"),
        pytest.param("if x.dtype in (torch.float32, torch.double): pass", id="a question about several"),
        pytest.param("sizes = {torch.float32: 4, torch.float64: 8}", id="the keys of a table"),
        pytest.param("types = {'float32': torch.float32, 'F64': torch.float64}", id="the values of a table"),
        pytest.param("for t in [torch.float32, torch.float64]: f(t)", id="a list of types"),
        pytest.param("if isinstance(x, torch.DoubleTensor): pass", id="a question about the class"),
        pytest.param("eps = torch.finfo(torch.float64).eps", id="a property of the type"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "ascend", "float32_data") == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.zeros(3, dtype=torch.float64)", "x = torch.zeros(3, dtype=torch.float32)"),
        ("x = y.to(torch.double)", "x = y.to(torch.float)"),
        ("x = y.double()", "x = y.float()"),
        ("def f(dtype=torch.float64): pass", "def f(dtype=torch.float32): pass"),
        ("options = {'dtype': torch.float64}", "options = {'dtype': torch.float32}"),
        (
            "dtype = torch.float64 if exact else torch.float16",
            "dtype = torch.float32 if exact else torch.float16",
        ),
        ("x = torch.DoubleTensor(3)", "x = torch.FloatTensor(3)"),
        ("torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
        (
            "import numpy as np\nx = torch.from_numpy(a.astype(np.float64))",
            "import numpy as np\nx = torch.from_numpy(a.astype(np.float32))",
        ),
        (
            "import numpy as np\nx = np.zeros(3, np.float64)",
            "import numpy as np\nx = np.zeros(3, np.float64)",
        ),
    ],
)
def test_float64_becomes_float32(before: str, after: str) -> None:
    assert expression(before, "ascend", "float32_data") == after
    assert expression(before) == before


@pytest.mark.parametrize(
    ("vendor", "after"),
    [
        ("ascend", "x = torch.npu.FloatTensor(3)"),
        ("cambricon", "x = torch.mlu.FloatTensor(3)"),
        ("tecorigin", "x = torch.sdaa.DoubleTensor(3)"),  # nothing limits float64 there
    ],
)
def test_the_class_of_float64_tensors_on_the_device(vendor: str, after: str) -> None:
    assert expression("x = torch.cuda.DoubleTensor(3)", vendor, "float32_data") == after


def test_a_question_about_that_class_still_moves_to_the_device() -> None:
    before, after = (f"if isinstance(x, torch.{name}.DoubleTensor): pass" for name in ("cuda", "npu"))
    assert expression(before, "ascend", "float32_data") == after


def test_without_a_known_limit_float64_stays() -> None:
    source = "x = torch.zeros(3, dtype=torch.float64)"
    assert expression(source, "portable", "float32_data") == source


def test_the_change_is_said_once() -> None:
    """the remark that float64 is limited would be about a name that is gone"""
    assert said_with("x = y.to(torch.float64)", "float32_data") == []


def test_a_question_is_left_with_its_reason() -> None:
    assert said_with("if x.dtype == torch.float64: pass", "float32_data") == [
        ("TF706", "info", "torch.float64")
    ]
