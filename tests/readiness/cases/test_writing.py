"""The files that cases become: valid, formatted, self-contained."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.readiness.cases.operators.calls import CALLS, INIT
from torchferry.errors import OutputError
from torchferry.readiness.cases.building import CaseRequest, build
from torchferry.readiness.cases.model import (
    Callee,
    CalleeKind,
    Case,
    Draw,
    TensorContents,
    TensorInput,
    TrialFacts,
)
from torchferry.readiness.cases.worker import _load
from torchferry.readiness.cases.writing import FileFrame, Platform, render, short_name, write_case

PLATFORM = Platform("acme", "torch_acme", "acme")
FRAME = FileFrame(PLATFORM, (PLATFORM,))
FACTS = TrialFacts(differentiable=True)
OPERATOR = Callee(CalleeKind.OPERATOR, "aten::relu", "torch.ops.aten.relu.default")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of every call in the list, in both styles."""
    folder = tmp_path_factory.mktemp("cases")
    for number, (operator, inputs) in enumerate(CALLS.items()):
        case = build(CaseRequest(operator, inputs, init=INIT.get(operator, "")))
        style = "unittest" if number % 2 else "pytest"
        frame = replace(FRAME, style=style, command=f"ferry case {operator} {inputs}", modules=("one", "two"))
        write_case(case, FACTS, frame, folder / f"test_{number}.py")
    many = tuple(TensorInput("float32", (2, 3), TensorContents(Draw.NORMAL)) for _ in range(30))
    write_case(Case(OPERATOR, (many, tuple(range(60)))), FACTS, FRAME, folder / "test_long.py")
    return folder


@pytest.mark.parametrize("width", [88, 110])
def test_formatted(written: Path, width: int) -> None:
    ruff = [
        str(Path(sys.executable).with_name("ruff")),
        "format",
        "--isolated",
        "--diff",
        f"--line-length={width}",
    ]
    run = subprocess.run([*ruff, str(written)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[:3000]


def test_no_unused_and_no_unknown_names(written: Path) -> None:
    ruff = [
        str(Path(sys.executable).with_name("ruff")),
        "check",
        "--isolated",
        "--no-cache",
        "--extend-select=F,E,W,I",
    ]
    run = subprocess.run([*ruff, "--ignore=E501", str(written)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[:3000]


def _inputs(case: Case, folder: Path) -> list[torch.Tensor]:
    args, kwargs = _load(str(write_case(case, FACTS, FRAME, folder / "test_it.py"))).inputs()
    return [*args, *kwargs.values()]


def _tensor(dtype: str = "float32", shape: tuple[int, ...] = (3, 4), **rest: object) -> TensorInput:
    return TensorInput(dtype, shape, **{"contents": TensorContents(Draw.NORMAL), **rest})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "float8_e5m2",
        "complex32",
        "complex64",
        "int8",
        "uint16",
        "bool",
    ],
)
@pytest.mark.parametrize("draw", list(Draw)[:5])
def test_contents_of_every_dtype(dtype: str, draw: Draw, tmp_path: Path) -> None:
    (made,) = _inputs(Case(OPERATOR, (_tensor(dtype, contents=TensorContents(draw, 1, 3)),)), tmp_path)
    assert (str(made.dtype), tuple(made.shape)) == (f"torch.{dtype}", (3, 4))


def test_layouts(tmp_path: Path) -> None:
    layouts = [((1, 3), 0), ((0, 1), 0), ((10, 2), 5), ((4, 1), 2), (None, 2)]
    case = Case(OPERATOR, tuple(_tensor(stride=stride, offset=offset) for stride, offset in layouts))
    made = [(tensor.stride(), tensor.storage_offset()) for tensor in _inputs(case, tmp_path)]
    assert made == [(stride or (4, 1), offset) for stride, offset in layouts]


def test_special_values(tmp_path: Path) -> None:
    contents = TensorContents(Draw.FULL, 2, special=("nan", "-inf"))
    (made,) = _inputs(Case(OPERATOR, (_tensor(contents=contents),)), tmp_path)
    flat = made.flatten()
    assert flat[0].isnan() and flat[1] == float("-inf") and flat[7].isnan() and flat[2] == 2


def test_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # a file of the same name, size and second
    case = Case(OPERATOR, (_tensor(),))
    first, same, other = (_inputs(replace(case, seed=seed), tmp_path)[0] for seed in (1, 1, 2))
    assert torch.equal(first, same) and not torch.equal(first, other)


def _recorded(shape: tuple[int, ...], values: torch.Tensor) -> Case:
    tensor = _tensor(
        str(values.dtype).removeprefix("torch."), shape, contents=TensorContents(Draw.STORED, key="self")
    )
    return Case(OPERATOR, (tensor,), stored={"self": values})


def test_recorded_values_are_kept_to_the_bit(tmp_path: Path) -> None:
    small = torch.tensor([0.1, float("nan"), float("-inf"), 1e-40])
    (made,) = _inputs(_recorded((2, 2), small), tmp_path)
    assert torch.equal(made.view(torch.int32).flatten(), small.view(torch.int32))
    assert not (tmp_path / "test_it.pt").exists()
    large = torch.randn(60).to(torch.bfloat16)
    (made,) = _inputs(_recorded((3, 20), large), tmp_path)
    assert torch.equal(made.flatten(), large)
    assert (tmp_path / "test_it.pt").exists()
    _inputs(_recorded((2, 2), small), tmp_path)
    assert not (tmp_path / "test_it.pt").exists()  # nothing is left of the earlier case


def test_random_and_uninitialised_results_have_no_gradient_test() -> None:
    case = Case(OPERATOR, (_tensor(),))
    assert "def test_backward" in render(case, FACTS, FRAME)
    for facts in (replace(FACTS, random=True), replace(FACTS, uninitialised=True), TrialFacts()):
        assert "def test_backward" not in render(case, facts, FRAME)
    assert "def test_backward" not in render(case, FACTS, replace(FRAME, forward_only=True))


def test_the_form_of_the_guide() -> None:
    text = render(Case(OPERATOR, (_tensor(),)), FACTS, replace(FRAME, style="unittest"))
    for line in (
        "class TestRelu(unittest.TestCase):",
        "def cpu_op_exec(",
        "def acme_op_exec(",
        "def test_relu(",
    ):
        assert line in text
    assert text.endswith('if __name__ == "__main__":\n    unittest.main()\n')


def test_hostile_texts() -> None:
    frame = replace(FRAME, command='ferry case "x\n"""\\\nimport os', file_name='test_\n"x.py')
    name = 'a"""\n\\b'
    callee = replace(OPERATOR, name=name)
    text = render(Case(callee, ('"\n\\',)), FACTS, frame)
    module = compile(text, "case", "exec", dont_inherit=True)
    assert module.co_consts[0] == "a'''\\n\\\\b: a device against the CPU.".replace("\\\\", "\\")


def test_a_vendor_that_the_file_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHFERRY_CASE_TO", "nobody")
    module = _load(str(write_case(Case(OPERATOR, (_tensor(),)), FACTS, FRAME, tmp_path / "test_it.py")))
    with pytest.raises(LookupError, match="no vendor nobody; there are acme"):
        module.place()


def test_names_of_files_are_quoted_for_the_shell() -> None:
    frame = replace(FRAME, file_name="a folder/my test.py")
    assert "# Run it:  pytest 'my test.py'\n" in render(Case(OPERATOR, (_tensor(),)), FACTS, frame)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as error:
        write_case(Case(OPERATOR, (_tensor(),)), FACTS, FRAME, tmp_path / "absent" / "test_it.py")
    assert str(error.value).startswith(f"{tmp_path}/absent/test_it.py: can't be written: No such file")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::max.dim", "max_dim"),
        ("torch.max", "max"),
        ("torch.nn.functional.gelu", "gelu"),
        ("torch.nn.Conv2d", "conv2d"),
        ("Tensor.scatter_", "scatter"),
        ("torch.fft.fft", "fft_fft"),
        ("package.module:Class", "class"),
        ("torchvision::nms", "nms"),
    ],
)
def test_short_name(name: str, short: str) -> None:
    assert short_name(Case(replace(OPERATOR, name=name))) == short
