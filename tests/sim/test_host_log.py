"""The log of a vendor's runtime, as the simulated device writes it: by the vendor's variables, read by `ferry oplog`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import command, environment, run

TRAINING = """\
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5))
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for count in (2, 2, 2, 3):  # the last batch is another one
    optimizer.zero_grad()
    model(torch.randn(count, 3, 8, 8).cuda()).sum().backward()
    optimizer.step()
print("trained")
"""


def trained(folder: Path, **variables: str) -> str:
    (folder / "train.py").write_text(TRAINING)
    ended = subprocess.run(
        command("ferry", "run", "--sim", "--to", "ascend", "-q", "train.py"),
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    "variables", [{}, {"ASCEND_SLOG_PRINT_TO_STDOUT": "1", "ASCEND_GLOBAL_LOG_LEVEL": "3"}]
)
def test_nothing_is_logged_unless_it_is_asked_for(variables: dict[str, str], tmp_path: Path) -> None:
    assert trained(tmp_path, **variables) == "trained\n"


def test_a_batch_of_another_size_shows_as_compiled_again(tmp_path: Path) -> None:
    asked = {"ASCEND_SLOG_PRINT_TO_STDOUT": "1", "ASCEND_GLOBAL_LOG_LEVEL": "1"}
    (tmp_path / "plog.log").write_text(trained(tmp_path, **asked))
    read = run("ferry", "oplog", tmp_path / "plog.log", "--format", "json")
    found = {row["type"]: row for row in json.loads(read.stdout)["operators"]}
    assert (found["Convolution"]["calls"], found["Convolution"]["compiles"]) == (4, 2)
    assert found["Convolution"]["recompiles"] == 1 and found["ForeachAdd"]["compiles"] == 1
