"""What to type after a proof that does not hold."""

from __future__ import annotations

import shlex

from torchferry.prove.model import ProofRequest, VendorResult
from torchferry.report.safe import one_line

_REFERENCE = "reference.h5"


def next_commands(request: ProofRequest, result: VendorResult) -> list[str]:
    """Record the place where the bits first differ in both runs, and compare; none where no operator was judged."""
    if result.judgement is None or result.operator is None or result.operator.migrated is None:
        return []
    module = result.operator.migrated.module
    place = ["--seed", str(request.seed), "--from", str(result.judgement.step), "--steps", "1"]
    place += ["--module", module] if module else []
    place += ["--nproc", str(request.processes)] if request.processes else []
    device = ["--to", result.vendor, "--sim", *(["--converted"] if request.converted else [])]
    migrated = list(request.original)
    if request.converted:
        migrated[migrated[0] == "-m"] = request.converted.replace("{vendor}", result.vendor)
    record = f"{result.vendor}.h5"
    commands = [
        ["record", *place, "-o", _REFERENCE, *request.original],
        ["record", *device, *place, "-o", record, *migrated],
        ["compare", record, _REFERENCE],
    ]
    return [one_line(shlex.join(["ferry", *words])) for words in commands]
