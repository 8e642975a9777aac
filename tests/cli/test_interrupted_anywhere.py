"""Ctrl-C and SIGTERM at random moments of every long command: it ends with 130 or 143, silently, and takes its processes
with it. `python -m tests.cli.test_interrupted_anywhere` measures how long that takes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from .commands import command, environment, is_at_work, make, many_files, names

TRAINING = """\
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    model(torch.ones(8, 64, device=device)).sum().backward()
    optimizer.step()
"""
MOST_SECONDS = 6.0  # of a command that would not end by itself
HANGS = 60.0  # seconds: many times as long as a busy machine needs
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ROOT = Path(__file__).parents[2]
MOMENTS = int(os.environ.get("MOMENTS", "50"))


@dataclass(frozen=True)
class Long:
    """A command that takes a while."""

    arguments: str
    prepare: Callable[[Path], object] = lambda folder: None
    leaves: frozenset[str] = field(default_factory=frozenset)  # what may be there afterwards, whole


def _project(folder: Path) -> None:
    many_files(folder / "project", folders=4)
    for number in range(8):  # together large enough for several processes
        lines = "import torch\n" + "x = torch.zeros(1).cuda()\n" * 1500 + "# nothing to see here\n" * 20_000
        (folder / "project" / f"module{number}.py").write_text(lines)


def _program(folder: Path) -> None:
    make(folder, train=TRAINING)


def _log(folder: Path) -> None:
    line = "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered {}\n"
    (folder / "train.log").write_text("".join(map(line.format, range(150_000))))


def _trace(folder: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "dur": 2}
    events = [{**event, "ts": number * 3} for number in range(300_000)]
    (folder / "trace.json").write_text(json.dumps({"traceEvents": events}))


def _oplog(folder: Path) -> None:
    logs = sorted((ROOT / "examples" / "logs" / "plog").rglob("*.log"))
    text = "".join(log.read_text("utf-8") for log in logs)
    (folder / "plog.log").write_text(text * (40_000_000 // len(text)), "utf-8")


def _record(folder: Path) -> None:
    """Two steps of a convolutional net: to judge them takes seconds."""
    model = "torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(25600, 4))"
    text = TRAINING.replace("torch.ones(8, 64, device=device)", "torch.ones(32, 3, 26, 26, device=device)")
    first = text.index("torch.nn.Sequential")
    make(folder, train=text[:first] + model + text[text.index(".to(device)") :])
    record = command("ferry", "record", "--steps", "2", "--device=cpu", "-o", "a.h5", "train.py")
    subprocess.run(record, cwd=folder, env=environment(), check=True, capture_output=True)


def _checkpoint(folder: Path) -> None:
    code = "import torch; torch.save({f'w{n}': torch.ones(1024, 1024) for n in range(100)}, 'big.pth')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


LONG = {
    "scan": Long("scan project --to ascend -j 2", _project),
    "convert": Long("convert project --to ascend -o out -j 2", _project, frozenset({"out"})),
    "gpu2mlu": Long("-i project", _project, frozenset({"project_mlu"})),
    "explain": Long("explain train.log", _log),
    "analyze": Long("analyze trace.json", _trace),
    "oplog": Long("oplog plog.log", _oplog),
    "doctor": Long("doctor --to ascend"),
    "run": Long("run --sim --to ascend train.py", _program),
    "run_2": Long("run --sim --to ascend --nproc 2 train.py", _program),
    "prove": Long("prove --to ascend -o proof -- train.py", _program, frozenset({"proof"})),
    "ops": Long("ops --to ascend --steps 100000 train.py", _program),
    "record": Long("record --stats --steps 100000 -o r.h5 train.py", _program, frozenset({"r.h5"})),
    "watch": Long("watch --every 5 -o w.h5 train.py", _program, frozenset({"w.h5"})),
    "overflow": Long("overflow train.py", _program),
    "profile": Long("profile --steps 100000:100002 -o prof train.py", _program, frozenset({"prof"})),
    "export": Long(
        "export --model torch.nn:Linear --input 1x3 -o m.onnx missing.pth",
        lambda folder: (folder / "missing.pth").write_bytes(b"x"),
    ),
    "compare": Long("compare a.h5", _record),
    "replay": Long("replay a.h5 --to ascend --sim -o b.h5", _record, frozenset({"b.h5"})),
    "checkpoint": Long("checkpoint fix big.pth -o c.pth --dtype float16", _checkpoint, frozenset({"c.pth"})),
    "zoo": Long("zoo new PyTorch/contrib/Classification/X --from project", _project, frozenset({"PyTorch"})),
    "case": Long("case aten::huber_loss --to ascend --sim -o c.py", leaves=frozenset({"c.py", "c.pt"})),
}
QUICK = ("scan", "convert", "explain")


@pytest.mark.parametrize("name", QUICK)
def test_the_quick_ones(name: str, tmp_path: Path) -> None:
    interrupt_often(name, tmp_path, moments=2)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(LONG))
def test_every_long_command(name: str, tmp_path: Path) -> None:
    interrupt_often(name, tmp_path, MOMENTS)


def interrupt_often(name: str, folder: Path, moments: int) -> list[float]:
    """The seconds from the signal to the end, each time."""
    long = LONG[name]
    long.prepare(folder)
    before = set(names(folder))
    whole = uninterrupted_seconds(name, folder)
    remove(folder, before)
    chosen = random.Random(0)
    found = []
    for moment in range(moments):
        number = SIGNALS[moment % 2]
        found.append(interrupt(name, folder, chosen.uniform(0, whole), number))
        left = set(names(folder)) - before - long.leaves
        assert not left, f"{name}: left behind after {found[-1]:.2f} s: {sorted(left)}"
        remove(folder, before)
    return found


def uninterrupted_seconds(name: str, folder: Path) -> float:
    """From the first line of the command's own on."""
    process = start(name, folder)
    wait_until_own(process)
    began = time.monotonic()
    try:
        process.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        end_session(process)
    process.communicate()
    return min(time.monotonic() - began, MOST_SECONDS)


def interrupt(name: str, folder: Path, after: float, number: signal.Signals) -> float:
    """Interrupt it after so many seconds; a Ctrl-C goes to all of its processes, as from a terminal."""
    process = start(name, folder)
    wait_until_own(process)
    time.sleep(after)
    if process.poll() is not None:
        process.communicate()
        return 0.0
    began = time.monotonic()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        end_session(process)
        pytest.fail(f"{name}: hangs {after:.3f} s after its start")
    taken = time.monotonic() - began
    said = f"{name}, {number.name} after {after:.3f} s: {process.returncode}\n{errors}"
    assert process.returncode in (128 + number, -number, 0, 1, 2), said  # the last three: it was ready before
    assert "Traceback" not in errors or name in _PROGRAMS, said
    assert not list(session(process.pid)), said
    return taken


# The last words of an interrupted program are a traceback, as they are without us.
_PROGRAMS = ("run", "run_2", "watch", "ops", "record", "overflow", "profile", "prove")


def start(name: str, folder: Path) -> subprocess.Popen[str]:
    program = "torch_gpu2mlu" if name == "gpu2mlu" else "ferry"
    return subprocess.Popen(
        command(program, *LONG[name].arguments.split()),
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_until_own(process: subprocess.Popen[str]) -> None:
    """Until Python has started: what happens before is not ours."""
    while process.poll() is None and not is_at_work(process):
        time.sleep(0.002)


def session(leader: int) -> Iterator[int]:
    """The living processes of a session, after a moment for those that have been killed to vanish."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        found = list(_members(leader))
        if not found:
            return
        time.sleep(0.05)
    yield from found


def _members(leader: int) -> Iterator[int]:
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = status.read_text("utf-8", "replace").partition(" (")
        except OSError:
            continue
        fields = rest.rpartition(") ")[2].split()
        if int(fields[3]) == leader and fields[0] != "Z":
            yield int(number)


def end_session(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        for member in _members(process.pid):
            os.kill(member, signal.SIGKILL)


def remove(folder: Path, kept: set[str]) -> None:
    for name in set(names(folder)) - kept:
        subprocess.run(["rm", "-rf", str(folder / name)], check=True)


def main() -> None:
    for name in sys.argv[1:] or sorted(LONG):
        with TemporaryDirectory() as folder:
            taken = sorted(interrupt_often(name, Path(folder), MOMENTS))
        print(
            f"{name:10} {len(taken)} times: median {taken[len(taken) // 2]:.2f} s, longest {taken[-1]:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
