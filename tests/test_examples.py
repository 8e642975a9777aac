"""The examples: they train on the CPU, and their conversions are what the vendors' own guides ask for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.emulate.running import why_not
from tests.forking import run_forked
from torchferry.cli.main import main

Convert = Callable[[Path, str], Path]

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
IMAGENET = EXAMPLES / "imagenet"
FINETUNE = EXAMPLES / "finetune"
TINY = ["--dummy", "-a", "resnet_tiny", "--dummy-batches", "3", "-b", "8", "--image-size", "32"]
TINY += ["--classes", "10", "-j", "0", "-p", "1", "--seed", "7"]

# target -> (plugin, device, backend), from the vendors' guides; never read from the data under test
VENDORS = {
    "ascend": ("torch_npu", "npu", "hccl"),
    "cambricon": ("torch_mlu", "mlu", "cncl"),
    "tecorigin": ("torch_sdaa", "sdaa", "tccl"),
    "moorethreads": ("torch_musa", "musa", "mccl"),
    "intel": ("", "xpu", "xccl"),
}

# What a guide replaces, line by line, with how often the line stands in main.py: original -> replacement.
REPLACED = [
    (1, 'default="nccl", help', 'default="{backend}", help'),
    (1, "ngpus_per_node = torch.cuda.device_count()", "ngpus_per_node = torch.{device}.device_count()"),
    (1, "if not torch.cuda.is_available():", "if not torch.{device}.is_available():"),
    (2, "if torch.cuda.is_available():", "if torch.{device}.is_available():"),
    (2, "torch.cuda.set_device(args.gpu)", "torch.{device}.set_device(args.gpu)"),
    (1, "            model.cuda(args.gpu)", "            model.{device}(args.gpu)"),
    (1, "            model.cuda()", "            model.{device}()"),
    (1, "model = model.cuda(args.gpu)", "model = model.{device}(args.gpu)"),
    (1, "torch.nn.DataParallel(model).cuda()", "torch.nn.DataParallel(model).{device}()"),
    (1, "nn.CrossEntropyLoss().cuda(args.gpu)", "nn.CrossEntropyLoss().{device}(args.gpu)"),
    (1, '"cuda:{{}}".format(args.gpu)', '"{device}:{{}}".format(args.gpu)'),
    (2, "images.cuda(args.gpu, non_blocking=True)", "images.{device}(args.gpu, non_blocking=True)"),
    (2, "target.cuda(args.gpu, non_blocking=True)", "target.{device}(args.gpu, non_blocking=True)"),
]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONUTF8": "1"}


def run(program: Path, *arguments: str | Path, cwd: Path) -> str:
    result = run_forked(program, ENVIRONMENT, cwd, map(str, arguments))
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Convert:
    """Converts a project for a target, once for all tests that look at what came out."""

    @cache
    def converted(project: Path, target: str) -> Path:
        out = tmp_path_factory.mktemp(target) / "out"
        assert main(["convert", str(project), "--to", target, "-o", str(out), "-q"]) == 0
        return out

    return converted


def losses(output: str) -> list[str]:
    return re.findall(r"Loss (\S+)", output)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The original program, trained for an epoch."""
    folder = tmp_path_factory.mktemp("original")
    return folder, run(IMAGENET / "main.py", *TINY, "--epochs", "1", cwd=folder)


def test_imagenet_trains_on_the_cpu(trained: tuple[Path, str]) -> None:
    folder, output = trained
    assert "using CPU, this will be slow" in output
    printed = [float(text) for text in losses(output)]
    assert len(printed) == 3 + 3 + 1  # three steps, three batches of validation, the average
    assert len(set(printed)) == len(printed)
    assert (folder / "checkpoint.pth.tar").stat().st_size > 10_000


def test_imagenet_resumes(trained: tuple[Path, str]) -> None:
    folder, _ = trained
    output = run(IMAGENET / "main.py", *TINY, "--epochs", "2", "--resume", "checkpoint.pth.tar", cwd=folder)
    assert "=> loaded checkpoint 'checkpoint.pth.tar' (epoch 1)" in output
    assert "Epoch: [1]" in output
    assert "Epoch: [0]" not in output


def test_imagenet_evaluates_without_training(trained: tuple[Path, str], tmp_path: Path) -> None:
    output = run(IMAGENET / "main.py", *TINY, "-e", cwd=tmp_path)
    assert "Test: [0/3]" in output
    assert "Epoch" not in output
    assert not list(tmp_path.iterdir())


def test_imagenet_reads_a_folder_of_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="a data folder needs Pillow")
    for part in ("train", "val"):
        for label in ("cat", "dog"):
            folder = tmp_path / "data" / part / label
            folder.mkdir(parents=True)
            for number in range(4):
                image.new("RGB", (40, 30), (number * 40, 90, 20)).save(folder / f"{number}.png")
    options = [
        "-a",
        "resnet_tiny",
        "-b",
        "4",
        "--image-size",
        "32",
        "--classes",
        "2",
        "-j",
        "0",
        "--epochs",
        "1",
    ]
    output = run(IMAGENET / "main.py", tmp_path / "data", *options, cwd=tmp_path)
    assert len(losses(output)) > 2


def test_portable_imagenet_prints_the_same_losses(
    trained: tuple[Path, str], tmp_path: Path, convert: Convert
) -> None:
    out = convert(IMAGENET, "portable")
    text = (out / "main.py").read_text("utf-8")
    assert "torch.accelerator.is_available()" in text
    assert not re.search(r"torch\.cuda|\.cuda\(|\"nccl\"", text)
    output = run(out / "main.py", *TINY, "--epochs", "1", cwd=tmp_path)
    assert losses(output) == losses(trained[1])


@pytest.mark.parametrize("target", VENDORS)
def test_imagenet_changes_as_the_guides_say(target: str, convert: Convert) -> None:
    plugin, device, backend = VENDORS[target]
    out = convert(IMAGENET, target)
    before = (IMAGENET / "main.py").read_text("utf-8").splitlines()
    after = (out / "main.py").read_text("utf-8").splitlines()
    compile("\n".join(after), "main.py", "exec")
    if plugin:
        added = after.index("import torch") + 1
        assert after.pop(added) == f"import {plugin}"
    assert len(before) == len(after)
    changed = Counter((old, new) for old, new in zip(before, after, strict=True) if old != new)
    words = {"device": device, "backend": backend}
    for count, old, new in REPLACED:
        old, new = old.format(), new.format(**words)
        found = {pair: number for pair, number in changed.items() if _is_replaced(pair, old, new)}
        assert sum(found.values()) == count, (old, new)
        for pair in found:
            del changed[pair]
    assert not changed, "lines changed that no guide names"


def _is_replaced(pair: tuple[str, str], old: str, new: str) -> bool:
    """Whether a line holds the old text, and differs from its successor in that alone."""
    bare = pair[0].strip() if not old.startswith(" ") else pair[0]
    stands_alone = bare.startswith(old) or not old.startswith(("if ", " "))
    return old in pair[0] and stands_alone and pair[0].replace(old, new) == pair[1]


@pytest.mark.parametrize("target", [*VENDORS, "portable"])
def test_imagenet_keeps_what_has_nothing_to_do_with_cuda(target: str, convert: Convert) -> None:
    out = convert(IMAGENET, target)
    for name in ("resnet.py", "data.py"):
        assert (out / name).read_bytes() == (IMAGENET / name).read_bytes()
    assert {path.name for path in out.iterdir()} - {"__pycache__"} == {  # where a test has run it
        *(path.name for path in IMAGENET.glob("*.py")),
        "findings.json",
        "report.html",
    }


@pytest.mark.parametrize("target", ["ascend", "cambricon", "tecorigin"])
def test_imagenet_reports_data_parallel(target: str, convert: Convert) -> None:
    out = convert(IMAGENET, target)
    findings = json.loads((out / "findings.json").read_text("utf-8"))["findings"]
    (found,) = [item for item in findings if item["rule"] == "TF204"]
    assert "--data-parallel single" in found["do"]  # it has DistributedDataParallel already


def test_finetune_trains_on_the_cpu(tmp_path: Path) -> None:
    output = run(FINETUNE / "train.py", "--steps", "11", cwd=tmp_path)
    printed = [float(text) for text in re.findall(r"loss (\S+)", output)]
    assert len(printed) == 3
    assert printed[-1] < printed[0]


def test_finetune_has_something_of_every_kind(convert: Convert) -> None:
    out = convert(FINETUNE, "tecorigin")
    data = json.loads((out / "findings.json").read_text("utf-8"))
    assert {"change", "todo", "unsupported", "unknown"} <= {item["kind"] for item in data["findings"]}
    rules = {item["rule"] for item in data["findings"]}
    assert {"TF105", "TF201", "TF302", "TF401", "TF402", "TF501", "TF602", "TF603", "TF810", "TF813"} <= rules


# target -> what stands for CUDA_VISIBLE_DEVICES, nvidia-smi and NCCL_DEBUG in its scripts
IN_SCRIPTS = {
    "ascend": ("ASCEND_RT_VISIBLE_DEVICES", "npu-smi info", "NCCL_DEBUG"),
    "cambricon": ("MLU_VISIBLE_DEVICES", "cnmon", "NCCL_DEBUG"),
    "tecorigin": ("SDAA_VISIBLE_DEVICES", "teco-smi", "NCCL_DEBUG"),
    "moorethreads": ("MUSA_VISIBLE_DEVICES", "mthreads-gmi", "MCCL_DEBUG"),
    "intel": ("ZE_AFFINITY_MASK", "xpu-smi", "NCCL_DEBUG"),
}


@pytest.mark.parametrize("target", VENDORS)
def test_finetune_compiles_and_its_scripts_speak_the_targets_words(target: str, convert: Convert) -> None:
    out = convert(FINETUNE, target)
    for path in out.glob("*.py"):
        compile(path.read_bytes(), str(path), "exec")
    _, device, backend = VENDORS[target]
    visible, smi, debug = IN_SCRIPTS[target]
    words = {
        "CUDA_VISIBLE_DEVICES": visible,
        "nvidia-smi": smi,
        "NCCL_DEBUG": debug,
        "device: cuda": f"device: {device}",
        "nccl": backend,
    }
    for name in ("launch.sh", "config.yaml"):
        expected = (FINETUNE / name).read_text("utf-8")
        for old, new in words.items():
            expected = expected.replace(old, new)
        assert (out / name).read_text("utf-8") == expected
    assert os.access(out / "launch.sh", os.X_OK)


def test_portable_finetune_keeps_its_scripts(convert: Convert) -> None:
    out = convert(FINETUNE, "portable")
    for path in out.glob("*.py"):
        compile(path.read_bytes(), str(path), "exec")
    for name in ("launch.sh", "config.yaml"):
        assert (out / name).read_bytes() == (FINETUNE / name).read_bytes()


def test_portable_finetune_prints_the_same_losses(tmp_path: Path, convert: Convert) -> None:
    out = convert(FINETUNE, "portable")
    before = run(FINETUNE / "train.py", "--steps", "11", cwd=tmp_path)
    after = run(out / "train.py", "--steps", "11", cwd=tmp_path)
    assert re.findall(r"loss (\S+)", after) == re.findall(r"loss (\S+)", before)


def test_the_demo_fits_a_terminal_proves_and_names_what_to_open(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "examples/demo.py"]
    result = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    output = result.stdout
    assert max(map(_width, output.splitlines())) <= 80
    assert re.search(r"^  ascend .*100%", output, re.MULTILINE)
    assert (tmp_path / "demo-out" / "operators.html").is_file()
    assert re.findall(r"step \d: loss \d\.\d+", output)
    for proof, vendors in (("proof", 3), ("proof-converted", 1)):
        content = json.loads((tmp_path / "demo-out" / proof / "proof.json").read_text("utf-8"))
        assert [result["verdict"] for result in content["results"]] == ["equal"] * vendors
    assert (tmp_path / "demo-out" / "proof" / "proof.html").is_file()
    if why_not():
        assert "The plugin is not set up here" in output
    else:
        assert "ascend (npu): equal bit for bit" in output.partition("Huawei's own plugin")[2]
    assert "aten::gelu computes wrong results: wrong from some element to the end" in output
    assert (tmp_path / "demo-out" / "compare.html").is_file()
    assert "Bottleneck: the program waits for data." in output
    assert (tmp_path / "demo-out" / "analyze.html").is_file()
    assert "saved on npu:0" in output
    assert "onnxruntime computes the same as PyTorch" in output
    assert (tmp_path / "demo-out" / "model.onnx").is_file()
    assert "rank 1 failed first" in output
    for target in ("ascend", "cambricon", "tecorigin", "portable"):
        assert f"demo-out/{target}/report.html" in output
        assert (tmp_path / "demo-out" / target / "report.html").is_file()


def _width(line: str) -> int:
    return sum(2 if "\u2e80" <= char <= "\uffef" else 1 for char in line)
