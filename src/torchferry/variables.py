"""The environment variables that say what a Python process does when it has imported torch. Imports nothing."""

TO = "TORCHFERRY_TO"  # a user's own: the vendor on whose device a CUDA program runs
SIM = "TORCHFERRY_SIM"  # simulate a device
EMULATE = "TORCHFERRY_EMULATE"  # run the vendor's plugin on an emulated one
LAYER = "TORCHFERRY_LAYER"  # what CUDA's names mean
PROVE = "TORCHFERRY_PROVE"  # record for a proof
OPS = "TORCHFERRY_OPS"  # capture operators
RECORD = "TORCHFERRY_RECORD"  # record what operators compute, look for overflows, watch a long run
PROFILE = "TORCHFERRY_PROFILE"  # profile some steps
DIAGNOSIS = "TORCHFERRY_DIAGNOSIS"  # 0: a crash is not explained; asks a process for nothing else
BY_HAND = "TORCHFERRY_BY_HAND"  # how a user would type the command: what the history of a migration shows
STEPS = "TORCHFERRY_STEPS"  # end the program after so many steps

PARTS = (PROVE, OPS, RECORD, PROFILE, STEPS)  # in the order in which a process begins them
ALL = (TO, SIM, EMULATE, LAYER, *PARTS)
