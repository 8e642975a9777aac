"""The environment variables that say what a Python process does when it has imported torch. Imports no torch."""

from __future__ import annotations

from torchferry.emulate.environment import VARIABLE as EMULATE
from torchferry.runtime.settings import VARIABLE as LAYER
from torchferry.sim.environment import VARIABLE as SIM

__all__ = ["ALL", "DIAGNOSIS", "EMULATE", "LAYER", "OPS", "PROFILE", "PROVE", "RECORD", "SIM", "TO"]

PROVE = "TORCHFERRY_PROVE"  # record for a proof
OPS = "TORCHFERRY_OPS"  # capture operators
RECORD = "TORCHFERRY_RECORD"  # record what operators compute, look for overflows, watch a long run
PROFILE = "TORCHFERRY_PROFILE"  # profile some steps
DIAGNOSIS = "TORCHFERRY_DIAGNOSIS"  # 0: a crash is not explained; asks a process for nothing else
TO = "TORCHFERRY_TO"  # a user's own: the vendor on whose device a CUDA program runs
ALL = (TO, SIM, EMULATE, LAYER, PROVE, OPS, RECORD, PROFILE)
