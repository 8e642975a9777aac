"""apex's ways to train in several processes: together they do what one process does with all the data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.sim.shims.parallel_program import HALF, WAYS, data, make_net, weights

ROOT = Path(__file__).parents[3]
Weights = list[float]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Weights]]:
    """The weights of both processes, by the way they trained."""
    store = tmp_path_factory.mktemp("group") / "store"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.sim.shims.parallel_program"]
    runs = [
        subprocess.Popen([*command, str(rank), str(store)], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    try:
        said = [run.communicate(timeout=300)[0] for run in runs]
    finally:
        for run in runs:
            run.kill()  # one that failed leaves the other waiting
    assert [run.returncode for run in runs] == [0, 0]
    return [json.loads(text) for text in said]


def alone() -> Weights:
    net = make_net(0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(data()).pow(2).mean().backward()
        optimizer.step()
    return weights(net)


@pytest.mark.parametrize("way", WAYS)
def test_processes_train_as_one(trained: list[dict[str, Weights]], way: str) -> None:
    first, second = (weights_of[way] for weights_of in trained)
    assert first == second
    tolerance = 2e-3 if way in HALF else 1e-6
    torch.testing.assert_close(first, alone(), rtol=tolerance, atol=tolerance)


def test_the_data_of_one_process_alone_would_not_do() -> None:
    net = make_net(0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(data().chunk(2)[0]).pow(2).mean().backward()
        optimizer.step()
    difference = torch.tensor(weights(net)) - torch.tensor(alone())
    assert difference.abs().max() > 1e-2  # far more than the tolerances above
