"""How fast `ferry explain` reads logs, beside `wc -l`, and what memory that takes: `python benchmarks/explain.py`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

MEGABYTE = 1 << 20
SIZE = 1024 * MEGABYTE
ROUNDS = 3
EPOCH = "Epoch: [{e}][{n}/5004]\tTime  0.312 ( 0.330)\tData  0.004 ( 0.010)\tLoss {n}e-04 (3.4401e+00)\tAcc@1  31.25 ( 30.12)\n"
RUNTIME = (
    "[INFO] RUNTIME(4242,python3):2024-05-06-10:{m:02}:{s:02}.345.007 [api_impl.cc:746]4242 KernelLaunch: device_id=0, "
    "stream_id=3, task_id={n}, kernel_name=te_conv2d_91b8, block_dim=32, args_size=56.\n"
)
WARNING = "2024-05-06 10:{m:02}:{s:02},123 - data - WARNING - image {n} could not be decoded, skipped\n"
ERROR = (
    "[ERROR] RUNTIME(4242,python3):2024-05-06-10:{m:02}:{s:02}.345.007 [npu_driver.cc:1408]4242 MemCopySync:drvMemcpy failed: "
    "dst=0x{n:x}, destMax=1240, size=1240, kind=1, drvRetCode=17!\n"
)
DIFFERENT = "2024-05-06 10:{m:02}:{s:02},123 - data - ERROR - /data/{word}.jpg: the picture of {word} is broken, error in {word}\n"
CRASH = (
    'Traceback (most recent call last):\n  File "train.py", line 42, in <module>\n    loss.backward()\n'
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n"
)
LETTERS = str.maketrans("0123456789", "ghijklmnop")  # lines that differ only in numbers would be of one sort
_RUN = (
    "import resource, sys, time\n"
    "from torchferry.cli.main import main\n"
    "start = time.perf_counter()\n"
    "main(['explain', sys.argv[1], '--format', 'json', '-q'])\n"
    "print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
)


def main() -> None:
    """Logs of a training, of a runtime, with a warning in every tenth line, and of errors, alike or not; each ends in a crash."""
    print(
        f"{date.today()}, {os.cpu_count()} processors, logs of {SIZE // MEGABYTE} MiB in the page cache; wall time"
    )
    print("log                        MB/s   wc -l MB/s   of wc -l   memory MiB")
    logs = {
        "training": [EPOCH],
        "runtime, level INFO": [RUNTIME],
        "one warning in ten": [EPOCH] * 9 + [WARNING],
        "errors of one sort": [ERROR],
        "all errors different": [DIFFERENT],
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.log"
        for name, forms in logs.items():
            write_log(file, forms)
            compare(name, file)


def write_log(file: Path, forms: list[str]) -> None:
    """Lines of these forms in turn, with other numbers, and the crash."""
    piece = "".join(
        forms[number % len(forms)].format(
            n=number,
            e=number // 5004,
            m=number // 60 % 60,
            s=number % 60,
            word=f"{number:x}".translate(LETTERS),
        )
        for number in range(50_000)
    ).encode()
    with open(file, "wb") as target:
        while target.tell() < SIZE:
            target.write(piece)
        target.write(CRASH.encode())


def compare(name: str, file: Path) -> None:
    """One line of the table; the two take turns."""
    ours: list[float] = []
    theirs: list[float] = []
    memory = 0.0
    for _ in range(ROUNDS):
        theirs.append(
            timed(lambda: subprocess.run(["wc", "-l", file], check=True, stdout=subprocess.DEVNULL))
        )
        done = subprocess.run([sys.executable, "-c", _RUN, file], check=True, capture_output=True, text=True)
        assert "oom" in done.stdout
        seconds, kilobytes = map(float, done.stderr.split())
        ours.append(seconds)
        memory = max(memory, kilobytes / 1024)
    size = file.stat().st_size / 1e6
    ratio = statistics.median(other / mine for mine, other in zip(ours, theirs, strict=True))
    rates = [size / statistics.median(times) for times in (ours, theirs)]
    print(f"{name:<22} {rates[0]:8.0f} {rates[1]:12.0f} {ratio:10.2f} {memory:12.0f}", flush=True)


def timed(work: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
