"""A suggested command is what a shell takes for the words that are meant."""

from __future__ import annotations

import os
import subprocess

import pytest

from torchferry.report.commands import ferry_command, next_step

WORDS = [
    "plain.py",
    "my project/train.py",
    "it's.py",
    'say "hello".py',
    "数据/训练.py",
    "$HOME/`id`.py",
    "a;b&c|d.py",
    "back\\slash.py",
    "*.py",
    "~/x.py",
    "",
    "line\nbreak.py",
    "tab\t.py",
    "red\x1b[31m.py",
    os.fsdecode(b"\xff\xfe.py"),
    "\u202egnp.py",
]


@pytest.mark.parametrize("word", WORDS)
def test_bash_reads_the_word_that_was_meant(word: str) -> None:
    command = ferry_command("scan", word)
    done = subprocess.run(
        ["bash", "-c", f'ferry() {{ printf "%s\\0" "$@"; }}; {command}'], capture_output=True, check=True
    )
    assert done.stdout.split(b"\0")[:-1] == [b"scan", os.fsencode(word)]
    assert command.isprintable()


def test_the_next_step_in_both_languages() -> None:
    line = next_step("scan", "my project")
    assert line.en == "next: ferry scan 'my project'"
    assert line.zh == "下一步：ferry scan 'my project'"
