"""Event files hold what TensorBoard shows: framing, tags in groups, values, steps and times; the real package reads them."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.curves.samples import BEGAN, COUNT, watched
from torchferry.accuracy.curves.events import checksums, export
from torchferry.accuracy.curves.runs import WatchedRun
from torchferry.cli.main import main


def crc32c(text: bytes) -> int:
    """By the definition, bit for bit."""
    register = 0xFFFFFFFF
    for byte in text:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    return ((checksum >> 15 | checksum << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def fields(text: bytes) -> Iterator[tuple[int, Any]]:
    """Of a protocol buffer: number and value of each field."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = text[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(text):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind) or varint()
        found = text[at : at + size]
        at += size
        yield number, struct.unpack("<d" if kind == 1 else "<f", found)[0] if kind in (1, 5) else found


def events_in(path: Path) -> Iterator[dict[int, Any]]:
    """The events of a file whose records are whole."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        length, checksum = struct.unpack_from("<QI", data, at)
        assert checksum == masked(crc32c(data[at : at + 8]))
        text = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(crc32c(text))
        yield dict(fields(text))
        at += 16 + length


def scalars(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    """Tag -> step, time, value."""
    (path,) = folder.glob("events.out.tfevents.*")
    first, *events = events_in(path)
    assert first[3] == b"brain.Event:2"
    found: dict[str, list[tuple[int, float, float]]] = {}
    for event in events:
        for _, value in fields(event[5]):
            parts = dict(fields(value))
            found.setdefault(parts[1].decode(), []).append((event[2], event[1], parts[2]))
    return found


def exported(path: Path, folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    run = WatchedRun(path)
    export(run, folder)
    return scalars(folder)


@pytest.mark.parametrize("lengths", [(4,), (9, 4, 40, 5), (1000, 7)])
def test_checksums(lengths: tuple[int, ...]) -> None:
    texts = [bytes((7 * place + length) % 256 for place in range(length)) for length in lengths]
    assert checksums(texts) == [crc32c(text) for text in texts]
    assert checksums([b"123456789"]) == [0xE3069283]  # as RFC 3720 gives it


def test_scalars_have_steps_times_and_names_in_groups(tmp_path: Path) -> None:
    found = exported(watched(tmp_path / "a.h5", range(1, 4)), tmp_path / "tb")
    assert found["loss"] == [(step, BEGAN + step, pytest.approx(1 / step)) for step in (1, 2, 3)]
    assert {name.partition("/")[0] for name in found} == {
        "loss", "gradient_norm", "seconds_per_step", "activations", "gradients", "parameters", "update_ratios",
    }  # fmt: skip
    assert found["activations/body.first/zeros"][0][2] == pytest.approx(2 / COUNT)
    assert found["gradients/body.first.weight/norm"][0][2] == pytest.approx(2 * math.sqrt(COUNT))
    assert "gradients/body/norm" in found


def test_what_is_not_finite_has_curves_of_its_own(tmp_path: Path) -> None:
    def loss(step: int) -> float:
        return math.nan if step == 3 else 1.0

    found = exported(watched(tmp_path / "a.h5", range(1, 5), loss=loss, nan_from=3), tmp_path / "tb")
    assert [(step, value) for step, _, value in found["not_finite/activations/body.second"]] == [
        (3, 4),
        (4, 4),
    ]
    assert math.isnan(found["loss"][2][2]) and len(found["loss"]) == 4


def test_many_curves_are_divided_into_events(tmp_path: Path) -> None:
    modules = tuple(f"layers.{number}" for number in range(120))
    found = exported(watched(tmp_path / "a.h5", range(1, 4), modules=modules), tmp_path / "tb")
    assert len(found["update_ratios/layers.119.weight/ratio"]) == 3


def test_runs_and_ranks_get_folders_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in (0, 1):
        watched(tmp_path / f"a.rank{rank}.h5", rank=rank, world=2)
    files = [str(tmp_path / "a.h5"), str(watched(tmp_path / "b.h5"))]
    assert main(["watch", "convert", *files, "--tensorboard", str(tmp_path / "tb")]) == 0
    assert sorted(path.name for path in (tmp_path / "tb").iterdir()) == ["a.rank0", "a.rank1", "b"]
    assert "curves, 20 steps" in capsys.readouterr().err
    assert main(["watch", "convert", files[1], "--tensorboard", str(tmp_path / "tb")]) == 2
    assert "already exists and is not empty" in capsys.readouterr().err


READING = """\
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
found.Reload()
def figures(tag):
    return [(each.step, each.wall_time, each.value) for each in found.Scalars(tag)]
print(json.dumps({tag: figures(tag) for tag in found.Tags()["scalars"]}))
"""


@pytest.mark.long
def test_tensorboard_reads_them(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), "tensorboard"]
    if subprocess.run(install, capture_output=True).returncode:
        pytest.skip("tensorboard can't be installed: there is no package index here")
    ours = exported(watched(tmp_path / "a.h5", nan_from=7), tmp_path / "tb")
    read = subprocess.run(
        [sys.executable, "-c", READING, str(tmp_path / "tb")],
        env={"PYTHONPATH": str(packages), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = {tag: list(map(tuple, found)) for tag, found in json.loads(read.stdout).items()}
    assert theirs == ours
