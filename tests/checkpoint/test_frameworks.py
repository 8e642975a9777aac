"""Checkpoints as frameworks save them: what in them is a model's, and what is not."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from tests.checkpoint import samples
from tests.forking import run_forked
from torchferry.checkpoint.classes import LoadingNeed, named
from torchferry.checkpoint.fixing import repair
from torchferry.checkpoint.folders import read
from torchferry.checkpoint.model import Global, Repair
from torchferry.checkpoint.names import state_dicts, tensors_of
from torchferry.cli.main import main
from torchferry.errors import InputError


class Meter:
    """As mmengine keeps the figures of a training: arrays, and methods of its class."""

    def __init__(self) -> None:
        self.history = numpy.arange(3.0)
        self.ways = {"mean": Meter.mean}

    def mean(self) -> float:
        return float(self.history.mean())


def saved(folder: Path, tree: Any) -> Path:
    torch.save(tree, folder / "a.pth")
    return folder / "a.pth"


def weights(file: Path) -> list[str]:
    return [state.name for state in state_dicts(read(file).tree)]


@pytest.mark.parametrize(
    "beside",
    [
        {
            "rng": torch.get_rng_state(),
            "random_states": {"torch": torch.get_rng_state(), "python": random.getstate()},
        },
        {"generators": {"cpu": torch.get_rng_state(), "cuda": torch.get_rng_state()}},
        {"callbacks": {"ModelCheckpoint": {"best_model_score": torch.ones(())}}},
        {"loops": {"fit": {"total": torch.ones(2)}}},
        {"teacher": {"state": {0: {"step": torch.ones(()), "exp_avg": torch.ones(3)}}, "param_groups": []}},
        {"message_hub": {"loss": Meter()}},
    ],
)
def test_what_is_no_model(tmp_path: Path, beside: dict[str, Any]) -> None:
    file = saved(tmp_path, {"net": samples.model().state_dict(), **beside})
    assert weights(file) == ["net"]


def test_an_optimizer_alone_is_no_model(tmp_path: Path) -> None:
    state = {"state": {0: {"exp_avg": torch.ones(3)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    assert weights(saved(tmp_path, state)) == []


def test_methods_that_a_class_names_are_not_dangerous(tmp_path: Path) -> None:
    contents = read(saved(tmp_path, {"net": samples.model().state_dict(), "meter": Meter()}))
    assert named(contents.globals, LoadingNeed.DANGEROUS) == []
    assert f"{__name__}.Meter.mean" in named(contents.globals, LoadingNeed.NEEDED)


@pytest.mark.parametrize("name", ["os.system", "os", "serialization.os.popen"])
def test_modules_that_are_reached_through_others_are_dangerous(name: str) -> None:
    assert named([Global("torch", name)], LoadingNeed.DANGEROUS) == [f"torch.{name}"]


def megatron() -> dict[str, Any]:
    embedding = {
        "word_embeddings": {"weight": torch.randn(8, 4)},
        "position_embeddings": {"weight": torch.ones(2)},
    }
    language_model = {
        "embedding": embedding,
        "encoder": {"layers.0.weight": torch.ones(4, 4), "layers.0.bias": torch.ones(4)},
    }
    return {"args": argparse.Namespace(), "model": {"language_model": language_model}, "iteration": 3}


def test_a_model_in_nested_dictionaries_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = megatron()
    file = saved(tmp_path, tree)
    (state,) = state_dicts(read(file).tree)
    assert (state.name, len(state.tensors)) == ("model", 4)
    repair(file, tmp_path / "clean.pth", Repair(only="model"))
    flat = torch.load(tmp_path / "clean.pth", weights_only=True)
    assert list(flat) == [
        "language_model.embedding.word_embeddings.weight",
        "language_model.embedding.position_embeddings.weight",
        "language_model.encoder.layers.0.weight",
        "language_model.encoder.layers.0.bias",
    ]
    words = tree["model"]["language_model"]["embedding"]["word_embeddings"]["weight"]
    assert torch.equal(flat["language_model.embedding.word_embeddings.weight"], words)


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        ({"model": {"g": {"w": torch.ones(2)}, "d": {"w": torch.ones(2)}}}, ["model.g", "model.d"]),
        ({"a": {"model": {"w": torch.ones(2)}, "ema": {"w": torch.ones(2)}}}, ["a.model", "a.ema"]),
    ],
)
def test_models_side_by_side_stay_several(tmp_path: Path, tree: dict[str, Any], names: list[str]) -> None:
    assert weights(saved(tmp_path, tree)) == names


def test_several_parts_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path, {"model0": {"w": torch.ones(2)}, "model1": {"v": torch.ones(2)}})
    assert main(["checkpoint", "info", str(file)]) == 0
    assert "weights are in 2 parts; the command uses model0" in capsys.readouterr().out


_SHARDS = """
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
mesh = init_device_mesh("cpu", (2,))
def made(placement): return DTensor.from_local(torch.arange(8.0).reshape(2, 4), mesh, [placement], run_check=False)
whole, part, term = made(Replicate()), made(Shard(0)), made(Partial())
torch.save({"model": {"whole": whole}}, FOLDER + "/whole.pth")
torch.save({"model": {"part": part, "term": term}, "epoch": 1}, FOLDER + "/parts.pth")
"""


def test_distributed_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run_forked(f"FOLDER = {str(tmp_path)!r}\n" + _SHARDS, {})
    assert done.returncode == 0, done.stderr
    repair(tmp_path / "whole.pth", tmp_path / "clean.pth", Repair(only="model"))
    clean = torch.load(tmp_path / "clean.pth", weights_only=True)
    assert torch.equal(clean["whole"], torch.arange(8.0).reshape(2, 4))
    # what other processes hold can't be known: a part is never taken for the whole, nor a term for the sum
    contents = read(tmp_path / "parts.pth")
    assert state_dicts(contents.tree) == []
    assert list(tensors_of(contents.tree)) == ["model.part._local_tensor", "model.term._local_tensor"]
    assert main(["checkpoint", "info", str(tmp_path / "parts.pth")]) == 0
    assert "2 tensors are parts of distributed tensors" in capsys.readouterr().out
    repair(tmp_path / "parts.pth", tmp_path / "rescued.pth", Repair(plain=True))
    rescued = torch.load(tmp_path / "rescued.pth", weights_only=True)
    assert rescued["model"]["part"]["_local_tensor"].shape == (2, 4)


def test_a_model_that_was_saved_whole_can_be_cleaned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path, samples.model())
    assert main(["checkpoint", "info", str(file)]) == 0
    assert f"to clean it: ferry checkpoint fix {file} -o clean.pth\n" in capsys.readouterr().out.replace(
        "\n ", " "
    )


def test_fix_says_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, clean = samples.nested(tmp_path / "a.pth.tar"), tmp_path / "clean.pth"
    command = ["checkpoint", "fix", str(file), "-o", str(clean), "--lang", "zh"]
    assert main([*command, "--part", "state_dict"]) == 0
    wanted = f"下一步：ferry checkpoint info {clean}\n"
    assert capsys.readouterr().out.endswith(wanted)
    assert main([*command, "--force"]) == 0  # weights and more: nothing to export as it is
    assert "下一步" not in capsys.readouterr().out


def test_parts_in_chinese(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = {
        "net": samples.model().state_dict(),
        "list": [1],
        "pair": (1, 2),
        "bytes": b"12",
        "large": 1 << 2000,
    }
    file = saved(tmp_path, tree)
    assert main(["checkpoint", "info", str(file), "--lang", "zh"]) == 0
    text = capsys.readouterr().out
    for wanted in ("7 个条目", "列表，长度 1", "元组，长度 2", "2 字节", "2,001 位的整数"):
        assert wanted in text
    assert main(["checkpoint", "info", str(file), "--json", "--lang", "zh"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"]["list"] == "list of 1"


def test_a_bit_that_fell_over(tmp_path: Path) -> None:
    weight = torch.arange(64.0)
    file = saved(tmp_path, {"weight": weight})
    data = bytearray(file.read_bytes())
    data[data.index(samples.bits(weight)) + 100] ^= 1
    file.write_bytes(data)
    assert len(tensors_of(read(file).tree)) == 1  # the numbers are not read
    with pytest.raises(InputError, match=r"a\.pth: damaged: the checksum of weight does not match"):
        repair(file, tmp_path / "clean.pth", Repair())
    assert not (tmp_path / "clean.pth").exists()


def test_a_file_without_checksums(tmp_path: Path) -> None:
    set_options = getattr(torch.serialization, "set_crc32_options", None)
    if set_options is None:
        pytest.skip("this PyTorch always writes them")
    set_options(False)
    try:
        file = saved(tmp_path, {"weight": torch.ones(4)})
    finally:
        set_options(True)
    assert repair(file, tmp_path / "clean.pth", Repair()).tensors == 1


@pytest.mark.parametrize("action", [["info"], ["fix", "-o", "clean.pth"]])
def test_endless_trees_name_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: list[str]
) -> None:
    tree: Any = torch.ones(1)
    for _ in range(300):
        tree = [tree]
    file = saved(tmp_path, tree)
    assert main(["checkpoint", action[0], str(file), *action[1:]]) == 2
    assert capsys.readouterr().err.startswith(f"ferry: {file}: nested too deeply")
