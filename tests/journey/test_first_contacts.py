"""Three people meet the tool for the first time, and type only what it suggests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.journey.messy_repository import FILES, write_messy_repository
from tests.journey.suggestions import Newcomer, suggested
from tests.test_docs import ROOT

MOST_COMMANDS = 5


@pytest.mark.long
def test_a_messy_repository_trains_on_two_simulated_cards_and_is_proved(tmp_path: Path) -> None:
    """The first command is in the README; each of the others is the suggestion of the one before it."""
    newcomer = Newcomer(tmp_path)
    before = write_messy_repository(tmp_path / "seg thesis")
    (command,) = suggested(newcomer.type("ferry scan 'seg thesis' --to ascend", 3))
    assert command.startswith("ferry convert ")
    (command,) = suggested(newcomer.type(command, 3))  # a file of Python 2 could not be converted
    assert command.startswith("ferry prove ")
    proved = newcomer.type(command)
    assert "equal bit for bit" in proved.stdout
    (command,) = suggested(proved)
    assert "--distributed --main train.py" in command
    (command,) = suggested(newcomer.type(command, 3))
    ran = newcomer.type(command)
    assert "processes that used it: 2" in ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()].count("epoch") >= 2
    assert len(newcomer.typed) == MOST_COMMANDS
    assert {name: (before / name).read_text("utf-8") for name in FILES} == FILES


def test_a_large_repository_in_ci(tmp_path: Path) -> None:
    """A log says on one screen what there is to do, the exit code that there is something, a file the rest; what was slow
    would show as lines of progress, one for ten seconds."""
    newcomer = Newcomer(tmp_path)
    for number in range(500):
        file = tmp_path / "repository" / f"package{number % 25}" / f"module{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        wraps = "\nmodel = nn.DataParallel(model)" if number % 50 == 0 else ""
        file.write_text(f"import torch\nfrom torch import nn\n\nx{number} = torch.zeros(1).cuda(){wraps}\n")
    done = newcomer.type("ferry scan repository --to ascend --check", 1)
    lines = done.stdout.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 110
    assert "\x1b" not in done.stdout + done.stderr and "\r" not in done.stdout + done.stderr
    assert any("10 × " in line for line in lines)  # one line for one cause
    assert "500 places are automatic" in done.stdout or "places are automatic" in done.stdout
    progress = [line for line in done.stderr.splitlines() if line.startswith("ferry: scanning")]
    assert len(progress) <= 6  # a minute
    assert set(done.stderr.splitlines()) == set(progress)
    newcomer.type("ferry scan repository --to ascend --check --format json -o findings.json -q", 1)
    assert len(json.loads((tmp_path / "findings.json").read_text("utf-8"))["findings"]) >= 510
    newcomer.type("ferry convert repository --to ascend -o converted -q")
    newcomer.type("ferry scan converted --to ascend --check -q", 1)  # DataParallel is still to be decided


_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\([^()]*\)")
_ENGLISH = re.compile(r"(?<![\w./:-])(?:[A-Za-z]{2,}[,;:]? ){3,}[A-Za-z]{2,}(?![\w./:-])")


def english_in(output: str) -> list[str]:
    """The lines with four English words in a row that are no command, no path and no code."""
    lines = [line for line in output.splitlines() if "ferry " not in line.partition("：")[2]]
    return [line for line in lines if "ferry " not in line and _ENGLISH.search(_QUOTED.sub("", line))]


def test_english_is_noticed() -> None:
    assert english_in("aten::gelu 计算错误：its own error is not rounding")
    assert not english_in(
        "aten::gelu 计算错误：从某个元素起直到末尾都错\n  位置  第 12 个调用，forward, Sorter: body.1"
    )
    assert not english_in("下一步：ferry case aten gelu from npu to ascend")


@pytest.mark.long
def test_from_a_loss_that_differs_to_the_operator_in_chinese(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, language="zh_CN.UTF-8")
    program = (ROOT / "examples/accuracy/train.py").read_text("utf-8")
    (tmp_path / "训练.py").write_text(program, encoding="utf-8")
    outputs = [
        newcomer.type("ferry record -o gpu.h5 训练.py"),
        newcomer.type("ferry record --to ascend --sim -o npu.h5 训练.py --wrong-kernel"),
    ]
    compared = newcomer.type("ferry compare npu.h5 gpu.h5", 1)
    assert compared.stdout.startswith("aten::gelu 计算错误：")
    outputs.append(compared)
    commands = suggested(compared)
    assert any(command.startswith("ferry case aten::gelu") for command in commands)
    outputs += [newcomer.follow(command) for command in commands]
    assert not [line for done in outputs for line in english_in(done.stdout + done.stderr)]
