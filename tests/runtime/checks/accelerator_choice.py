"""What PyTorch's own code does when it asks torch.cuda which accelerator there is, and then looks at tensors."""

from __future__ import annotations

import gzip
import json
import tempfile
import warnings
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp

from tests.sim.checking import Target


def check_a_distributed_checkpoint_is_saved_from_the_device_and_loaded_onto_it(_: Target) -> None:
    saved = {"weight": torch.arange(4.0, device="cuda"), "on the host": torch.ones(2), "step": 3}
    loaded = {"weight": torch.zeros(4, device="cuda:1"), "on the host": torch.zeros(2), "step": 0}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are no other processes
        dcp.save(dict(saved), checkpoint_id=folder, no_dist=True)
        dcp.load(loaded, checkpoint_id=folder, no_dist=True)
    assert loaded["weight"].tolist() == [0, 1, 2, 3]
    assert loaded["weight"].device == torch.device("cuda:1")
    assert loaded["on the host"].tolist() == [1, 1]
    assert loaded["step"] == 3


def check_the_memory_timeline_is_of_the_device(_: Target) -> None:
    with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as profile:
        torch.ones(1000, device="cuda").mul(2)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is deprecated
        for device in ({}, {"device": "cuda:0"}):
            file = Path(folder) / "timeline.raw.json.gz"
            profile.export_memory_timeline(str(file), **device)
            sizes = [size for _, _, size, _ in json.loads(gzip.decompress(file.read_bytes()))]
            assert max(sizes) >= 4000
