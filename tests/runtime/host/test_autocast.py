"""Autocast of the reference: float16 for CUDA's words as on a GPU, in every thread; the CPU's own word keeps its own."""

from __future__ import annotations

import os
import subprocess
import sys

from torchferry.runtime.settings import REFERENCE, LayerSettings

PROGRAM = """
import threading
import torch

def ask():
    x = torch.ones(2, 2).cuda()
    for block in (torch.autocast("cuda"), torch.autocast(device_type="cuda"), torch.autocast("cuda", torch.bfloat16),
                  torch.cuda.amp.autocast(), torch.autocast("cpu")):
        with block:
            print(str(x.mm(x).dtype).removeprefix("torch."), end=" ")

ask()
thread = threading.Thread(target=ask)
thread.start()
thread.join()
"""
ANSWERS = ["float16", "float16", "bfloat16", "float16", "bfloat16"]


def test_the_default_is_cudas_in_every_thread() -> None:
    environment = {**os.environ, LayerSettings.variable: LayerSettings(REFERENCE).encode()}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert ended.stdout.split() == ANSWERS * 2
