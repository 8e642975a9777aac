"""What is inside a checkpoint, read without running any of it."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.checkpoint import samples
from torchferry.checkpoint import names
from torchferry.checkpoint.classes import LoadingNeed, named
from torchferry.checkpoint.folders import read
from torchferry.checkpoint.loading import Loaded, load_tree
from torchferry.checkpoint.model import FileFormat
from torchferry.checkpoint.names import state_dicts, tensors_of
from torchferry.errors import InputError


def save_zip(tree: object, path: Path) -> None:
    torch.save(tree, path)


def save_legacy(tree: object, path: Path) -> None:
    torch.save(tree, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("save", [save_zip, save_legacy])
def test_plain_trees_are_what_torch_loads(save: Any, tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    tree = OrderedDict(
        view=base[1:3, ::2],
        turned=base.t(),
        half=base.half(),
        brain=base.bfloat16(),
        flags=base > 3,
        small=base.to(torch.float8_e4m3fn),
        complex=torch.randn(3, dtype=torch.complex64),
        empty=torch.empty(0, 3),
        scalar=torch.tensor(7),
        parameter=torch.nn.Parameter(torch.randn(2)),
        plain={
            "epoch": 3,
            "lr": [0.1, 0.2],
            "pair": (1, None),
            "name": "é",
            "set": {1, 2},
            "size": torch.Size([1, 2]),
        },
        device=torch.device("cuda:1"),
        dtype=torch.float16,
    )
    if save is save_legacy:
        del tree["small"]  # torch.save writes it in the old layout, torch.load does not read it
    file = tmp_path / "a.pth"
    save(tree, file)

    ours, _, ran_code = load_tree(read(file), allow_pickle=False)
    theirs = torch.load(file, weights_only=True)

    assert not ran_code and list(ours) == list(theirs)
    for name, value in theirs.items():
        if isinstance(value, torch.Tensor):
            assert ours[name].dtype == value.dtype and ours[name].stride() == value.stride()
            assert samples.bits(ours[name]) == samples.bits(value)
            assert type(ours[name]) is type(value) and ours[name].requires_grad == value.requires_grad
        else:
            assert ours[name] == value
    assert ours["view"].untyped_storage().data_ptr() == ours["turned"].untyped_storage().data_ptr()


@pytest.mark.parametrize("save", [save_zip, save_legacy])
def test_a_model_that_was_saved_whole_has_its_state_dict(save: Any, tmp_path: Path) -> None:
    model = samples.model()
    model.register_buffer("left_out", torch.ones(1), persistent=False)
    file = tmp_path / "model.pt"
    save(model, file)
    contents = read(file)
    (state,) = state_dicts(contents.tree)
    found = Loaded(contents).tensors(state.tensors)
    assert {name: samples.bits(tensor) for name, tensor in found.items()} == {
        name: samples.bits(tensor) for name, tensor in model.state_dict().items()
    }
    assert "torch.nn.modules.conv.Conv2d" in named(contents.globals, LoadingNeed.NEEDED)


def test_torchscript_and_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    model = samples.model()
    torch.jit.trace(model.eval(), torch.randn(1, 3, 8, 8)).save(tmp_path / "model.pt")
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors", {"format": "pt"})
    for name, form in (("model.pt", FileFormat.TORCHSCRIPT), ("model.safetensors", FileFormat.SAFETENSORS)):
        contents = read(tmp_path / name)
        found = Loaded(contents).tensors(tensors_of(contents.tree))
        assert contents.format is form
        assert all(torch.equal(found[key], value) for key, value in model.state_dict().items())


def test_devices_whose_plugin_is_absent(tmp_path: Path) -> None:
    contents = read(samples.nested(tmp_path / "a.pth.tar"))
    assert {tensor.device for tensor in tensors_of(contents.tree).values()} == {"npu:0"}
    (state,) = state_dicts(contents.tree)
    assert state.name == "state_dict"
    assert all(tensor.device.type == "cpu" for tensor in Loaded(contents).tensors(state.tensors).values())


def test_a_plugins_own_way_to_rebuild_a_tensor(tmp_path: Path) -> None:
    """As torch_npu writes it: a function of the plugin, which is not here, with the device's layout at the end."""
    file = tmp_path / "a.pth"
    torch.save({"w": torch.arange(3.0)}, file)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    (key,) = (name for name in members if name.endswith("data.pkl"))
    members[key] = members[key].replace(
        b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch_npu.utils.storage\n_rebuild_npu_tensor\n"
    )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:  # compressed, as by another program
        for name, data in members.items():
            archive.writestr(name, data)
    contents = read(file)
    assert Loaded(contents).tensors(tensors_of(contents.tree))["w"].tolist() == [0, 1, 2]


class Hostile:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


@pytest.mark.parametrize("save", [save_zip, save_legacy])
def test_a_hostile_file_runs_nothing_and_is_called_so(save: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.pth"
    save({"state_dict": {"w": torch.ones(1)}, "x": Hostile(f"touch {tmp_path}/ran")}, file)
    contents = read(file)
    assert named(contents.globals, LoadingNeed.DANGEROUS) == ["posix.system"]
    with pytest.raises(InputError, match=r"x is a posix\.system, and loading it would run code"):
        load_tree(contents, allow_pickle=False)
    assert not (tmp_path / "ran").exists()
    load_tree(contents, allow_pickle=True)
    assert (tmp_path / "ran").exists()  # else the file would not be hostile


def test_names_that_repeat_without_end_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_MOST_PARTS", 10_000)
    file = tmp_path / "a.pkl"
    tower: Any = []
    for _ in range(40):
        tower = [tower, tower]
    file.write_bytes(pickle.dumps({"a": tower}))
    with pytest.raises(InputError, match="more than"):
        tensors_of(read(file).tree)
    loop: Any = {}
    loop["self"] = loop
    file.write_bytes(pickle.dumps(loop))
    assert tensors_of(read(file).tree) == {}


def test_numbers_in_a_file_claim_no_memory(tmp_path: Path) -> None:
    """A place in the memo, or a length, of four thousand million."""
    file = tmp_path / "a.pkl"
    for data in (b"\x80\x02}r\xff\xff\xff\xff.", b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"."):
        file.write_bytes(data)
        try:
            assert read(file).tree == {}
        except InputError as error:
            assert "damaged" in str(error)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "an empty file"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"PK\x03\x04 nothing", "damaged"),
        (b"\x80\x02}q", "damaged"),
        (struct.pack("<Q", 10**12) + b"{", "truncated"),
    ],
)
def test_what_is_no_checkpoint(data: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.pth"
    file.write_bytes(data)
    with pytest.raises(InputError, match=said):
        read(file)


def test_every_cut_of_a_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    whole = samples.nested(tmp_path / "a.pth", _use_new_zipfile_serialization=False).read_bytes()
    file = tmp_path / "cut.pth"
    for length in range(0, len(whole), 97):
        file.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_tree(read(file), allow_pickle=False)


def test_a_tensor_beyond_its_data_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(4.0)}, buffer)
    data = buffer.getvalue().replace(b"K\x04\x85", b"K\x64\x85")  # its shape: 100 instead of 4
    file = tmp_path / "a.pth"
    file.write_bytes(data)
    with pytest.raises(InputError):
        Loaded(contents := read(file)).tensors(tensors_of(contents.tree))


def test_members_that_lie_across_the_end_of_a_buffer(tmp_path: Path) -> None:
    file = tmp_path / "model.pth"
    for length in range(7400, 8300, 16):
        tree = {"notes": "x" * length, "weights": [torch.ones(2) for _ in range(3)]}
        torch.save(tree, file)
        assert read(file).tree["notes"] == tree["notes"]
