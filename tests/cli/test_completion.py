"""Completion scripts in the shells themselves, and man pages in the reader that shows them."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchferry.cli.commands import COMMANDS
from torchferry.cli.main import main, parser_of

CASES = [
    ("ferry sc", {"scan"}, {"record"}),
    ("ferry scan --form", {"--format"}, {"--from"}),
    ("ferry scan --format h", {"html"}, {"text"}),
    ("ferry scan --to as", {"ascend"}, {"cambricon"}),
    ("ferry run --to ml", {"mlu"}, set()),
    ("ferry checkpoint ", {"info", "fix"}, set()),
    ("ferry checkpoint info --ch", {"--check"}, set()),
    ("ferry record --ph", {"--phase"}, set()),
    ("ferry rules TF10", {"TF101", "TF105"}, {"TF201"}),
]  # what is typed, some of what is offered, what is not


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        done = subprocess.run(
            [sys.executable, "-m", "torchferry", "completion", shell, "--lang", "en"],
            capture_output=True,
            check=True,
        )
        (folder / shell).write_bytes(done.stdout)
    return folder


def offered(shell: str, script: Path, line: str) -> set[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    if shell == "bash":
        code = f"""source {script}; COMP_WORDS=({line}{' ""' if line.endswith(" ") else ""})
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _ferry 2> /dev/null; printf '%s\\n' "${{COMPREPLY[@]}}" """
        command = ["bash", "--norc", "-c", code]
    else:
        command = ["fish", "--no-config", "-c", f"source {script}; complete -C'{line}'"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return {each.split("\t")[0] for each in printed.splitlines()}


@pytest.mark.parametrize(("line", "expected", "others"), CASES)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_what_is_offered(shell: str, line: str, expected: set[str], others: set[str], scripts: Path) -> None:
    found = offered(shell, scripts / shell, line)
    assert expected <= found and not others & found


def test_words_of_a_program_are_its_own(scripts: Path) -> None:
    assert offered("bash", scripts / "bash", "ferry run --to npu train.py --ep") == {""}


def test_old_spellings_are_not_offered(scripts: Path) -> None:
    assert "--as-is" not in offered("bash", scripts / "bash", "ferry record --as")


def typed(folder: Path, line: str) -> str:
    """What an interactive zsh shows when somebody types this and presses the tabulator."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "PS1": "", "HOME": str(folder)}
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    try:
        start = f"fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; print -r READ''Y\n"
        os.write(ours, start.encode())
        _read_until(ours, "READY\r")
        os.write(ours, f"{line}\t".encode())
        return _read_until(ours, "", seconds=4)
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)


def _read_until(terminal: int, word: str, seconds: float = 30) -> str:
    """Until the word has come, or nothing comes any more."""
    shown = ""
    while select.select([terminal], [], [], seconds)[0]:
        shown += os.read(terminal, 65536).decode("utf-8", "replace")
        if word and word in shown:
            break
    return shown


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "expected"),
    [("ferry wat", "watch"), ("ferry scan --exc", "--exclude"), ("ferry scan --to asc", "ascend")],
)
def test_zsh_offers_the_same(line: str, expected: str, scripts: Path, tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    shutil.copy(scripts / "zsh", tmp_path / "_ferry")
    assert expected in typed(tmp_path, line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_sound(shell: str, scripts: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", str(scripts / shell)], check=True)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_man_pages(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--man", str(tmp_path), "--lang", language]) == 0
    pages = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert {f"ferry-{name}.1" for name in COMMANDS} <= set(pages) and "ferry-record-cut.1" in pages
    for name in ("scan", "record"):
        for argument in parser_of(name).all_arguments:
            for flag in argument.flags:
                assert flag.replace("-", "\\-") in pages[f"ferry-{name}.1"]
    if shutil.which("mandoc"):
        checked = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "error", *map(str, tmp_path.iterdir())], capture_output=True
        )
        assert checked.returncode == 0, checked.stdout
    if shutil.which("man"):
        environment = {"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        shown = subprocess.run(
            ["man", "-l", tmp_path / "ferry-scan.1"], capture_output=True, text=True, env=environment
        )
        assert "--keep-cuda" in shown.stdout
