"""Programs that run on several cards already, and how they are started."""

from __future__ import annotations

import ast
from enum import Enum
from typing import NamedTuple

from torchferry.convert.program.training_program import ProgramFile, TrainingProgram
from torchferry.source.names import called_name


class Start(Enum):
    """How a program comes to several processes."""

    TORCHRUN = "torchrun"  # one process per card, started for it
    ITSELF = "itself"  # it starts them itself, once per node


class Sign(NamedTuple):
    """What shows that a program is distributed."""

    file: ProgramFile
    node: ast.AST
    name: str


_CALLS = frozenset({"init_process_group", "DistributedDataParallel", "init_distributed_mode"})
_SPAWN = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"})
_LIBRARIES = frozenset(
    {"accelerate", "deepspeed", "horovod", "lightning", "pytorch_lightning", "colossalai", "fairscale"}
)
# A file that shows any of these holds its last word.
_WORDS = tuple(name.rpartition(".")[2].encode() for name in sorted(_CALLS | _SPAWN | _LIBRARIES))


def find_sign(program: TrainingProgram) -> Sign | None:
    """The first thing in a program that makes it distributed; a start of processes counts most."""
    signs = [sign for file in program.files.values() for sign in _signs(file)]
    return min(signs, key=lambda sign: sign.name not in _SPAWN, default=None)


def start_of(program: TrainingProgram) -> Start:
    """How the program is started on several cards."""
    sign = find_sign(program)
    return Start.ITSELF if sign is not None and sign.name in _SPAWN else Start.TORCHRUN


def _signs(file: ProgramFile) -> list[Sign]:
    found: list[Sign] = []
    if not any(word in file.module.data for word in _WORDS):
        return found
    for _, binding in file.module.scopes.imports:
        package = binding.qualified.partition(".")[0]
        if package in _LIBRARIES:
            found.append(Sign(file, binding.node, package))
    for call in file.calls:
        name = file.qualified(call.func)
        if name in _SPAWN:
            found.append(Sign(file, call, name))
        elif called_name(call) in _CALLS:
            found.append(Sign(file, call, called_name(call)))
    return found


# The words by which a file is known that the rewrite may touch; apart, because every run asks for
# them.

# A file that the rewrite touches holds one of these words.
TRIGGERS = (
    "cuda",
    "DataLoader",
    "DataParallel",
    "backward(",
    "state_dict",
    "torch.save",
    "SummaryWriter",
    "__main__",
    "tqdm",
    "wandb",
    "mkdir",
    "makedirs",
    "shutil",
    "savefig",
    "save_image",
)
