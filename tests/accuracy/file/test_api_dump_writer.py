"""Records in the form of msprobe's dumps, and dumps as records: what goes one way comes back."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import torchferry.accuracy
from tests.accuracy.file.test_api_dump import EXAMPLES, REAL, calls_of
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Kept
from torchferry.cli.main import main
from torchferry.errors import InputError


def record(path: Path, factor: float = 1.0) -> Path:
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3)
    with torchferry.accuracy.dumper(use_dump=True, dump_path=path):
        x = torch.randn(2, 4) * factor
        (layer(x).relu() + torch.tensor([math.inf, 1.0, math.nan])).sum().backward()
    return path


def convert(source: Path, *words: str) -> int:
    return main(["record", "convert", str(source), *words, "-q"])


def test_a_record_becomes_a_dump(tmp_path: Path) -> None:
    assert convert(record(tmp_path / "gpu.h5"), "--msprobe", str(tmp_path / "dump")) == 0
    folder = tmp_path / "dump/step0/rank0"
    assert {each.name for each in folder.iterdir()} == {
        "dump.json", "stack.json", "construct.json", "dump_tensor_data",
    }  # fmt: skip
    dump = json.loads((folder / "dump.json").read_text())
    assert (dump["task"], dump["level"], dump["framework"]) == ("tensor", "L1", "pytorch")
    product = dump["data"]["Aten.addmm.0.forward"]
    weight = product["input_kwargs"]["mat2"]
    assert (weight["dtype"], weight["shape"]) == ("torch.float32", [4, 3])
    values = torch.load(folder / "dump_tensor_data" / weight["data_name"])
    assert weight["Norm"] == pytest.approx(values.norm().item()) and weight["Max"] == values.max().item()
    total = dump["data"]["Aten.add.Tensor.0.forward"]["output"][0]
    assert math.isnan(total["Max"]) and math.isnan(total["Norm"])
    with open_record(tmp_path / "gpu.h5") as ours, open_record(tmp_path / "dump") as theirs:
        assert len(ours.calls) == len(theirs.calls)
        for mine, other in zip(ours.calls, theirs.calls, strict=True):
            kept = [each for each in (*mine.inputs, *mine.outputs) if each.offset is not None]
            back = [each for each in (*other.inputs, *other.outputs) if each.offset is not None]
            assert len(kept) == len(back)
            assert sorted(str(ours.tensor(each)) for each in kept) == sorted(
                str(theirs.tensor(e)) for e in back
            )


@pytest.mark.parametrize(
    "source",
    [EXAMPLES / "npu", REAL / "statistics_8.1", REAL / "statistics_1.0", REAL / "md5_26.2"],
    ids=lambda p: p.name,
)
def test_a_dump_becomes_a_record_and_a_dump_again(source: Path, tmp_path: Path) -> None:
    assert convert(source, "-o", str(tmp_path / "x.h5")) == 0
    assert convert(tmp_path / "x.h5", "--msprobe", str(tmp_path / "again")) == 0
    first, second, third = calls_of(source), calls_of(tmp_path / "x.h5"), calls_of(tmp_path / "again")
    assert list(first) == list(second) == list(third)
    for name, call in first.items():
        for other in (second[name], third[name]):
            assert [(each.name, each.dtype, each.shape) for each in (*call.inputs, *call.outputs)] == [
                (each.name, each.dtype, each.shape) for each in (*other.inputs, *other.outputs)
            ]
        assert (second[name].module, second[name].place) == (call.module, call.place)
    with open_record(source) as dump, open_record(tmp_path / "x.h5") as made:
        assert made.of_apis and made.header.kept is dump.header.kept
        if dump.header.kept is Kept.TENSORS:
            pairs = zip(dump.calls, made.calls, strict=True)
            for ours, theirs in pairs:
                assert torch.equal(dump.tensor(ours.outputs[0]), made.tensor(theirs.outputs[0]))
    assert main(["compare", str(tmp_path / "x.h5"), str(source), "-q"]) == 0


def test_every_rank_has_its_file(tmp_path: Path) -> None:
    for rank in (0, 1):
        place = tmp_path / "dump/step0" / f"rank{rank}"
        place.parent.mkdir(parents=True, exist_ok=True)
        (place).symlink_to(REAL / "md5_26.2/step0/proc100")
    assert convert(tmp_path / "dump", "-o", str(tmp_path / "x.h5")) == 0
    assert {each.name for each in tmp_path.glob("*.h5")} == {"x.rank0.h5", "x.rank1.h5"}
    assert convert(tmp_path / "x.h5", "--msprobe", str(tmp_path / "again")) == 0
    assert {each.name for each in (tmp_path / "again/step0").iterdir()} == {"rank0", "rank1"}


def test_what_can_not_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = record(tmp_path / "gpu.h5")
    assert convert(ours, "-o", str(tmp_path / "other.h5")) == 2
    assert "already a recording of TorchFerry" in capsys.readouterr().err
    assert convert(EXAMPLES / "gpu", "--msprobe", str(tmp_path)) == 2
    assert "not empty" in capsys.readouterr().err
    (tmp_path / "text").write_text("not mine")
    assert convert(EXAMPLES / "gpu", "-o", str(tmp_path / "text")) == 2
    assert (tmp_path / "text").read_text() == "not mine"
    with pytest.raises(InputError):
        open_record(tmp_path / "no" / "dump")


def test_a_dump_is_not_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(EXAMPLES / "gpu"), "--device", "cpu", "-o", str(tmp_path / "x.h5")]) == 2
    assert "a replay needs operators" in capsys.readouterr().err
    assert not (tmp_path / "x.h5").exists()


# The real msprobe, from the registry.

CACHE = Path(__file__).resolve().parents[3] / ".cache"
NEEDED = (
    "pandas", "openpyxl", "et_xmlfile", "python-dateutil", "pytz", "tzdata", "six", "tqdm", "pyyaml", "rich", "matplotlib",
    "einops", "tensorboard", "psutil", "packaging", "wheel",
)  # fmt: skip


@pytest.fixture(scope="module")
def msprobe() -> dict[str, str]:
    """What a process needs to run the newest msprobe that was looked at."""
    folder = CACHE / "msprobe-26.2.0"
    if not (folder / "pandas").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder)]
        for words in (["--no-deps", "mindstudio-probe==26.2.0"], ["--no-deps", *NEEDED[:7]], [*NEEDED[7:]]):
            done = subprocess.run([*pip, *words], capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                pytest.skip(f"the registry can't be reached: {done.stderr.strip()[-200:]}")
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.mark.long
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_what_the_real_msprobe_dumps_is_compared(
    msprobe: dict[str, str], tmp_path: Path, task: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {**json.loads((EXAMPLES / "config.json").read_text()), "task": task, "level": level}
    (tmp_path / "config.json").write_text(json.dumps(chosen))
    for name, more in (("gpu", []), ("npu", ["--wrong-kernel"])):
        words = [str(EXAMPLES / "train.py"), str(tmp_path / "config.json"), str(tmp_path / name), *more]
        done = subprocess.run(
            [sys.executable, *words],
            env=msprobe,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    assert main(["compare", str(tmp_path / "npu"), str(tmp_path / "gpu"), "-q"]) == (task == "tensor")
    first = capsys.readouterr().out.splitlines()[0]
    assert ("Module::Linear" if level == "L0" else "Functional::linear") in first
    assert main(["compare", str(tmp_path / "gpu"), str(tmp_path / "gpu"), "-q", "--check"]) == 0


@pytest.mark.long
def test_the_real_msprobe_compares_what_is_written(msprobe: dict[str, str], tmp_path: Path) -> None:
    for name, factor in (("npu", 1.25), ("gpu", 1.0)):
        assert convert(record(tmp_path / f"{name}.h5", factor), "--msprobe", str(tmp_path / name)) == 0
    words = [
        "-tp",
        str(tmp_path / "npu/step0"),
        "-gp",
        str(tmp_path / "gpu/step0"),
        "-o",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "msprobe.msprobe", "compare", *words],
        env=msprobe, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    (table,) = (tmp_path / "out").glob("*.csv")
    with table.open(newline="") as opened:
        rows = {row["NPU Name"]: row for row in csv.DictReader(opened)}
    product = rows["Aten.mul.Tensor.0.forward.output.0"]
    assert float(product["MaxAbsErr"]) > 0 and float(product["Cosine"]) == pytest.approx(1)
    assert float(rows["Aten.addmm.0.forward.input.mat2"]["MaxAbsErr"]) == 0
