"""A proof as JSON.

The document is one object. Its names, and those of every record in it, stay; later formats may add some.

    format       torchferry-proof; 1 in a file of an earlier version
    version      1
    torchferry   version that wrote it
    holds        whether every vendor's run is equal to the original, or close where that is enough
    request      what was to be proved: original, converted, vendors, steps, seed, processes, same_weights, exact,
                 rtol, atol, emulated (the vendor's own plugin ran it)
    reference    the run of the original on the CPU: a *run*
    results      one for each vendor: vendor, device_type, verdict (equal, close, parted, incomparable, crashed,
                 unrepeatable), run, compared_steps, reason, parting, largest, operator, judgement (each may be null),
                 notes (texts)
    torch, date  version of PyTorch; ISO 8601, UTC

    run          name, exit_code, seconds, stdout, stderr (names of logs), processes
    process      identity (rank, role, pid, started, restart, torch), optimizers (their types), steps
    step         ordinal, optimizer, losses, gradient_norm, checksum (of all parameters), skipped
    difference   parting, largest: what (loss, gradient, parameter, buffer), step, rank, optimizer, name, reference,
                 migrated (*tensors*, null where there was no gradient), distance, relative, tolerance
    operator     cause (result, random, arguments, calls, data, state, communication, none), reference, migrated
                 (*calls*, or null), output, distance, relative, notes, step
    judgement    of that operator against double precision: verdict (normal, suspicious, fault), sort, own_error, limit,
                 why, record (a file in the proof's folder), step (as `ferry record` counts)
    call         ordinal, name, phase, module, place, outputs, inputs (*tensors*), arguments, node
    tensor       shape, dtype, checksum, norm, projections

A text for people is an object {"en", "zh"}. JSON has no infinities and no NaN: they are the strings "Infinity",
"-Infinity" and "NaN".
"""

from __future__ import annotations

import json

from torchferry import __version__
from torchferry.proof.model import Proof
from torchferry.report.formats import Options
from torchferry.report.json import plain

FORMAT, VERSION = "torchferry-proof", 1
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def to_json(proof: Proof, options: Options) -> str:
    """The whole proof; see the module's description for the names."""
    head = {"format": FORMAT, "version": VERSION, "torchferry": __version__, "holds": proof.holds}
    content = {**head, **plain(proof, _NOT_FINITE)}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
