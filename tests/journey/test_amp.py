"""Programs in single precision, converted with --amp: they train like the original, and resume with their scale."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest
import torch

from tests.forked_ferry import printed_by_ferry as ferry
from tests.forking import run_forked

PROGRAMS = Path(__file__).parent / "amp_programs"
LOSS = re.compile(r"loss (\d+\.\d+)")
ALL = ["classifier", "language_model", "gan", "trainer"]


def arguments(program: str) -> list[str]:
    return ["trained.pt"] if program == "trainer" else []


def converted(program: str, folder: Path, to: str, *options: str) -> Path:
    """A program of this folder, converted."""
    out = folder / f"out_{to}"
    if not out.exists():
        single = folder / "source" / f"{program}.py"
        single.parent.mkdir()
        single.write_bytes((PROGRAMS / f"{program}.py").read_bytes())
        ferry(folder, "convert", str(single), "-o", str(out), "--to", to, "-q", *options)
    return out / f"{program}.py"


def on_device(script: Path, folder: Path, vendor: str, *given: str) -> str:
    return ferry(folder, "run", "--sim", "--converted", "--to", vendor, "-q", str(script), *given)


def losses(output: str) -> list[float]:
    return [float(found) for line in output.splitlines() if "step" in line for found in LOSS.findall(line)]


@cache
def reference(program: str, folder: Path) -> list[float]:
    """The losses of the program as it is, in single precision."""
    script = str(PROGRAMS / f"{program}.py")
    return losses(ferry(folder, "run", "--sim", "--to", "ascend", "-q", script, *arguments(program)))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("single_precision")


def check_like(found: list[float], expected: list[float], program: str) -> None:
    """Step by step the same curve; where a step was skipped for an overflow, the same end."""
    assert len(found) == len(expected) > 20
    if program == "trainer":
        end, wanted = sum(found[-10:]) / 10, sum(expected[-10:]) / 10
        assert end < 0.1 * found[0]
        assert end < 4 * wanted
    else:
        for one, other in zip(found, expected, strict=True):
            assert abs(one - other) <= 0.02 + 0.05 * other


@pytest.mark.parametrize(
    ("program", "vendor"),
    [("classifier", "ascend"), pytest.param("gan", "tecorigin", marks=pytest.mark.long)],
)
def test_trains_like_the_original(program: str, vendor: str, tmp_path: Path, shared: Path) -> None:
    script = converted(program, tmp_path, vendor, "--amp")
    assert "autocast()" in script.read_text()
    output = on_device(script, tmp_path, vendor, *arguments(program))
    check_like(losses(output), reference(program, shared), program)
    if program == "classifier":
        assert "accuracy 1.0000" in output


def test_gradients_that_add_up(tmp_path: Path, shared: Path) -> None:
    script = converted("language_model", tmp_path, "cambricon", "--amp")
    found = losses(on_device(script, tmp_path, "cambricon"))
    check_like(found, reference("language_model", shared), "language_model")


def test_an_overflow_is_skipped_and_a_checkpoint_continues_with_its_scale(tmp_path: Path) -> None:
    script = converted("trainer", tmp_path, "ascend", "--amp")
    whole = on_device(script, tmp_path, "ascend", "trained.pt").splitlines()
    assert "norm inf" in whole[0]  # the first scale, 65536, was too much for half precision
    assert all("norm inf" not in line for line in whole[1:])
    saved = torch.load(tmp_path / "trained.pt", map_location="cpu", weights_only=True)
    assert saved["scaler"]["scale"] == 32768.0
    resumed = on_device(script, tmp_path, "ascend", "trained.pt", "30").splitlines()
    assert resumed == whole[30:]


def test_the_apex_form(tmp_path: Path, shared: Path) -> None:
    script = converted("classifier", tmp_path, "ascend", "--amp", "apex")
    output = on_device(script, tmp_path, "ascend", "--opt-level", "O2", "--save", "trained.pt")
    check_like(losses(output), reference("classifier", shared), "classifier")
    saved = torch.load(tmp_path / "trained.pt", map_location="cpu", weights_only=False)
    assert saved["amp"]["loss_scaler0"]["loss_scale"] <= 65536.0


@pytest.mark.long
@pytest.mark.parametrize("vendor", ["ascend", "cambricon", "tecorigin", "moorethreads"])
@pytest.mark.parametrize("program", ALL)
def test_every_vendor(program: str, vendor: str, tmp_path: Path, shared: Path) -> None:
    script = converted(program, tmp_path, vendor, "--amp")
    found = losses(on_device(script, tmp_path, vendor, *arguments(program)))
    check_like(found, reference(program, shared), program)


@pytest.mark.long
@pytest.mark.parametrize("vendor", ["ascend", "cambricon"])
@pytest.mark.parametrize("program", ALL)
def test_the_apex_form_everywhere(program: str, vendor: str, tmp_path: Path, shared: Path) -> None:
    script = converted(program, tmp_path, vendor, "--amp", "apex")
    found = losses(on_device(script, tmp_path, vendor, *arguments(program)))
    check_like(found, reference(program, shared), program)


@pytest.mark.long
@pytest.mark.parametrize("program", ALL)
def test_portable_code_trains_on_two_devices_and_the_cpu(program: str, tmp_path: Path, shared: Path) -> None:
    script = converted(program, tmp_path, "portable", "--amp")
    expected = reference(program, shared)
    for vendor in ("ascend", "moorethreads"):
        check_like(losses(on_device(script, tmp_path, vendor, *arguments(program))), expected, program)
    on_cpu = losses(run_forked(script, os.environ, tmp_path, arguments(program)).stdout)
    assert len(on_cpu) == len(expected)  # bfloat16 there: near, not the same
    assert sum(on_cpu[-5:]) == pytest.approx(sum(expected[-5:]), rel=0.5, abs=0.5)


@pytest.mark.long
@pytest.mark.parametrize("program", ALL)
def test_with_cuda_beside_the_vendor(program: str, tmp_path: Path, shared: Path) -> None:
    script = converted(program, tmp_path, "ascend", "--amp", "--keep-cuda")
    found = losses(on_device(script, tmp_path, "ascend", *arguments(program)))
    check_like(found, reference(program, shared), program)


@pytest.mark.long
def test_with_channels_last(tmp_path: Path, shared: Path) -> None:
    script = converted("classifier", tmp_path, "tecorigin", "--amp", "--channels-last")
    assert script.read_text().count("memory_format=torch.channels_last") == 3
    found = losses(on_device(script, tmp_path, "tecorigin"))
    check_like(found, reference("classifier", shared), "classifier")


@pytest.mark.long
@pytest.mark.parametrize("form", ["torch", "apex"])
def test_on_two_cards(form: str, tmp_path: Path) -> None:
    project = PROGRAMS.parents[2] / "examples" / "single_gpu" / "mnist"
    options = ["--to", "ascend", "--amp", form, "--distributed", "--main", "train.py", "-q"]
    ferry(tmp_path, "convert", str(project), "-o", "out", *options)
    start = ["run", "--sim", "--converted", "--to", "ascend", "--nproc", "2", "-q", "out/train.py"]
    output = ferry(tmp_path, *start, "--epochs", "4")
    accuracies = [float(found) for found in re.findall(r"accuracy (\d\.\d+)", output)]
    assert accuracies[-1] > 0.6
