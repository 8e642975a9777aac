"""What is read from host logs: operators, signatures, compiles, and which of them came after the warm-up."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.perf.oplog.making import FLOAT, HALF, ND, LogWriter, tensor, training
from torchferry import logs as log_reading
from torchferry.errors import InputError
from torchferry.perf.oplog import reading
from torchferry.perf.oplog.model import Basis, LoggedTensor, OpLog
from torchferry.perf.oplog.reading import WarmUp, host_log_of, read_oplog
from torchferry.perf.oplog.report import to_summary

VENDOR, FORMS = host_log_of(None)


def read(*paths: Path, **warm_up: object) -> OpLog:
    return read_oplog(paths, VENDOR, FORMS, WarmUp(**warm_up))  # type: ignore[arg-type]


def recompiled(log: OpLog) -> list[tuple[str, tuple[int, ...]]]:
    return [(entry.operator, entry.signature.shapes[0]) for entry in log.recompiles if entry.signature]


def test_steps_that_repeat_compile_nothing_anew(tmp_path: Path) -> None:
    log = read(training(4).write(tmp_path / "plog-1.log"))
    assert log.recompiles == ()
    assert log.basis is Basis.HALF
    assert (log.calls, log.compiles, log.compile_seconds, log.misses) == (16, 4, 1.0, 4)
    assert {row.type: (row.calls, row.shapes, row.compiles) for row in log.operators} == dict.fromkeys(
        ("TransData", "Conv2D", "MatMul", "Cast"), (4, 1, 1)
    )


def test_changing_shapes_are_compiled_in_every_step(tmp_path: Path) -> None:
    log = read(training(4, changing=True).write(tmp_path / "plog-1.log"))
    assert recompiled(log) == [
        ("MatMul", (10, 64)),
        ("Cast", (10, 10)),
        ("MatMul", (11, 64)),
        ("Cast", (11, 10)),
    ]
    product = next(row for row in log.operators if row.type == "MatMul")
    assert (product.shapes, product.compiles, product.recompiles, product.compile_seconds) == (4, 4, 2, 1.0)
    assert log.recompile_seconds == 1.0


def test_what_a_call_was_given(tmp_path: Path) -> None:
    log = LogWriter()
    log.call(
        "Add",
        [tensor([2, 3], HALF, ND), tensor([], FLOAT)],
        [tensor([2, 3], HALF, ND)],
        "{alpha = 2, x = [1, 2]}",
    )
    (operator,) = read(log.write(tmp_path / "a.log")).operators
    (signature,) = operator.signatures
    assert signature.inputs == (
        LoggedTensor("float16", "ND", "ND", (2, 3)),
        LoggedTensor("float32", "NCHW", "NCHW", ()),
    )
    assert signature.outputs == (LoggedTensor("float16", "ND", "ND", (2, 3)),)
    assert signature.attributes == "{alpha = 2, x = [1, 2]}"
    assert not signature.cut


def test_the_newer_call_is_read_as_the_older(tmp_path: Path) -> None:
    log = LogWriter()
    log.call("Add", [tensor([2])], mark="aclopCompileV2")
    log.lines.append(
        log.header() + "aclopCompileAndExecuteV2: ExecuteAsyncV2::aclOp = OpType: Add, InputDesc[0]: x"
    )
    (operator,) = read(log.write(tmp_path / "a.log")).operators
    assert (operator.type, operator.calls) == ("Add", 1)


def test_conversions_are_told_from_other_operators(tmp_path: Path) -> None:
    log = read(training(3).write(tmp_path / "a.log"))
    assert {row.type: row.calls for row in log.conversions} == {"TransData": 3, "Cast": 3}


def test_the_warm_up_in_seconds_and_as_a_time(tmp_path: Path) -> None:
    file = training(4, changing=True).write(tmp_path / "a.log")
    # the first step takes 1.4 s: four operators and four compiles of a quarter of a second
    assert len(read(file, seconds=1.5).recompiles) == 6
    assert len(read(file, seconds=0.0).recompiles) == 9
    assert len(read(file, after="10:00:01.5").recompiles) == 6
    assert len(read(file, after="2024-05-06-10:00:01").recompiles) == 7
    assert read(file, after="23:00:00").recompiles == ()
    with pytest.raises(InputError, match="not a time; write it as 10:11:12"):
        read(file, after="tomorrow")


def test_the_warm_up_by_shapes(tmp_path: Path) -> None:
    file = training(4, changing=True).write(tmp_path / "a.log")
    assert recompiled(read(file, shapes=4)) == [("MatMul", (11, 64)), ("Cast", (11, 10))]
    other_attributes = LogWriter()
    for number in range(3):
        other_attributes.call("Add", [tensor([number + 1])], attributes=f"{{axis = {number}}}")
        other_attributes.compile("Add")
    assert read(other_attributes.write(tmp_path / "b.log"), shapes=2).recompiles == ()


def test_events_alone_tell_times_but_not_the_warm_up(tmp_path: Path) -> None:
    log = LogWriter()
    for _ in range(3):
        log.compile("MatMul", 500.0, start=False)
    found = read(log.write(tmp_path / "a.log"))
    assert (found.compiles, found.compile_seconds, found.calls) == (3, 1.5, 0)
    assert (found.basis, found.recompiles) == (Basis.UNKNOWN, ())
    assert len(read(tmp_path / "a.log", seconds=0.6).recompiles) == 1


def test_an_old_runtime_does_not_say_how_long(tmp_path: Path) -> None:
    log = LogWriter()
    log.call("Add", [tensor([2])])
    log.lines.append(log.header() + "CompileOp: To compile op: Add")
    found = read(log.write(tmp_path / "a.log"))
    assert (found.compiles, found.compile_seconds) == (1, None)
    assert "no compile times" in found.notes[0].en


def test_processes_do_not_mix(tmp_path: Path) -> None:
    one, two = training(2, process=7), training(2, process=8)
    mixed = LogWriter()
    mixed.lines = [line for pair in zip(one.lines, two.lines, strict=True) for line in pair]
    log = read(mixed.write(tmp_path / "train.out"))
    assert [(process.number, process.calls) for process in log.processes] == [(7, 8), (8, 8)]
    assert log.compiles == 8
    assert all(signature.compiles == 2 for row in log.operators for signature in row.signatures)
    assert log.recompiles == ()


def test_folders_of_logs(tmp_path: Path) -> None:
    lines = training(4).lines
    half = len(lines) // 2
    first, second = LogWriter(), LogWriter()
    first.lines, second.lines = lines[:half], lines[half:]
    # the names sort as text in the wrong order
    second.write(tmp_path / "run/plog/plog-4242_20240506101113000.log")
    older = first.write(tmp_path / "debug/plog/plog-4242_20240506101112000.log")
    packed = older.with_name(older.name + ".gz")
    packed.write_bytes(gzip.compress(older.read_bytes()))
    older.unlink()
    training(4).write(tmp_path / "run/device-0/device-4242_20240506101112000.log")
    (tmp_path / "run/core.bin").write_bytes(b"aclopCompile::aclOp = OpType: Add, \n")
    log = read(tmp_path)
    assert [Path(source).name for source in log.sources] == [packed.name, "plog-4242_20240506101113000.log"]
    assert (log.calls, log.compiles, log.recompiles) == (16, 4, ())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_junk_between_lines(tmp_path: Path, end: str) -> None:
    log = training(4)
    whole = read(log.write(tmp_path / "a.log"))
    log.lines[5:5] = ["\x00\x01", "plain output of the program", "[INFO] torn aclopCompile::aclOp"]
    file = log.write(tmp_path / "b.log", end)
    file.write_bytes(b"\xff\xfe\n" + file.read_bytes() + b"\x80\x81")
    assert read(file).operators == whole.operators


def test_bytes_that_are_no_text_stay_visible(tmp_path: Path) -> None:
    log = LogWriter()
    log.call("Add", [tensor([2])])
    data = log.write(tmp_path / "a.log").read_bytes().replace(b"OpType: Add", b"OpType: \xffAdd")
    (tmp_path / "a.log").write_bytes(data)
    found = read(tmp_path / "a.log")
    assert found.operators[0].type == "\udcffAdd"
    assert to_summary(found).startswith(b"\xffAdd InputDesc[0]")


def test_lines_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = training(4, changing=True).write(tmp_path / "a.log")
    whole = read(file)
    monkeypatch.setattr(log_reading, "BLOCK", 37)
    assert read(file).operators == whole.operators


def test_a_line_without_end_is_not_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reading, "BLOCK", 1 << 12)
    file = tmp_path / "a.log"
    log = LogWriter()
    log.call("Add", [tensor([2])])
    file.write_bytes(b"x" * (3 * reading.LONGEST) + b"\n" + log.write(tmp_path / "b.log").read_bytes())
    assert read(file).calls == 1


def test_a_torn_archive_gives_what_it_has(tmp_path: Path) -> None:
    data = gzip.compress(training(200).write(tmp_path / "a.log").read_bytes(), 1)
    (tmp_path / "b.log.gz").write_bytes(data[: len(data) // 2])
    assert 0 < read(tmp_path / "b.log.gz").calls < 800


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    data = training(2).write(tmp_path / "a.log").read_bytes()
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    shown: list[int] = []
    pipe = Path(f"/dev/fd/{reading}")
    log = read_oplog([pipe], VENDOR, FORMS, show=lambda done, total: shown.append(done))
    os.close(reading)
    assert (log.calls, set(shown)) == (8, {0})


def test_numbers_without_end(tmp_path: Path) -> None:
    log = LogWriter()
    log.call("Add", [tensor([2])])
    log.compile("Add", 1.0)
    digits = "9" * 5000
    text = "\n".join(log.lines).replace("[2]", f"[{digits}]").replace("1.000000 milli", f"{digits} milli")
    (tmp_path / "a.log").write_text(text.replace("(4242,", f"({digits[:300]},"))
    found = read(tmp_path / "a.log")
    assert (found.processes[0].number, found.compiles, found.compile_seconds) == (0, 1, 0.0)


def test_cut_lines_are_said_to_be(tmp_path: Path) -> None:
    log = LogWriter()
    log.call("ConcatD", [tensor([number, 3]) for number in range(10)])
    log.lines[-1] = log.lines[-1][:1023]
    found = read(log.write(tmp_path / "a.log"))
    assert found.operators[0].signatures[0].cut
    assert "1 signatures were longer than a log line (1024 characters)" in found.notes[0].en


def test_too_many_signatures_are_counted_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_SIGNATURES", 3)
    log = LogWriter()
    for size in (1, 2, 3, 4, 5, 1):
        log.call("Add", [tensor([size])])
    (operator,) = (found := read(log.write(tmp_path / "a.log"))).operators
    assert (operator.calls, operator.uncounted, len(operator.signatures)) == (6, 2, 3)
    assert "2 calls" in found.notes[-1].en


def test_the_summary_of_the_guide(tmp_path: Path) -> None:
    log = LogWriter()
    for _ in range(2):
        log.call("Cast", [tensor([2], HALF)], [tensor([2])], "{dst_type = 0}")
    log.call("Relu", [tensor([2])], attributes="")
    log.call("Skipped", [tensor([2])])
    log.lines[-1] = "rank0: " + log.lines[-1]  # the guide's script takes only lines that begin as in the log
    lines = to_summary(read(log.write(tmp_path / "a.log"))).decode().splitlines()
    assert lines == [
        f"Cast InputDesc[0]: {tensor([2], HALF)} OutputDesc[0]: {tensor([2])} Attr: {{dst_type = 0",
        f"Relu InputDesc[0]: {tensor([2])}",
    ]


def test_a_log_without_operators_says_which_level_is_needed(tmp_path: Path) -> None:
    log = LogWriter()
    log.other("ERROR")
    with pytest.raises(
        InputError, match=r"no line about operators in 1 files.*export ASCEND_GLOBAL_LOG_LEVEL=1"
    ):
        read(log.write(tmp_path / "a.log"))


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        read(tmp_path / "none")
    with pytest.raises(InputError, match="no log there"):
        read(tmp_path)


def test_files_that_cant_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training(2).write(tmp_path / "a.log")
    refused = training(2).write(tmp_path / "b.log")
    real = reading.hits

    def hits(file: Path, *rest: object) -> object:
        if file == refused:
            raise PermissionError(13, "Permission denied", str(file))
        return real(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("torchferry.perf.oplog.reading.hits", hits)
    log = read(tmp_path)
    assert (log.calls, log.unread) == (8, {str(refused): "Permission denied"})
    with pytest.raises(InputError, match=r"can't be read: Permission denied; 1 unreadable in total"):
        read(refused)


def test_vendors_whose_logs_are_not_known() -> None:
    with pytest.raises(InputError, match="host logs of intel"):
        host_log_of("intel")
