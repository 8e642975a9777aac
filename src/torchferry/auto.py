"""`import torchferry.auto`, as the first line of a CUDA program: runs it on the accelerator that this machine has.

TORCHFERRY_TO=VENDOR decides. Without it: CUDA if it is there, else the vendor whose plugin is installed, else
nothing changes, and a line says so. Processes that the program starts do the same.
"""

from __future__ import annotations

from torchferry.launch.process import take_part_unlaunched

take_part_unlaunched()
