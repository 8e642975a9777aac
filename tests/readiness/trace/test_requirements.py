"""What reading a trace needs is said before anything else, in one line."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.readiness.trace.making import op, write
from torchferry.cli.main import main

COMMANDS = (["ops", "--to", "ascend", "--trace"], ["record", "kernels"], ["analyze"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_missing_library_is_named(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write(tmp_path, [op("aten::relu", 0, 5)])
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "msgspec" else find(name))
    assert main([*command, str(path)]) == 2
    assert "not installed: msgspec; pip install 'torchferry[perf]'" in capsys.readouterr().err
