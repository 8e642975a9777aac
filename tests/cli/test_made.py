"""`--json` of commands that run something: their record alone is on stdout, what the program prints is on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import environment, run
from torchferry.cli.main import main

PROGRAM = """import torch
print("from the program")
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


def test_record(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    done = run("ferry", "record", "--json", "--steps", 2, "train.py", cwd=tmp_path, env=environment())
    made = json.loads(done.stdout)
    assert (made["format"], made["command"], made["exit_code"]) == ("torchferry-made", "record", 0)
    (file,) = made["files"]
    assert Path(file["path"]).name == "record.h5" and file["steps"] == 2 and file["calls"] > 0
    assert "from the program" in done.stderr
    done = run(
        "ferry", "replay", "record.h5", "--device", "cpu", "--json", "-q", cwd=tmp_path, env=environment()
    )
    assert json.loads(done.stdout)["files"][0]["calls"] == file["calls"]


def test_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "tf105", "--json"]) == 0
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert rule["id"] == "TF105" and set(rule["summary"]) == {"en", "zh"}


@pytest.mark.long
def test_the_others(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    for words, name in (
        (["watch", "--every", "1"], "watch.h5"),
        (["profile", "--window", "2:3", "--warmup", "0"], "prof"),
    ):
        done = run("ferry", *words, "--json", "train.py", cwd=tmp_path, env=environment())
        made = json.loads(done.stdout)
        assert (
            made["exit_code"] == 0 and name in made["files"][0]["path"] and "from the program" in done.stderr
        )
    done = run("ferry", "run", "--to", "npu", "--sim", "--json", "train.py", cwd=tmp_path, env=environment())
    assert json.loads(done.stdout)["format"] == "torchferry-run" and "from the program" in done.stderr
