"""`ferry record info` and `ferry record convert`: what is in a record, and its tensors as files of their own."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.errors import OutputError

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

_COMMAND = "ferry record"
_CONVERT = "convert"


def run(verb: str, words: list[str]) -> int:
    """One of the two; the answer is an exit code."""
    parser = argparse.ArgumentParser(prog=f"{_COMMAND} {verb}", description=_DESCRIPTIONS[verb])
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a record, with several ranks without .rank0; or a file or folder of a runtime's own dump",
    )
    if verb == _CONVERT:
        kind = parser.add_mutually_exclusive_group(required=True)
        kind.add_argument(
            "--npy", type=Path, metavar="DIR", help="one .npy a tensor, to be read with numpy.load"
        )
        kind.add_argument("--txt", type=Path, metavar="DIR", help="one .txt a tensor, a number a line")
        parser.add_argument("-q", "--quiet", action="store_true", help="do not say what was written")
    args = parser.parse_args(words)
    return _convert(args) if verb == _CONVERT else _info(args)


_DESCRIPTIONS = {
    "info": "Say what a record holds: of which run, which steps, how often each operator was called.",
    _CONVERT: "Write the tensors of a record as files of their own: DIR/number_operator/input/name.npy or .txt.",
}


def _info(args: argparse.Namespace) -> int:
    from torchferry.accuracy.file.reader import open_records
    from torchferry.cli.ending import reader_may_leave

    with reader_may_leave():
        for record in open_records(args.file):
            with record:
                for line in _described(record):
                    print(line)
    return 0


def _described(record: Record) -> Iterator[str]:
    from torchferry.accuracy.record.telling import size
    from torchferry.report.safe import one_line

    header = record.header
    steps, phases, operators, raw = Counter[int](), Counter[str](), Counter[str](), 0
    for call in record.calls:
        steps[call.step] += 1
        phases[call.phase] += 1
        operators[call.operator] += 1
        raw += sum(tensor.nbytes for tensor in (*call.inputs, *call.outputs) if tensor.offset is not None)
    simulated = " (simulated)" if header.simulated else ""
    facts = {
        "program": header.program,
        "options": header.options,
        "device": f"{header.device}{simulated}" + (f" of {header.vendor}" if header.vendor else ""),
        "torch": header.torch,
        "rank": f"{header.rank} of {header.world}",
        "keeps": header.kept.value,
        "inputs of": header.replayed,
        "selected": header.selected,
        "complete": "yes" if header.complete else "no: its process was ended before it could end the file",
        "size": f"{size(record.path.stat().st_size)}"
        + (f"; {size(raw)} if equal tensors were not written once" if raw else ""),
        "notes": "; ".join(header.notes),
    }
    yield f"{one_line(str(record.path))}: {len(record.calls):,} calls"
    yield from (f"  {name:<10} {one_line(value)}" for name, value in facts.items() if value)
    yield from (f"  step {step:<5} {count:,} calls" for step, count in sorted(steps.items()))
    yield from (f"  {one_line(phase) or '?':<10} {count:,} calls" for phase, count in phases.items())
    yield from (f"  {count:>8,}  {one_line(name)}" for name, count in operators.most_common())


def _convert(args: argparse.Namespace) -> int:
    from torchferry.accuracy.file.convert import Form, convert
    from torchferry.accuracy.file.reader import open_records

    folder, form = (args.npy, Form.NPY) if args.npy is not None else (args.txt, Form.TXT)
    records = open_records(args.file)
    if len(records) > 1 and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: is there already, and not empty; name another folder")
    count = 0
    for record in records:
        with record:
            place = folder / f"rank{record.header.rank}" if len(records) > 1 else folder
        count += convert(record.path, place, form)
    if not args.quiet:
        print(f"{_COMMAND}: {folder}: {count:,} tensors", file=sys.stderr)
    return 0
