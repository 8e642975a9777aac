"""Small files that claim large memory: each ends in one line, within a limit that the system enforces."""

from __future__ import annotations

import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from torchferry.checkpoint import loading
from torchferry.checkpoint.folders import read
from torchferry.cli.main import main
from torchferry.errors import InputError

_MIB = 2**20
_LIMITED = """
import resource, sys
from torchferry.cli.main import main
if "fix" in sys.argv:
    import torch
limit = int(sys.argv[1])
used = int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + limit, used + limit))
sys.exit(main(sys.argv[2:]))
"""


def within(limit: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `ferry` with so many bytes more than Python, and PyTorch where it is used, take by themselves."""
    return subprocess.run(
        [sys.executable, "-c", _LIMITED, str(limit), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "OMP_NUM_THREADS": "1", "PATH": ""},
    )


def refused(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert all(part in result.stderr for part in parts), result.stderr


def _many_copies(text: bytes, make: bytes) -> bytes:
    """A long text once, and a thousand things that are made of it."""
    return b"\x80\x04]q\x00\x8d" + struct.pack("<Q", len(text)) + text + b"q\x01" + make * 1000 + b"."


def _bytes_in_a_row(path: Path) -> None:
    path.write_bytes(b"\x80\x05\x96" + struct.pack("<Q", 6 << 30) + b".")


def _bytes_in_a_frame(path: Path) -> None:
    path.write_bytes(
        b"\x80\x05\x95" + struct.pack("<Q", 6 << 30) + b"\x96" + struct.pack("<Q", 6 << 30) + b"."
    )


def _encoded_again_and_again(path: Path) -> None:
    """Packed, of 60 kB."""
    make = b"h\x00c_codecs\nencode\nh\x01\x8c\x06latin1\x86Ra0"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", _many_copies(b"a" * (60 * _MIB), make))


def _copied_again_and_again(path: Path) -> None:
    make = b"h\x00cbuiltins\nbytearray\nh\x01c_codecs\nencode\nh\x01\x8c\x06latin1\x86R\x85Ra0"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", _many_copies(b"a" * (60 * _MIB), make))


def _a_set_again_and_again(path: Path) -> None:
    many = b"(" + b"".join(b"J" + struct.pack("<i", number) for number in range(200_000)) + b"lq\x01"
    path.write_bytes(b"\x80\x04]q\x00" + many + b"h\x00cbuiltins\nset\nh\x01\x85Ra0" * 1000 + b".")


@pytest.mark.parametrize(
    "make",
    [
        _bytes_in_a_row,
        _bytes_in_a_frame,
        _encoded_again_and_again,
        _copied_again_and_again,
        _a_set_again_and_again,
    ],
)
def test_a_pickle_does_not_decide_how_much_memory_is_claimed(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "a.pth")
    result = within(700 * _MIB, "checkpoint", "info", tmp_path / "a.pth")
    refused(result, "a.pth: damaged, or not a checkpoint")
    assert "MemoryError" not in result.stderr  # it was not even tried


def test_what_is_made_once_is_made(tmp_path: Path) -> None:
    """bytearrays and encoded texts are what programs save."""
    import pickle

    data = {"a": bytearray(5 * _MIB), "b": b"\xff" * _MIB}
    for protocol in (2, 5):
        (tmp_path / "a.pkl").write_bytes(pickle.dumps(data, protocol))
        assert read(tmp_path / "a.pkl").tree == data


def _view(path: Path, shape: tuple[int, ...], strides: tuple[int, ...]) -> Path:
    torch.save({"w": torch.ones(4).as_strided(shape, strides), "v": torch.ones(3)}, path)
    return path


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2**40,), (0,)), ((2**31,), (0,)), ((2**20, 2**20), (0, 0)), ((2**62 // 4,), (0,))],
)
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_view_that_shows_a_few_bytes_again_and_again(
    tmp_path: Path,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    suffix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, output = _view(tmp_path / "a.pth", shape, strides), tmp_path / f"b{suffix}"
    assert main(["checkpoint", "info", str(file)]) == 0
    capsys.readouterr()
    assert main(["checkpoint", "fix", str(file), "-o", str(output)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "w expands 16 bytes to" in said
    assert not output.exists()


def test_what_expand_has_left_is_written(tmp_path: Path) -> None:
    file = _view(tmp_path / "a.pth", (1000, 4), (0, 1))
    for name in ("b.pth", "b.safetensors"):
        assert main(["checkpoint", "fix", str(file), "-o", str(tmp_path / name)]) == 0
    assert torch.load(tmp_path / "b.pth")["w"].stride() == (0, 1)
    assert read(tmp_path / "b.safetensors").tree["w"].shape == (1000, 4)  # type: ignore[index]


def test_many_views_do_not_fill_the_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = torch.ones(1).expand(2**26)  # 256 MB if it is written
    torch.save({f"w{number}": one for number in range(100)}, tmp_path / "a.pth")
    output = tmp_path / "b.safetensors"
    assert main(["checkpoint", "fix", str(tmp_path / "a.pth"), "-o", str(output)]) == 2
    assert "tensors that share 4 bytes would take 26,843,545,600 bytes" in capsys.readouterr().err
    assert main(["checkpoint", "fix", str(tmp_path / "a.pth"), "-o", str(tmp_path / "b.pth")]) == 0


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if 10 MB were much: the file of a test need not be larger."""
    monkeypatch.setattr(loading, "_SMALL", 10 * _MIB)
    yield


def _packed(path: Path, size: int) -> Path:
    torch.save({"w": torch.zeros(size // 4), "v": torch.zeros(3)}, path)
    packed = path.with_name(f"packed-{path.name}")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.infolist():
            target.writestr(member.filename, source.read(member))
    return packed


@pytest.mark.usefixtures("small_limits")
def test_a_packed_archive_is_not_unpacked_without_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bomb, fine = _packed(tmp_path / "a.pth", 40 * _MIB), _packed(tmp_path / "b.pth", 4 * _MIB)
    output = tmp_path / "out.pth"
    assert main(["checkpoint", "fix", str(bomb), "-o", str(output)]) == 2
    assert "would unpack to more than 10,485,760 bytes of memory" in capsys.readouterr().err
    assert main(["checkpoint", "fix", str(fine), "-o", str(output)]) == 0
    assert torch.equal(torch.load(output)["w"], torch.zeros(_MIB))


def test_an_archive_that_lies_about_a_size(tmp_path: Path) -> None:
    """A member that is said to be of 8 GB, and has a few bytes."""
    packed = _packed(tmp_path / "a.pth", 4096)
    data = packed.read_bytes()
    packed.write_bytes(data.replace(struct.pack("<I", 4096), struct.pack("<I", 0xF0000000)))
    with pytest.raises(InputError, match="truncated"):
        loading.load_tree(read(packed), allow_pickle=False)


def test_memory_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    packed = _packed(tmp_path / "b.pth", 200 * _MIB)
    result = within(100 * _MIB, "checkpoint", "fix", packed, "-o", tmp_path / "c.pth")
    refused(result)
    assert not (tmp_path / "c.pth").exists()
