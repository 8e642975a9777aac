"""How large a record may become: by its user's limit, and by what the disk has to spare."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest

from tests.accuracy.file.making import HEADER, addition
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter

GIB = 1 << 30


def written(path: Path, most: int | None = None, count: int = 400) -> RecordWriter:
    """A record of so many additions, as far as there is room."""
    writer = RecordWriter(path, HEADER, most)
    for number in range(1, count + 1):
        writer.write(addition(writer, number))
    writer.close()
    return writer


@pytest.mark.parametrize("most", [20_000, 100_000, 300_000])
def test_a_limit(tmp_path: Path, most: int, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpu.h5"
    writer = written(path, most)
    assert writer.failed.startswith("limit reached: ")
    assert "recording stops here, the program continues" in capsys.readouterr().err
    assert 0.6 * most < path.stat().st_size <= most
    with open_record(path) as record, h5py.File(path) as file:
        assert record.calls[-1].number == len(record.calls) == len(file["add_Scalar"])
        assert record.tensor(record.calls[-1].outputs[0])[0, 0] == len(record.calls) + 1
        assert not record.header.complete


def test_what_fits_is_whole(tmp_path: Path) -> None:
    writer = written(tmp_path / "gpu.h5", 10_000_000)
    assert not writer.failed
    with open_record(tmp_path / "gpu.h5") as record:
        assert len(record.calls) == 400 and record.header.complete


@pytest.mark.parametrize(
    ("free", "kept_free"),
    [(100 * GIB, 1 * GIB), (4 * GIB, GIB // 5)],
    ids=["a gibibyte stays free", "on a small disk a twentieth"],
)
def test_some_of_the_disk_stays_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, kept_free: int
) -> None:
    now = SimpleNamespace(f_bavail=free, f_frsize=1, f_blocks=free)
    monkeypatch.setattr(os, "fstatvfs", lambda _: now)
    writer = RecordWriter(tmp_path / "gpu.h5", HEADER)
    assert writer.most == pytest.approx(free - kept_free, abs=10_000)
    writer.write(addition(writer, 1))
    now.f_bavail = kept_free + 1000  # others have filled it
    writer._file._room.sure = 0  # it is time to look again
    writer.write(addition(writer, 2))
    writer.close()
    assert writer.failed.startswith("disk nearly full: ")
    with open_record(tmp_path / "gpu.h5") as record:
        assert len(record.calls) == 1


def test_records_of_statistics_have_a_limit_too(tmp_path: Path) -> None:
    writer = StatisticsWriter(tmp_path / "gpu.h5", HEADER, 1 << 20)
    for _ in range(100_000):
        writer.row()
    writer.close()
    assert writer.failed.startswith("limit reached: ") and (tmp_path / "gpu.h5").stat().st_size <= 1 << 20
