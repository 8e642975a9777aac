"""Files that were made to do harm, or were damaged: nothing runs, nothing grows, the answer is one line."""

from __future__ import annotations

import random
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.checkpoint import samples
from torchferry.checkpoint import unpickling
from torchferry.checkpoint.classes import LoadingNeed, named
from torchferry.checkpoint.folders import read
from torchferry.cli.main import main
from torchferry.errors import InputError

START = b"\x80\x04"
TOWER = b")" + b"2\x86" * 60  # a tuple of twice the same tuple, sixty times over: to hash it takes for ever
LARGE = b"\x8b" + struct.pack("<I", 20_000) + b"\x7f" * 20_000  # an integer that Python refuses to write out


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n\x8c\x01x\x85R.",
        b"(\x8c\x01xios\nsystem\n.",
        b"(cos\nsystem\n\x8c\x01xo.",
        b"\x8c\x02os\x94\x8c\x06system\x94h\x00h\x01\x93\x8c\x01x\x85R.",
    ],
    ids=["REDUCE", "INST", "OBJ", "STACK_GLOBAL"],
)
def test_every_way_to_call_is_only_named(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(START + data)
    assert named(read(tmp_path / "a.pkl").globals, LoadingNeed.DANGEROUS) == ["os.system"]


@pytest.mark.parametrize(
    "data",
    [
        b"}" + TOWER + b"K\x01s.",
        b"}ctorch\nSize\n" + TOWER + b"\x85RK\x01s.",
        b"\x8f(" + TOWER + b"\x90.",
        b"(" + TOWER + b"\x91.",
        b"(" + TOWER + b"K\x01d.",
        b"\x82\x01.",
        b"\x8c\x03abcQ.",
        b"\x8e" + struct.pack("<Q", 2**60) + b"x.",
        b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n(" + LARGE + b"t(K\x01tItR.",
    ],
    ids=["SETITEM", "torch.Size", "ADDITEMS", "FROZENSET", "DICT", "EXT", "persistent id", "length", "shape"],
)
def test_what_would_take_for_ever_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(START + data)
    with pytest.raises(InputError, match="damaged, or not a checkpoint"):
        read(tmp_path / "a.pkl")


@pytest.mark.parametrize(
    "data", [b"}\x8c\x01a" + LARGE + b"s.", b"}" + LARGE + b"K\x01s.", b"]" * 2000 + b"a" * 1999 + b"."]
)
def test_what_can_not_be_written_out(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.pkl"
    file.write_bytes(START + data)
    for words in (["info"], ["info", "--json"], ["fix", "-o", str(tmp_path / "b.pth"), "--force"]):
        assert main(["checkpoint", words[0], str(file), *words[1:]]) in (0, 2)
        assert len(capsys.readouterr().err.splitlines()) <= 1


def test_steps_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpickling._Counted, "left", 1000)
    (tmp_path / "a.pkl").write_bytes(START + b"(" + b"]" * 1001 + b"l.")
    with pytest.raises(InputError, match="steps"):
        read(tmp_path / "a.pkl")


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "a.pth", "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("a/data.pkl", START + b"}.")
        archive.writestr("a/data.pkl", START + b"cos\nsystem\n.")
    with pytest.raises(InputError, match="two members of the same name"):
        read(tmp_path / "a.pth")


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    """Five thousand million bytes: a name without an end, and a text that claims them all."""
    for data in (b"cabc", b"\x8e" + struct.pack("<Q", 4_900_000_000)):
        with open(tmp_path / "a.pth", "wb") as stream:
            stream.write(START + data)
            stream.truncate(5_000_000_000)
        with pytest.raises(InputError, match="damaged"):
            read(tmp_path / "a.pth")


def test_damage_anywhere_is_an_error_of_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cut at some place, or with a bit turned; what a flip leaves readable is read."""
    chance = random.Random(0)
    np.savez_compressed(tmp_path / "c.npz", w=np.ones(5))
    samples.nested(tmp_path / "a.pth", args=True)
    samples.nested(tmp_path / "b.pth", _use_new_zipfile_serialization=False)
    file, output = tmp_path / "damaged.pth", tmp_path / "out.pth"
    for name in ("a.pth", "b.pth", "c.npz"):
        whole = (tmp_path / name).read_bytes()
        for turn in range(30):
            damaged = bytearray(whole)
            if turn % 3:
                damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
            else:
                del damaged[len(whole) * turn // 30 :]
            file.write_bytes(damaged)
            for words in (["info", str(file)], ["fix", str(file), "-o", str(output), "--force"]):
                assert main(["checkpoint", *words]) in (0, 2)
                assert len(capsys.readouterr().err.splitlines()) <= 1
