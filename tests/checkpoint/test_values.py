"""What lies beside the weights: harmless values are made without their pickle, objects are written without a class."""

from __future__ import annotations

import argparse
import datetime
import enum
import pathlib
import types
import zipfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.checkpoint import samples
from torchferry.checkpoint.classes import LoadingNeed, named
from torchferry.checkpoint.fixing import repair
from torchferry.checkpoint.folders import read
from torchferry.checkpoint.loading import Loaded, load_tree
from torchferry.checkpoint.model import Repair
from torchferry.checkpoint.names import state_dicts, tensors_of
from torchferry.errors import InputError


class Colour(enum.Enum):
    RED = 1


VALUES: dict[str, Any] = {
    "args": argparse.Namespace(lr=0.1, out=pathlib.PurePosixPath("/a/b")),
    "simple": types.SimpleNamespace(x=[1]),
    "lists": defaultdict(list, {1: [2]}),
    "counts": Counter("aab"),
    "when": datetime.datetime(2020, 1, 2),
    "best": np.float64(0.5),
    "seen": np.int64(7),
}


def test_values_are_made_without_running_the_pickle(tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    torch.save({**VALUES, "array": array, "again": array}, tmp_path / "a.pth")
    contents = read(tmp_path / "a.pth")
    made, _, ran_code = load_tree(contents, allow_pickle=False)
    assert not ran_code and not named(contents.globals, LoadingNeed.NEEDED)
    for name, value in VALUES.items():
        assert made[name] == value and type(made[name]) is type(value), name
    assert made["lists"]["new"] == []
    assert (
        isinstance(made["array"], np.ndarray)
        and made["array"].tolist() == made["again"].tolist() == array.tolist()
    )


def test_plain_is_what_weights_only_takes(tmp_path: Path) -> None:
    source, output = tmp_path / "a.pth", tmp_path / "b.pth"
    torch.save({**VALUES, "array": np.arange(3.0), "colour": Colour.RED, "w": torch.ones(2)}, source)
    with pytest.raises(InputError, match="colour is a"):
        repair(source, output, Repair())
    done = repair(source, output, Repair(plain=True))
    after = torch.load(output, weights_only=True)
    assert after["args"]["lr"] == 0.1 and after["best"] == 0.5 and after["array"].tolist() == [0, 1, 2]
    assert after["colour"] == 1 and after["lists"] == {1: [2]}
    assert ("args", "argparse.Namespace") in done.made_plain


def test_sparse_tensors_with_only_and_beside_classes(tmp_path: Path) -> None:
    base = torch.eye(3)
    state = {"coo": base.to_sparse(), "csr": base.to_sparse_csr()}
    torch.save({"state_dict": state, "colour": Colour.RED}, tmp_path / "a.pth")
    repair(tmp_path / "a.pth", tmp_path / "b.pth", Repair("state_dict"))
    after = torch.load(tmp_path / "b.pth", weights_only=True)
    assert all(after[name].layout == state[name].layout for name in state)
    assert all(torch.equal(after[name].to_dense(), base) for name in state)


def test_quantized_and_meta_tensors(tmp_path: Path) -> None:
    quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    torch.save(
        {"state_dict": {"q": quantized, "m": torch.empty(2, device="meta")}, "epoch": 1}, tmp_path / "a.pth"
    )
    repair(tmp_path / "a.pth", tmp_path / "b.pth", Repair("state_dict"))
    after = torch.load(tmp_path / "b.pth", weights_only=True)
    assert torch.equal(after["q"].int_repr(), quantized.int_repr()) and after["m"].is_meta
    torch.save({"m": torch.empty(2, device="meta")}, tmp_path / "c.pth")
    with pytest.raises(InputError, match="m: safetensors can't store"):
        repair(tmp_path / "c.pth", tmp_path / "c.safetensors", Repair())


class _OfADevice:
    """A tensor as PyTorch 1 saved those of devices outside of it: the numbers as an array, the device as a text."""

    def __reduce__(self) -> Any:
        numbers = np.arange(3, dtype="f4")
        return torch._utils._rebuild_device_tensor_from_numpy, (numbers, torch.float32, "mlu:1", False)


def test_tensors_that_were_saved_as_arrays(tmp_path: Path) -> None:
    torch.save({"w": _OfADevice()}, tmp_path / "a.pth")
    contents = read(tmp_path / "a.pth")
    (tensor,) = tensors_of(contents.tree).values()
    assert (tensor.device, tensor.dtype) == ("mlu:1", "float32")
    assert Loaded(contents).tensors({"w": tensor})["w"].tolist() == [0, 1, 2]


def test_big_endian_numbers_are_turned(tmp_path: Path) -> None:
    torch.save({"state_dict": {"w": torch.arange(3.0)}, "colour": Colour.RED}, tmp_path / "a.pth")
    with zipfile.ZipFile(tmp_path / "a.pth") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "b.pth", "w") as archive:
        for name, data in members.items():
            if name.endswith("data/0"):
                data = torch.arange(3.0).numpy().astype(">f4").tobytes()
            archive.writestr(name, b"big" if name.endswith("byteorder") else data)
    contents = read(tmp_path / "b.pth")
    (state,) = state_dicts(contents.tree)
    assert contents.is_big_endian and Loaded(contents).tensors(state.tensors)["w"].tolist() == [0, 1, 2]


def test_a_tensor_beside_the_weights_is_not_taken_for_one(tmp_path: Path) -> None:
    """The best accuracy of the ImageNet example is a tensor, too."""
    torch.save(
        {"state_dict": samples.model().state_dict(), "best_acc1": torch.tensor(0.5)}, tmp_path / "a.pth"
    )
    assert [state.name for state in state_dicts(read(tmp_path / "a.pth").tree)] == ["state_dict"]
