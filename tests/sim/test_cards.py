"""Other cards than the typical one, simulated: what they lack, and how many of them go together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_ferry import ferry_forked

START = "import torchferry.sim\ntorchferry.sim.activate({vendor!r}, card={card!r}, devices=4)\nimport torch\n"
OVERFLOW = "print((torch.full((2,), 60000.0).half().{type}() * 2).tolist())\n"


def run(vendor: str, card: str, source: str) -> subprocess.CompletedProcess[str]:
    program = START.format(vendor=vendor, card=card) + source
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("card", "numbers", "has_bfloat16"),
    [("Ascend910A", "[65504.0, 65504.0]", False), ("Ascend910B4", "[inf, inf]", True)],
)
def test_generations(card: str, numbers: str, has_bfloat16: bool) -> None:
    source = OVERFLOW.format(type="npu") + (
        "print(torch.npu.get_device_name(), torch.npu.is_bf16_supported())\n"
        "print(torch.npu.get_device_properties(0).total_memory >> 30)\n"
        "try: print(torch.ones(1, dtype=torch.bfloat16, device='npu').dtype)\n"
        "except TypeError as error: print(error)\n"
    )
    ended = run("ascend", card, source)
    last = "torch.bfloat16" if has_bfloat16 else "EZ1001: self not implemented for DT_BFLOAT16"
    lines = ended.stdout.splitlines()
    assert lines[:3] == [numbers, f"{card} {has_bfloat16}", "32"], ended.stderr
    assert lines[3].startswith(last)


def test_a_dtype_that_the_adapter_only_advises_against() -> None:
    source = "print(torch.mlu.is_bf16_supported(), torch.ones(1, device='mlu').bfloat16().dtype)\n"
    ended = run("cambricon", "MLU370-X4", source)
    assert ended.stdout == "False torch.bfloat16\n", ended.stderr


@pytest.mark.parametrize(("size", "is_taken"), [(3, False), (1, True)])
def test_numbers_of_cards(size: int, is_taken: bool, tmp_path: Path) -> None:
    source = (
        "import torch.distributed as dist\n"
        f"dist.init_process_group('hccl', init_method='file://{tmp_path}/store', rank=0, world_size={size})\n"
        "print('joined')\n"
    )
    ended = run("ascend", "Ascend910A", source)
    if is_taken:
        assert ended.stdout == "joined\n", ended.stderr
    else:
        assert "HCCL supports groups of 1, 2, 4, 8 devices on a server with Ascend910A, not 3" in ended.stderr


def test_the_command(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\nprint(torch.cuda.get_device_name(), torch.cuda.is_bf16_supported())\n")
    options = ["--sim", "--to", "ascend", "-q"]
    ended = ferry_forked("run", *options, "--card", "ascend310p3", script, folder=tmp_path)
    assert ended.stdout == "Ascend310P3 False\n", ended.stderr
    ended = ferry_forked("run", *options, "--card", "Ascend1", script, folder=tmp_path)
    assert ended.returncode == 2 and "known: Ascend910B2, Ascend910A" in ended.stderr


def test_another_card_in_the_same_process() -> None:
    ended = run("ascend", "Ascend910A", "torchferry.sim.activate('ascend', card='Ascend310P3')\n")
    assert "this process already simulates Ascend910A; start another one for Ascend310P3" in ended.stderr
