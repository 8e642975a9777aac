"""Programs in the styles of real repositories, converted for many cards and trained by two processes."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.journey.test_distributed import FERRY, free_port, load, run

# Both phases by one loop, loaders from a comprehension, a switch for the CPU, a layer that nothing uses; notes what
# each process sees.
PHASES = """
    import argparse
    import json
    import os
    import torch
    from torch import nn

    class Data(torch.utils.data.Dataset):
        def __init__(self, size):
            self.size = size
        def __len__(self):
            return self.size
        def __getitem__(self, index):
            seen[self.size].append(index)
            return torch.full((4,), index / self.size), index % 2

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
            self.spare = nn.Linear(2, 2)
        def forward(self, x):
            return self.body(x)

    def train_model(model, optimizer, epochs):
        figures = []
        for epoch in range(epochs):
            for phase in ["train", "val"]:
                model.train(phase == "train")
                total = 0.0
                for x, y in loaders[phase]:
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    total += loss.item()
                if phase == "val":
                    figures.append(total)
                    torch.save(model.state_dict(), "best.pt")
        return figures

    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    seen = {16: [], 6: []}
    sets = {"train": Data(16), "val": Data(6)}
    loaders = {x: torch.utils.data.DataLoader(sets[x], batch_size=4, shuffle=True) for x in ["train", "val"]}
    device = torch.device("cuda:0" if torch.cuda.is_available() and not args.no_cuda else "cpu")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    figures = train_model(model, optimizer, 2)
    weights = [parameter.sum().item() for parameter in model.parameters()]
    notes = {"seen": seen, "figures": figures, "weights": weights, "device": str(next(model.parameters()).device)}
    json.dump(notes, open(f"notes-{os.environ.get('RANK', '0')}.json", "w"))
    print("done")
"""


def converted(source: str, vendor: str, folder: Path) -> Path:
    (folder / "original").mkdir()
    (folder / "original" / "train.py").write_text(textwrap.dedent(source), "utf-8")
    out = folder / "converted"
    options = ["--to", vendor, "--distributed", "--main", "train.py", "-o", str(out), "-q"]
    run([FERRY, "convert", str(folder / "original"), *options], folder)
    return out


def train(out: Path, device: str, *arguments: str) -> list[dict[str, Any]]:
    """What each of two processes noted."""
    options = ["--to", device, "--sim", "--converted", "-q", "--nproc", "2", "--master-port", free_port()]
    assert run([FERRY, "run", *options, "train.py", *arguments], out) == "done\n"
    return [json.loads((out / f"notes-{rank}.json").read_text("utf-8")) for rank in range(2)]


def check(ranks: list[dict[str, Any]], out: Path) -> None:
    first, second = ranks
    for epoch in (slice(0, 8), slice(8, 16)):
        assert sorted(first["seen"]["16"][epoch] + second["seen"]["16"][epoch]) == list(range(16))
    assert first["seen"]["16"][:8] != first["seen"]["16"][8:]
    assert sorted(first["seen"]["6"]) == sorted(second["seen"]["6"]) == sorted([*range(6), *range(6)])
    assert first["figures"] == pytest.approx(second["figures"], rel=1e-5)
    assert first["weights"] == second["weights"]
    assert "body.0.weight" in load(out / "best.pt")


def test_both_phases_in_one_loop(tmp_path: Path) -> None:
    out = converted(PHASES, "portable", tmp_path)
    ranks = train(out, "cambricon")
    check(ranks, out)
    assert ranks[1]["device"] == "mlu:1"


@pytest.mark.long
@pytest.mark.parametrize("vendor", ["ascend", "portable"])
def test_on_the_cpu_although_there_are_cards(vendor: str, tmp_path: Path) -> None:
    out = converted(PHASES, vendor, tmp_path)
    ranks = train(out, "ascend", "--no-cuda")
    check(ranks, out)
    assert ranks[1]["device"] == "cpu"
    (out / "best.pt").unlink()
    run([FERRY, "run", "--to", "ascend", "--sim", "--converted", "-q", "train.py"], out)
    assert "body.0.weight" in load(out / "best.pt")
