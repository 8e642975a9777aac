"""TF610: libraries that choose the device themselves."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, rewritten, said_of, target, vendor
from torchferry.conversion import added
from torchferry.conversion.project import Plan, examine_project
from torchferry.vendors.calls import load_libraries

LIGHTNING = "import torch\nimport lightning as L\ntrainer = L.Trainer(accelerator={accelerator}, devices=1)\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("from mine import Trainer\nTrainer(accelerator='gpu')", id="the user's own Trainer"),
        pytest.param("import lightning as L\nclass M(L.LightningModule): pass", id="a module, no trainer"),
        pytest.param("import lightning as L\ndef f(t: L.Trainer): pass", id="an annotation"),
        pytest.param("import timm\nm = timm.create_model('vit')", id="a model of timm's"),
        pytest.param("import timm\ntimm.data.create_loader(d, device=mine)", id="a device is given"),
        pytest.param("from whisper import load_model\nload_model('tiny', where)", id="given by position"),
        pytest.param("# L.Trainer(accelerator='gpu')", id="a comment"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF610") == []


@pytest.mark.parametrize("name", [*VENDORS, "portable", "ascend+cuda"])
@pytest.mark.parametrize("accelerator", ['"gpu"', '"auto"', "args.accelerator"])
def test_lightning_is_taught_the_device(name: str, accelerator: str) -> None:
    source = LIGHTNING.format(accelerator=accelerator)
    text = rewritten(source, name)
    assert text.replace("import ferry_lightning\n", "") == source
    assert text.index("import lightning") < text.index("import ferry_lightning") < text.index("L.Trainer")
    assert rewritten(text, name) == text


@pytest.mark.parametrize(
    "source",
    [
        "from pytorch_lightning import Trainer\nt = Trainer(gpus=1)\n",
        "import pytorch_lightning as pl\nt = pl.Trainer.from_argparse_args(args)\n",
        "from lightning.pytorch.cli import LightningCLI\nLightningCLI(M)\n",
        "from lightning.fabric import Fabric\nf = Fabric(accelerator='cuda')\n",
        "from lightning.pytorch import Trainer as T\nt = T()\n",
        "import lightning as L\nclass Mine(L.Trainer):\n    pass\n",
        "try:\n    import lightning as L\nexcept ImportError:\n    L = None\nt = L.Trainer()\n",
    ],
)
def test_every_door_to_lightning(source: str) -> None:
    assert "import ferry_lightning\n" in rewritten(source)


@pytest.mark.parametrize("name", [*VENDORS, "portable", "ascend+cuda"])
def test_the_added_module_is_python_and_names_the_device(name: str) -> None:
    text = added.helper_source(target(name)).decode()
    ast.parse(text)
    assert not re.search("@[A-Z]+@", text)
    assert added.is_helper(text.encode())
    if name in VENDORS:
        assert f'DEVICE_TYPE = "{vendor(name).device_type}"' in text


def test_the_module_is_added_where_the_files_find_it(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    (tmp_path / "pkg/fit.py").write_text(
        "from . import net\nimport lightning as L\ndef go():\n    L.Trainer()\n"
    )
    (tmp_path / "pkg/net.py").write_text("")
    (tmp_path / "setup.py").write_text("")
    outcome = examine_project(tmp_path, Plan(target("ascend")))
    assert list(outcome.added) == ["pkg/ferry_lightning.py"]
    (changed,) = [item.new_data for item in outcome.outcomes if item.new_data]
    assert b"from . import ferry_lightning\n" in changed


def test_a_name_that_a_module_of_the_project_hands_on(tmp_path: Path) -> None:
    """yolov5: smart_amp_autocast of utils is ultralytics' autocast"""
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils/__init__.py").write_text("")
    (tmp_path / "utils/torch_utils.py").write_text(
        "from ultralytics.utils.torch_utils import autocast as smart_amp_autocast\n"
    )
    (tmp_path / "train.py").write_text(
        "from utils.torch_utils import smart_amp_autocast\nwith smart_amp_autocast(amp):\n    pass\n"
    )
    outcome = examine_project(tmp_path, Plan(target("ascend")))
    (changed,) = [item.new_data for item in outcome.outcomes if item.new_data]
    assert b'with smart_amp_autocast(amp, device="npu"):' in changed


def test_nothing_is_added_to_other_projects(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nx.cuda()\n# lightning\n")
    assert not examine_project(tmp_path, Plan(target("ascend"))).added


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "from timm.data import create_loader\nl = create_loader(d, 3)",
            'from timm.data import create_loader\nl = create_loader(d, 3, device=torch.device("npu"))',
        ),
        (
            "from ultralytics.utils.torch_utils import autocast as smart\nwith smart(amp): pass",
            'from ultralytics.utils.torch_utils import autocast as smart\nwith smart(amp, device="npu"): pass',
        ),
        (
            "import timm.utils\ns = timm.utils.NativeScaler()",
            'import timm.utils\ns = timm.utils.NativeScaler(device="npu")',
        ),
        (
            "from stable_baselines3 import PPO\nm = PPO('Mlp', env, device='auto')",
            "from stable_baselines3 import PPO\nm = PPO('Mlp', env, device=\"npu\")",
        ),
    ],
)
def test_the_device_is_given(source: str, expected: str) -> None:
    assert expression(source) == expected
    assert "DEVICE_TYPE" in expression(source, "portable")


def test_torch_is_imported_for_the_device() -> None:
    text = rewritten("from timm.data import create_loader\nl = create_loader(d)\n")
    assert "import torch\n" in text


@pytest.mark.parametrize(
    "source",
    [
        "from ultralytics import YOLO\nYOLO('yolov8n.pt').train(data='coco.yaml', device=0)",
        "from fastai.vision.all import vision_learner\nl = vision_learner(dls, resnet18)",
        "import easyocr\nr = easyocr.Reader(['en'])",
        "from fastai.vision.all import *\nl = vision_learner(dls, resnet18)",
        "from detectron2.config import get_cfg\ncfg = get_cfg()",
        "import whisper\nm = whisper.load_model('tiny', device=0)",
        "import whisper\nm = whisper.load_model('tiny', **options)",
    ],
)
@pytest.mark.parametrize("name", VENDORS)
def test_no_all_clear_where_only_the_library_decides(source: str, name: str) -> None:
    assert [kind for _, kind, _ in said_of(source, name, "TF610")] == ["todo"]


@pytest.mark.parametrize(
    ("source", "silent"),
    [
        ("from accelerate import Accelerator\na = Accelerator()", set(VENDORS)),
        ("from transformers import TrainingArguments\na = TrainingArguments('o')", set(VENDORS)),
        ("from transformers import pipeline\np = pipeline('t', device=0)", set(VENDORS) - {"tecorigin"}),
        ("import deepspeed\ne = deepspeed.initialize(model=m)", set(VENDORS) - {"moorethreads"}),
    ],
)
def test_libraries_that_know_the_vendors_device(source: str, silent: set[str]) -> None:
    for name in VENDORS:
        expected = "info" if name in silent else "todo"
        assert [kind for _, kind, _ in said_of(source, name, "TF610")] == [expected], name


def test_the_vendors_own_migration_is_named() -> None:
    (item,) = findings("from fastai.learner import Learner\nLearner(d, m)\n", rule="TF610")
    assert "import `torch_npu.contrib.transfer_to_npu` first" in item.do.en


def test_every_row_has_a_source_and_a_place_for_the_device() -> None:
    for library in load_libraries():
        assert library.source
        assert "cuda" in library.knows
        assert bool(library.argument) is ("{device}" in library.write), library.name
