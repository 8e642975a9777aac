"""What a process is to record, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum

VARIABLE = "TORCHFERRY_PROVE"


class Weights(str, Enum):
    """What becomes of the parameters that an optimizer is given."""

    OWN = "own"  # they stay as the program made them
    SAVE = "save"  # they are kept for another run
    LOAD = "load"  # they become those that another run kept


@dataclass(frozen=True)
class ProofSettings:
    """What to record, where to put it, and when to stop."""

    folder: str  # each process that trains leaves a file here
    steps: int | None = 20  # of the optimizer that has stepped most; None: to the program's own end
    seed: int = 0
    weights: Weights = Weights.OWN
    weights_folder: str = ""
    operators_step: int = 0  # StepRecord.ordinal whose operators are recorded, too; 0: of none
    operators_rank: int | None = None  # ... in the process of this rank
    own_project: str = ""  # where the program's modules come from; "" if there is one project only
    other_project: str = ""  # ... and where they must not come from

    def encode(self) -> str:
        """The value of the environment variable."""
        return json.dumps(asdict(self), separators=(",", ":"))


def proof_settings_in(environment: Mapping[str, str]) -> ProofSettings | None:
    """The settings of a process; None when nothing is to be recorded."""
    value = environment.get(VARIABLE)
    if not value:
        return None
    given = json.loads(value)
    return ProofSettings(**{**given, "weights": Weights(given.get("weights", Weights.OWN))})
