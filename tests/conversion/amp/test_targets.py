"""From the command line to each target: whose autocast and GradScaler the converted program has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.rewriting import VENDORS, rewritten, run, vendor
from torchferry.cli.main import main

_SOURCE = """
import torch

def train(model, optimizer):
    for x in data:
        loss = model(x.cuda())
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("name", VENDORS)
def test_vendors(name: str) -> None:
    text = rewritten(_SOURCE, name, "amp")
    compile(text, name, "exec")
    amp = vendor(name).amp_module
    told = f'"{vendor(name).autocast_device_type}"' if amp == "torch.amp" else ""
    assert f"\nscaler = {amp}.GradScaler({told})\n" in text
    assert (
        f"        with {amp}.autocast({told}):\n            loss = model(x.{vendor(name).tensor_method}())\n"
        in text
    )


def test_portable() -> None:
    text = rewritten(_SOURCE, "portable", "amp")
    assert "\nscaler = torch.amp.GradScaler(DEVICE_TYPE)\n" in text
    assert (
        "        with torch.amp.autocast(DEVICE_TYPE):\n            loss = model(x.to(DEVICE_TYPE))\n" in text
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(_SOURCE + "\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n")
    return path


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "loss.backward()"),
        (["--amp"], "scaler.scale"),
        (["--amp", "torch"], "scaler.scale"),
        (["--amp", "apex"], "amp.scale_loss"),
        (["--amp", "--channels-last"], "scaler.scale"),
    ],
)
def test_the_option(options: list[str], word: str, script: Path, tmp_path: Path) -> None:
    out = tmp_path / "converted.py"
    assert main(["convert", str(script), "--to", "ascend", "-q", "-o", str(out), *options]) == 0
    assert word in out.read_text()


@pytest.mark.parametrize("target", ["tecorigin", "portable"])
def test_no_apex(target: str, script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(script), "--to", target, "--dry-run", "--amp", "apex"]) == 2
    assert f"no apex is known for '{target}'" in capsys.readouterr().err


def test_the_path_is_no_form(script: Path, tmp_path: Path) -> None:
    out = tmp_path / "converted.py"
    assert main(["convert", "--to", "ascend", "-q", "-o", str(out), "--amp", str(script)]) == 0
    assert "scaler.scale" in out.read_text()


def test_a_form_that_there_is_not(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--to", "ascend", "--dry-run", "--amp", "apexx", str(script)]) == 2
    assert "--amp: 'apexx' is not one of torch, apex (did you mean apex?)" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*VENDORS, "portable", "ascend+cuda"])
def test_a_module_without_imports_gets_none_at_the_second_time_either(name: str) -> None:
    source = _SOURCE.replace("import torch\n", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n")
    text = run(source, name, "amp").new_text
    assert text is not None
    assert "GradScaler" not in text
    assert run(text, name, "amp").new_text is None
