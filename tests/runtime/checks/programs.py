"""Programs as public repositories write them for a GPU run unchanged, wholly on the device."""

from __future__ import annotations

import math
import runpy
import warnings
from pathlib import Path
from typing import Any

import torch

from tests.sim.checking import Target

FOLDER = Path(__file__).parents[1] / "programs"


def _run(name: str, target: Target) -> dict[str, Any]:
    """The program's names after it has run; its losses are numbers, and its models are on the device."""
    allocated = torch.cuda.memory_stats()["allocation.all.allocated"]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert len(left["losses"]) >= 2 and all(map(math.isfinite, left["losses"])), left["losses"]
    held = [one for model in left["models"] for one in (*model.parameters(), *model.buffers())]
    assert held and {str(one.device) for one in held} == {f"{target.type}:0"}
    assert torch.cuda.memory_stats()["allocation.all.allocated"] > allocated + 30
    return left


def check_gan(target: Target) -> None:
    _run("gan", target)


def check_detector(target: Target) -> None:
    left = _run("detector", target)
    assert left["cuda"] is left["half"] is True and left["scaler"].is_enabled()
    assert left["half_dtype"] == torch.float16


def check_translator(target: Target) -> None:
    assert _run("translator", target)["packed_is_cuda"] is True


def check_old_style(target: Target) -> None:
    left = _run("old_style", target)
    assert left["args"].cuda is True and left["one_hot"].sum().item() == 4


def check_prefetcher(target: Target) -> None:
    left = _run("prefetcher", target)
    assert len(left["times"]) == 3 and min(left["times"]) > 0


def check_resumes(target: Target) -> None:
    left = _run("resumes", target)
    assert len(set(left["losses"][2:])) == 1, left["losses"]


def check_language_model(target: Target) -> None:
    left = _run("language_model", target)
    assert left["X"].is_cuda and left["optimizer"].param_groups[0]["fused"] is True


def check_reinforcement(target: Target) -> None:
    _run("reinforcement", target)


def check_segmentation(target: Target) -> None:
    assert _run("segmentation", target)["n_gpu"] == 2


def check_self_supervised(target: Target) -> None:
    _run("self_supervised", target)
