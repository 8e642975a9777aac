"""Which code shows that a training uses several processes and mixed precision, and which only looks so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchferry.vendors.zoo import find_zoo
from torchferry.zoo.checks import code, leftovers
from torchferry.zoo.delivery import Delivery

AMP = "import torch\nwith {}:\n    pass\n"


def judged(folder: Path, text: str, **files: str) -> dict[str, str]:
    for name, content in {"train.py": text, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    vendor, table = find_zoo("tecorigin", ())
    delivery = Delivery(folder, vendor, table)
    return {item.subject: item.status.value for item in (*code.check(delivery), *leftovers.check(delivery))}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("# autocast()\n'torch.autocast'\nx = 1\n", "missing"),
        (AMP.format("torch.autocast('sdaa', enabled=False)"), "missing"),
        (AMP.format("torch.cuda.amp.autocast(False)"), "missing"),
        ("import torch\nif False:\n    torch.autocast('sdaa')\n", "missing"),
        ("import torch\nUSE = False\nif USE and ready:\n    torch.autocast('sdaa')\n", "missing"),
        ("from torch import autocast\nx = isinstance(y, autocast)\n", "missing"),
        ("from torch.cuda.amp import GradScaler\nGradScaler()\n", "missing"),
        ("from apex import amp\nm, o = amp.initialize(m, o, opt_level='O1')\n", "missing"),
        ("from accelerate import Accelerator\nAccelerator(mixed_precision='no')\n", "missing"),
        ("import lightning as L\nL.Trainer(precision=32)\n", "missing"),
        ("from accelerate import Accelerator\nAccelerator()\n", "note"),
        ("import deepspeed\ndeepspeed.initialize(model=m)\n", "note"),
        ("from accelerate import Accelerator\nAccelerator(mixed_precision='fp16')\n", "fine"),
        ("import lightning as L\nL.Trainer(precision='16-mixed')\n", "fine"),
        ("from transformers import TrainingArguments as T\nT(fp16=True)\n", "fine"),
        (AMP.format("torch.autocast('sdaa')"), "fine"),
        (AMP.format("torch.sdaa.amp.autocast()"), "fine"),
        ("from torch_sdaa import amp\nwith amp.autocast():\n    pass\n", "fine"),
        ("import torch\nprecise = torch.cuda.amp.autocast\n@precise()\ndef f(): pass\n", "fine"),
        ("from torch import autocast as a\n@a('sdaa')\ndef f(): pass\n", "fine"),
    ],
)
def test_mixed_precision(tmp_path: Path, text: str, status: str) -> None:
    assert judged(tmp_path, text)["amp"] == status


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("import torch\nm = torch.nn.DataParallel(m)\n", "missing"),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\nisinstance(m, DDP)\n", "missing"),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\n# DDP(m)\n", "missing"),
        ("from apex.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n", "missing"),
        ("import torch.nn as nn\nm = nn.parallel.DistributedDataParallel(m)\n", "fine"),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\nclass Own(DDP): pass\n", "fine"),
        ("from torch.distributed.fsdp import FullyShardedDataParallel as F\nF(m)\n", "fine"),
        ("import pytorch_lightning as pl\npl.Trainer(strategy='ddp')\n", "fine"),
        ("import pytorch_lightning as pl\npl.Trainer()\n", "note"),
    ],
)
def test_several_processes(tmp_path: Path, text: str, status: str) -> None:
    assert judged(tmp_path, text)["distributed"] == status


def test_apex_counts_where_the_vendor_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from apex import amp\nm, o = amp.initialize(m, o)\n")
    vendor, table = find_zoo("tecorigin", ())
    features = {item.subject: item for item in code.check(Delivery(tmp_path, vendor, table))}
    assert features["amp"].found.en == "apex.amp.initialize, which exists only for CUDA"
    assert "ferry convert --amp" in features["amp"].why.en
    own = {item.subject: item for item in code.check(Delivery(tmp_path, replace(vendor, apex="own"), table))}
    assert own["amp"].status.value == "fine"


def test_code_of_tests_shows_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, "x = 1\n", **{"tests/test_amp.py": AMP.format("torch.autocast('sdaa')")})
    assert found["amp"] == "missing"


def test_an_option_that_is_off_must_be_given(tmp_path: Path) -> None:
    text = (
        "import argparse, torch\nfrom contextlib import nullcontext\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--amp', action='store_true')\nargs = parser.parse_args()\n"
        "with torch.autocast('sdaa') if args.amp else nullcontext():\n    pass\n"
    )
    assert judged(tmp_path, text)["amp"] == "doubt"
    assert (
        judged(tmp_path, text, **{"run_scripts/test.sh": "python train.py --amplitude 3"})["amp"] == "doubt"
    )
    assert judged(tmp_path, text, **{"run_scripts/test.sh": "python train.py --amp"})["amp"] == "fine"
    if_form = text.replace(
        "with torch.autocast('sdaa') if args.amp else nullcontext():\n    pass",
        "if args.amp:\n    torch.autocast('sdaa')",
    )
    assert judged(tmp_path, if_form, **{"run_scripts/test.sh": ""})["amp"] == "doubt"


def test_code_for_both_devices_is_not_left_over(tmp_path: Path) -> None:
    text = (
        "import torch\nimport torch_sdaa\nfrom torch.distributed import init_process_group\n\n\n"
        "def setup(device):\n"
        "    if device == 'cuda':\n        init_process_group(backend='nccl')\n        torch.cuda.set_device(0)\n"
        "    elif device == 'sdaa':\n        torch.sdaa.set_device(0)\n        init_process_group(backend='tccl')\n"
        "    assert device in ['cuda', 'sdaa']\n"
    )
    assert judged(tmp_path, text)["CUDA"] == "fine"
    alone = text.replace("    elif device == 'sdaa':", "    else:\n        pass\n    if True:")
    assert judged(tmp_path, alone)["CUDA"] == "missing"
    migrated = "from torch_sdaa.utils import cuda_migrate\n" + alone
    assert judged(tmp_path, migrated)["CUDA"] == "note"
