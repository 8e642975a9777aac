"""What is read out of a log: the cause before its consequences, whatever the log looks like."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
from pathlib import Path

import pytest

from tests.explanation.explaining import all_rules, cause, explained, ids
from torchferry import logs as log_reading
from torchferry.explanation.explaining import explain_logs
from torchferry.explanation.model import Explanation, Log
from torchferry.explanation.report import clock, page_of
from torchferry.explanation.scanning import MOST_FORMS, MOST_TRACEBACKS, WHOLE, Findings, Repetitions, Scanner
from torchferry.report.formats import Options
from torchferry.vendors.error_patterns import Effect

OOM = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB"
STEPS = "".join(f"step {number} loss 0.{number}\n" for number in range(20_000))


def raised(exception: str, file: str = "train.py", line: int = 7) -> str:
    return f'Traceback (most recent call last):\n  File "{file}", line {line}, in main\n    work()\n{exception}\n'


def explained_file(file: Path, data: bytes) -> Explanation:
    file.write_bytes(data)
    return explain_logs([file], all_rules())


def test_no_error() -> None:
    assert explained(STEPS).cause is None
    assert explained("").cause is None


def test_an_unknown_error_is_shown_with_the_users_line() -> None:
    text = "step 1\n" + (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n    train()\n'
        '  File "/usr/lib/python3.11/site-packages/lib/engine.py", line 700, in train\n    call()\n'
        "lib.BadThing: spoon\n"
    )
    found = explained(text).cause
    assert found is not None and found.frame is not None
    assert (found.id, found.text, found.line) == ("", "lib.BadThing: spoon", 7)
    assert (found.frame.file, found.frame.line) == ("/home/me/train.py", 9)


def test_the_first_unknown_error_counts_not_the_last() -> None:
    text = (
        raised("ValueError: first")
        + "step 3\n"
        + raised("TypeError: second", line=8)
        + raised("KeyError: 'third'", line=9)
    )
    assert [finding.text for finding in explained(text).ordered] == [
        "ValueError: first",
        "TypeError: second",
        "KeyError: 'third'",
    ]


def test_the_root_of_a_chain_of_exceptions() -> None:
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert ids(raised(OOM) + link + raised("RuntimeError: training failed", line=30))[0] == "ascend.oom"
    unknown = explained(raised("ValueError: root") + link + raised("RuntimeError: wrapped", line=30)).cause
    assert unknown is not None and unknown.text == "ValueError: root"


def test_a_known_error_in_the_chain_is_the_cause() -> None:
    link = "\nThe above exception was the direct cause of the following exception:\n\n"
    assert cause(raised("KeyError: 'cache'") + link + raised(OOM, line=30)) == "ascend.oom"


def test_a_consequence_that_is_logged_first_is_no_cause() -> None:
    late = "[ERROR] ASCENDCL(1,python): aclrtSynchronizeStream: synchronize stream failed\n"
    assert ids(late + OOM + "\n") == ["ascend.oom", "ascend.stream-sync"]


def test_an_error_that_the_program_survived_is_not_the_cause() -> None:
    text = raised("ValueError: skipped sample") + STEPS + raised(OOM)
    assert cause(text) == "ascend.oom"
    assert ids(text) == ["ascend.oom", ""]


def test_repeated_errors_are_counted_once_each() -> None:
    found = explained(f"{OOM}\n" * 500 + "EZ9999: Inner Error!\n").ordered
    assert [(finding.id, finding.count) for finding in found] == [
        ("ascend.oom", 500),
        ("ascend.inner-error", 1),
    ]


def test_codes_that_differ_only_in_their_numbers() -> None:
    text = "".join(
        f"RuntimeError: acl call, error code is {code}\n" for code in ("0", "507010", "507015", "507010")
    )
    found = {finding.groups.get("code"): finding.count for finding in explained(text).ordered}
    assert found == {"507015": 1, "507010": 2, None: 1}


def test_processes_that_write_at_once() -> None:
    one, other = (
        raised("ValueError: bad label", "data.py").splitlines(),
        raised("RuntimeError: Socket Timeout").splitlines(),
    )
    mixed = "".join(f"[rank3]: {mine}\n[rank0]: {theirs}\n" for mine, theirs in zip(one, other, strict=True))
    found = explained(mixed)
    assert [(failure.rank, failure.finding.text) for failure in found.failures] == [
        (3, "ValueError: bad label"),
        (0, "RuntimeError: Socket Timeout"),
    ]
    assert found.cause is not None and found.cause.frame is not None and found.cause.frame.file == "data.py"
    assert found.cause.before == (
        "Traceback (most recent call last):",
        '  File "data.py", line 7, in main',
        "    work()",
    )


def test_the_rank_that_failed_first_by_time(tmp_path: Path) -> None:
    for rank, second in ((0, 40), (1, 12), (2, 30)):
        (tmp_path / f"rank_{rank}.log").write_text(
            f"2024-05-06 10:11:{second},123 - INFO - step\n" + raised(OOM)
        )
    found = explain_logs([tmp_path], all_rules())
    assert [failure.rank for failure in found.failures] == [1, 2, 0]
    assert found.cause is not None and found.cause.rank == 1


def test_torchruns_folder_and_its_summary(tmp_path: Path) -> None:
    for rank, text in ((0, "RuntimeError: Socket Timeout\n"), (1, raised("ValueError: bad label"))):
        folder = tmp_path / "none_x1" / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(text)
    (tmp_path / "launcher.log").write_text(
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\nRoot Cause (first observed failure):\n[0]:\n"
        "  time      : 2024-05-06_10:11:12\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 45)\n"
    )
    found = explain_logs([tmp_path], all_rules())
    launched = [log.launched for log in found.logs if log.launched]
    assert [(each.rank, each.exit_code) for each in launched] == [(1, -9)]
    assert [failure.rank for failure in found.failures] == [1, 0]


@pytest.mark.parametrize(
    "moment",
    [
        "2024-05-06-10:11:12.345.678",
        "2024-05-06T10:11:12.345678",
        "2024-05-06 10:11:12,345",
        "[E506 10:11:12.345678 x.cpp:1]",
    ],
)
def test_times(moment: str, tmp_path: Path) -> None:
    found = explained_file(tmp_path / "a.log", f"{moment} {OOM}\n".encode()).cause
    assert found is not None and found.time is not None
    assert found.time % 60 == pytest.approx(12.345, abs=0.001)


@pytest.mark.parametrize(
    "known",
    [
        "2023-11-03 09:00:00 start\n{glog}",
        "{glog}Root Cause (first observed failure):\n[0]:\n  time      : 2023-11-03_10:11:30\n  rank      : 1 (local_rank: 1)\n",
    ],
)
def test_a_time_without_its_year_is_of_the_year_that_the_log_names(known: str, tmp_path: Path) -> None:
    glog = f"[E1103 10:11:12.345678 x.cpp:1] {OOM}\n"
    found = explained_file(tmp_path / "a.log", known.format(glog=glog).encode()).cause
    assert (
        found is not None and found.time is not None and clock(found.time).startswith("2023-11-03 10:11:12")
    )


def test_a_time_without_its_year_behind_new_year(tmp_path: Path) -> None:
    log = f"2023-12-31 23:59:00 start\n[E0101 00:00:12.345678 x.cpp:1] {OOM}\n".encode()
    found = explained_file(tmp_path / "a.log", log).cause
    assert found is not None and found.time is not None and clock(found.time).startswith("2024-01-01")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("site-packages/torch_npu/__init__.py", "in a library: site-packages/torch_npu/__init__.py:3"),
        ("/usr/lib64/python3.9/socket.py", "in a library: /usr/lib64/python3.9/socket.py:3"),
        ("src/train.py", "in the program: src/train.py:3"),
    ],
)
def test_a_library_is_not_called_the_program(file: str, said: str) -> None:
    text = f'Traceback (most recent call last):\n  File "{file}", line 3, in f\n    g()\nKeyError: 3\n'
    lines = [line.en for line, _ in page_of(explained(text), Options()).verdicts]
    assert any(line.startswith(said) for line in lines)
    assert any("check src/train.py:3" in line for line in lines) == (file == "src/train.py")


def test_what_logs_look_like(tmp_path: Path) -> None:
    plain = raised(OOM).encode()
    bar = b"".join(b" %d%%|#### | %d/100\r" % (number, number) for number in range(100))
    forms = {
        "carriage returns": plain.replace(b"\n", b"\r\n"),
        "colours": plain.replace(b"RuntimeError", b"\x1b[31;1mRuntimeError\x1b[0m"),
        "progress bar": bar + b"\n" + plain + bar,
        "error behind a bar": bar + plain.splitlines()[-1],
        "not UTF-8": b"\xff\xfe caf\xe9\n" + plain,
        "no line end": plain.rstrip(),
    }
    for name, data in forms.items():
        found = explained_file(tmp_path / "a.log", data).cause
        assert found is not None and found.id == "ascend.oom", name
        assert "\x1b" not in found.text and "\r" not in found.text, name
    packed = explained_file(tmp_path / "a.log.gz", gzip.compress(STEPS.encode() + plain)).cause
    assert packed is not None and packed.line == 20_004


def test_a_line_without_end_is_read_in_pieces(tmp_path: Path) -> None:
    data = b"x" * 3_000_000 + b" RuntimeError: NPU out of memory " + b"y" * 3_000_000
    found = explained_file(tmp_path / "a.log", data).cause
    assert found is not None and found.id == "ascend.oom"
    assert len(found.text) < 10_000


def test_a_word_at_the_end_is_found_without_any_of_the_triggers() -> None:
    assert cause(STEPS + "Killed\n") == "any.killed"


@pytest.mark.parametrize("size", [37, 1000, 4096, WHOLE, 1 << 19])
def test_blocks_of_any_size_give_the_same(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = random.Random(5)
    errors = [
        raised(OOM),
        "EZ9999: Inner Error!\n",
        "Warning: x\n",
        raised("ValueError: y", line=3),
        "ERROR odd\n",
    ]
    middle = "".join(
        chosen.choice(errors) if chosen.random() < 0.01 else f"step {n}\n" for n in range(30_000)
    )
    data = (middle + raised("TypeError: end")).encode()
    monkeypatch.setattr(log_reading, "BLOCK", 1 << 20)
    whole = explained_file(tmp_path / "a.log", data)
    monkeypatch.setattr(log_reading, "BLOCK", size)
    found = explained_file(tmp_path / "a.log", data if size > 100 else data[:2_000])
    if size > 100:
        assert [(each.id, each.line, each.count) for each in found.ordered] == [
            (each.id, each.line, each.count) for each in whole.ordered
        ]
        assert found.logs[0].lines == data.count(b"\n")


def test_only_lines_that_may_be_errors_are_looked_at() -> None:
    scanner = Scanner(Repetitions(all_rules(), Findings(Log(""))))
    quiet, loud = b"step of a run\n" * 50_000, b"an error here\n"
    given = list(scanner.interesting([quiet, loud, quiet]))
    around = 2 * (WHOLE // 14 + 2)
    assert len(given) < around + 5
    assert [raw.number for raw in given if raw.line == b"an error here"] == [50_001]
    assert scanner.lines == 100_001


def test_effects_are_told_apart() -> None:
    text = "Warning: CAUTION: The operator 'aten::sort' is not currently supported on the NPU backend and will fall back to run on the CPU\n"
    assert [finding.effect for finding in explained(text).ordered] == [Effect.NOTICE]
    assert explained(text).cause is None


def test_a_flood_of_one_error_is_counted_line_by_line() -> None:
    """Lines that are alike are skipped in one go; those of other processes and other messages are not among them."""
    flood = "".join(f"[rank3]: {OOM} at 0x{number:x}\n" for number in range(1000))
    text = flood + f"[rank1]: {OOM} at 0x1\n" + "[rank3]: EZ9999: Inner Error!\n" + flood
    found = {(each.id, each.rank): (each.count, each.line) for each in explained(text).ordered}
    assert found[("ascend.oom", 3)] == (2000, 1)
    assert found[("ascend.oom", 1)] == (1, 1001)
    assert found[("ascend.inner-error", 3)] == (1, 1002)
    assert explained(text).logs[0].lines == 2002


def test_a_known_error_has_room_behind_many_unknown_ones() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    many = "".join(f"ValueError: {first}{second}\n" for first in letters for second in letters)
    assert "ascend.oom" in ids(many + OOM + "\n")


def test_packed_logs_and_what_is_none(tmp_path: Path) -> None:
    plain = (STEPS + raised(OOM)).encode()
    packed = {
        "a.log.xz": lzma.compress(plain),
        "a.log.bz2": bz2.compress(plain),
        "a.log": plain.decode().encode("utf-16"),
    }
    for name, data in packed.items():
        found = explained_file(tmp_path / name, data).cause
        assert found is not None and found.id == "ascend.oom", name
    whole = gzip.compress(plain)
    torn = explained_file(tmp_path / "torn.log.gz", whole[: len(whole) // 2])
    assert torn.cause is None and "ended before" in torn.logs[0].damage
    binary = explained_file(tmp_path / "core.log", bytes(range(256)) * 40)
    assert "binary" in binary.unread[str(tmp_path / "core.log")]


def test_a_pipe_in_a_folder_is_not_waited_for_and_a_log_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"{OOM}\n")
    (tmp_path / "latest.log").symlink_to("a.log")
    os.mkfifo(tmp_path / "pipe.log")
    found = explain_logs([tmp_path], all_rules())
    assert len(found.logs) == 1 and list(found.unread) == [str(tmp_path / "pipe.log")]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("2024-05-06 10:11:12 x", "step", "have no times"),
        ("2024-05-06T10:11:12Z x", "2024-05-06 10:11:12 x", "include the time zone"),
        ("2024-05-06 10:11:12 x", "2024-05-06 10:11:14 x", "rank 0 failed first"),
        ("2024-05-06T10:11:12+08:00 x", "2024-05-06T02:11:11Z x", "rank 1 failed first"),
        ("2024-05-06 10:11:12.1 x", "2024-05-06 10:11:12.2 x", "clocks of different machines may differ"),
    ],
)
def test_what_is_said_of_the_order(first: str, second: str, said: str, tmp_path: Path) -> None:
    for rank, line in enumerate((first, second)):
        (tmp_path / f"rank_{rank}.log").write_text(f"{line}\n{raised(OOM)}")
    page = page_of(explain_logs([tmp_path], all_rules()), Options())
    assert said in "\n".join(text.en for text in (*(line for line, _ in page.verdicts), *page.notes))


def crowd(lines: list[str]) -> str:
    """Lines in the middle of a log, behind its beginning and before its end."""
    return STEPS + "".join(lines) + STEPS * 3


def test_lines_that_repeat_in_crowds_are_counted() -> None:
    """Whatever numbers and addresses they have, in turn with others, of several processes."""
    forms = (
        "ERROR: batch {n} failed at 0x{n:x}\n",
        "[rank{r}]: RuntimeError: CUDA out of memory. Tried to allocate {n} MiB\n",
        "step {n} loss 0.1\n",
        "data - WARNING - picture {n} could not be read, skipped\n",
    )
    lines = [form.format(n=number, r=number % 2) for number in range(4_000) for form in forms]
    found = explained(crowd(lines))
    assert sorted((each.id, each.rank, each.count) for each in found.ordered if each.rank is not None) == [
        ("any.cuda-oom", 0, 2_000),
        ("any.cuda-oom", 1, 2_000),
    ]
    assert [each.count for each in found.ordered if each.pattern is None] == [4_000]
    assert found.logs[0].lines == crowd(lines).count("\n")


def test_behind_thousands_of_different_errors_lines_are_only_counted() -> None:
    words = ["".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(MOST_FORMS + 500)]
    lines = [f"ERROR: picture {word} is broken\n" for word in words]
    found = explained(crowd([OOM + "\n", *lines, raised(OOM.replace("NPU", "MLU"))]))
    log = found.logs[0]
    assert {each.id for each in found.ordered if each.pattern} == {"ascend.oom", "cambricon.oom"}
    assert 0 < log.only_counted <= 500
    assert "only counted" in "".join(note.en for note in page_of(found, Options()).notes)


def test_behind_a_thousand_tracebacks_they_are_only_counted() -> None:
    tracebacks = [raised(f"ValueError: picture {n}") for n in range(MOST_TRACEBACKS + 500)]
    found = explained(crowd(tracebacks) + raised(OOM))
    assert found.cause is not None and found.cause.id == "ascend.oom"
    assert [(each.text, each.count) for each in found.ordered if each.pattern is None] == [
        ("ValueError: picture 0", MOST_TRACEBACKS)
    ]
    assert found.logs[0].only_counted == 500
