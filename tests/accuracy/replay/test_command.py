"""`ferry replay`: the operators of a record once more, on another device, in a process of its own."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch

from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record.recorder import Recorder
from torchferry.cli.main import main


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small program, with an operator that draws and one that writes to its argument."""
    path = tmp_path_factory.mktemp("golden") / "gpu.h5"
    recorder = Recorder(path, RecordHeader(Kept.TENSORS, "train.py", "cpu", torch.__version__))
    recorder.start()
    source = torch.rand(4, 5)
    (source @ torch.ones(5, 3)).relu_().sum()
    recorder.stop()
    return path


def test_on_a_simulated_device(golden: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "npu.h5"
    assert main(["replay", str(golden), "--to", "ascend", "--sim", "-o", str(output)]) == 0
    said = capfd.readouterr().err
    assert f"next: ferry compare {output} {golden}" in said
    with open_record(output) as mine, open_record(golden) as theirs:
        header = mine.header
        assert (header.device, header.vendor, header.simulated) == ("npu", "ascend", True)
        assert header.replayed == str(golden)
        assert [(call.number, call.operator) for call in mine.calls] == [
            (call.number, call.operator) for call in theirs.calls
        ]
        for one, other in zip(mine.calls, theirs.calls, strict=True):
            if one.operator != "aten::rand":
                assert all(
                    torch.equal(mine.tensor(a), theirs.tensor(b))
                    for a, b in zip(one.outputs, other.outputs, strict=True)
                )


def test_on_the_cpu_random_operators_draw_the_same(golden: Path, tmp_path: Path) -> None:
    output = tmp_path / "cpu.h5"
    assert (
        main(
            ["replay", str(golden), "--device", "cpu", "-o", str(output), "-q", "--op", "rand", "--op", "mm"]
        )
        == 0
    )
    with open_record(output) as mine, open_record(golden) as theirs:
        names = [call.operator for call in mine.calls]
        assert names == ["aten::rand", "aten::mm"]
        assert torch.equal(mine.tensor(mine.calls[0].outputs[0]), theirs.tensor(theirs.calls[0].outputs[0]))
        assert mine.header.selected == "operators rand, mm"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "on which device?"),
        (["--to", "ascend", "--device", "cpu"], "on which device?"),
        (["--device", "cpu", "--sim"], "--sim needs a device"),
        (["--device", "cpu", "--op", "nothing"], "has no call that"),
        (["--device", "tpu"], "tpu: not a device that can be used here"),
        (["--device", "cpu", "-o", "{golden}"], "replayed and overwritten at once"),
        (["--device", "cpu", "-o", "nowhere/x.h5"], "can't be written there"),
    ],
)
def test_what_is_refused(
    options: list[str], said: str, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    filled = [option.format(golden=golden) for option in options]
    assert main(["replay", str(golden), *filled]) == 2
    assert said in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_operators_that_the_device_lacks_are_listed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In the words of the device; the others are replayed."""
    path, output = tmp_path / "gpu.h5", tmp_path / "meta.h5"
    recorder = Recorder(path, RecordHeader(Kept.TENSORS, "train.py", "cpu", torch.__version__))
    recorder.start()
    source = torch.ones(4, 5)
    (source * 2)[source > 0].sum()
    recorder.stop()
    assert main(["replay", str(path), "--device", "meta", "-o", str(output)]) == 3
    said = capfd.readouterr().err
    assert "failed" in said and "ferry replay: call " in said


def test_a_record_that_is_damaged_or_empty(
    golden: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damaged, empty, output = (tmp_path / name for name in ("damaged.h5", "empty.h5", "new.h5"))
    data = golden.read_bytes()
    assert data.count(b'"aten::sum') == 1
    damaged.write_bytes(data.replace(b'"aten::sum', b"\0aten::sum"))
    Recorder(empty, RecordHeader(Kept.TENSORS, "train.py", "cpu", torch.__version__)).stop()
    said = []
    for record in (damaged, empty):
        assert main(["replay", str(record), "--device", "cpu", "-o", str(output)]) == 2
        said.append(capfd.readouterr().err)
    assert [each.count("\n") for each in said] == [1, 1]
    assert (
        "damaged.h5: damaged: call 5" in said[0]
        and "empty.h5: an empty recording, nothing to replay" in said[1]
    )
    assert not output.exists()


def test_a_disk_that_is_full(golden: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, limits[1]))
    try:
        code = main(["replay", str(golden), "--device", "cpu", "-o", str(tmp_path / "new.h5")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert code == 2 and "new.h5: can't be written: File too large" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
