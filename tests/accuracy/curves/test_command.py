"""`ferry watch show` and `--page`: what they write and refuse, while a program runs, and however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.accuracy.curves.samples import WatchedFile, watched
from torchferry.accuracy.curves import live
from torchferry.accuracy.curves.live import Follower, LivePage
from torchferry.accuracy.watch import rows
from torchferry.cli.main import main
from torchferry.report.formats import Options


def data_in(page: Path) -> dict[str, object]:
    """What the page hands to its script."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"))
    assert match is not None
    found: dict[str, object] = json.loads(match[1])
    return found


def test_show_writes_all_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(watched(tmp_path / "a.h5"))
    outputs = [tmp_path / f"curves{suffix}" for suffix in (".html", ".csv", ".md", ".xlsx", ".txt")]
    assert main(["watch", "show", path, "--lang", "zh", *(f"-o{output}" for output in outputs)]) == 0
    assert "训练过程" in capsys.readouterr().out
    assert all(output.stat().st_size for output in outputs)
    assert data_in(outputs[0])["live"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "nothing.h5"], "no such file: nothing.h5"),
        (["show", "a.h5", "--first-step", "99"], "no step from 99 on was watched"),
        (["show", "a.h5", "-o", "a.pdf"], "unknown kind of report"),
        (["show", "a.h5", "--follow"], "name one with -o FILE.html"),
        (["--golden", "a.h5", "train.py"], "--golden is drawn on a page"),
        (["--page", "curves.txt", "train.py"], "end its name in .html"),
        (["--page", "p.html", "-o", "a.h5", "--golden", "a.h5", "train.py"], "drawn and overwritten at once"),
    ],
)
def test_what_is_refused(
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    watched(tmp_path / "a.h5")
    (tmp_path / "train.py").touch()
    assert main(["watch", *words]) == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "train.py"]


def test_a_page_is_written_anew_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS", 0.02)
    page = LivePage(tmp_path / "page.html", [tmp_path / "a.h5"], Options())
    with Follower(page):
        time.sleep(0.1)
        assert not page.page.exists()  # there is no file yet, which is no reason to stop
        file = WatchedFile(tmp_path / "a.h5")
        file.put(1, rows.LOSS, None, "output_0", 1.0)
        file.end_step(1)
        until = time.monotonic() + 30
        while not page.page.exists() and time.monotonic() < until:
            time.sleep(0.02)
    assert data_in(page.page)["live"] == 0.02
    file.writer.close()
    page.write(is_last=True)
    assert data_in(page.page)["live"] == 0


def test_a_file_of_an_earlier_run_is_not_drawn(tmp_path: Path) -> None:
    watched(tmp_path / "a.h5")
    page = LivePage(tmp_path / "page.html", [tmp_path / "a.h5"], Options(), lambda: True)
    assert not page.write() and not page.page.exists()


PROGRAM = """\
import os, sys, time, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 100_000):
    optimizer.zero_grad()
    model(torch.randn(16, 4)).square().mean().backward()
    optimizer.step()
    time.sleep(0.05)
    if step > 20 and sys.argv[1] == "raise":
        raise ValueError("no more")
    if step > 20 and sys.argv[1] == "kill":
        os.kill(os.getpid(), 9)
"""


@pytest.mark.long
@pytest.mark.parametrize(("end", "code"), [("raise", 1), ("kill", 137), ("interrupt", 130)])
def test_the_page_is_complete_however_the_program_ends(end: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    watched(
        tmp_path / "watch.h5", nan_from=1
    )  # of an earlier run: the new one takes its place, and perhaps its inode
    command = [
        sys.executable,
        "-m",
        "torchferry",
        "watch",
        "--every",
        "1",
        "--page",
        "page.html",
        "train.py",
        end,
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    page = tmp_path / "page.html"
    if end == "interrupt":
        until = time.monotonic() + 60
        while not page.exists() and time.monotonic() < until:
            time.sleep(0.1)
        assert data_in(page)["live"] == live.SECONDS
        os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code
    assert "page.html: the curves" in said or "page.html：曲线" in said
    assert data_in(page)["live"] == 0
    assert "NaN first" not in page.read_text("utf-8")
