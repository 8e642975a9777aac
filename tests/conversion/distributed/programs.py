"""Shorthand for the tests of the rewrite for several cards: small programs, and what changes in them."""

from __future__ import annotations

import difflib
import textwrap
from pathlib import Path

from tests.conversion.rewriting import target
from torchferry.conversion.file import Conversion, FileJob, convert_text
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.rule import RuleSet
from torchferry.conversion.rules.distributed import RULE
from torchferry.conversion.settings import Distributed, PassSettings
from torchferry.finding import Kind
from torchferry.source.decode import decode

MAIN = "train.py"

HEAD = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
from things import Net, dataset
"""
STEP = """\
loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
"""


def script(
    device: str = "",
    model: str = "model = Net().cuda()",
    loader: str = "loader = DataLoader(dataset, batch_size=8, shuffle=True)",
    between: str = "",
    loop: str = "for epoch in range(9):",
    step: str = STEP,
    end: str = "",
) -> str:
    """A training script without functions, whose parts a test chooses."""
    optimizer = "optimizer = optim.SGD(model.parameters(), lr=0.1)"
    body = f"{loop}\n    for x in loader:\n        {step.rstrip()}"
    parts = [HEAD.rstrip(), device, model, optimizer, loader, between, body, end]
    return "".join(f"{textwrap.dedent(part).strip()}\n" for part in parts if part)


def convert(source: str, settings: Distributed, folder: Path | None = None, path: str = MAIN) -> Conversion:
    """What the pass alone makes of a module; the others of its project lie in the folder."""
    job = FileJob(
        target("ascend"),
        RuleSet([RULE]),
        settings=PassSettings(settings),
        neighbours=Neighbours(folder, frozenset({"torch"})),
    )
    conversion = convert_text(decode(textwrap.dedent(source).encode()), path, job)
    assert not conversion.failure, conversion.failure
    return conversion


def changes(source: str, *, model: str = "", split: bool = False, sync: bool = False) -> str:
    """The lines of a script that change, as a diff shows them; without imports and the set-up function."""
    conversion = convert(source, Distributed(MAIN, model, split, sync))
    return shown(textwrap.dedent(source), conversion.new_text)


def shown(before: str, after: str | None) -> str:
    if after is None:
        return ""
    lines = list(difflib.unified_diff(before.splitlines(), _without_helper(after), n=0, lineterm=""))[2:]
    kept = [
        line for line in lines if line[1:].strip() and not line[1:].startswith(("import ", "from ", "@ "))
    ]
    return "".join(f"{line[0]} {line[1:].rstrip()}\n" for line in kept)


def _without_helper(text: str) -> list[str]:
    lines = text.splitlines()
    if "def setup_distributed():" not in lines:
        return lines
    start = lines.index("def setup_distributed():")
    end = next(number for number in range(start, len(lines)) if lines[number].strip() == "return local_rank")
    return lines[:start] + lines[end + 1 :]


def changed(source: str, **settings: bool | str) -> list[str]:
    """The new and the removed lines, but those that every program gets: set-up, clean-up, the comment, set_epoch."""
    usual = ("setup_distributed()", "destroy_process_group()", "# batch_size and num_workers", "set_epoch(")
    lines = changes(source, **settings).splitlines()  # type: ignore[arg-type]
    return [line for line in lines if not any(part in line for part in usual)]


def told(source: str, kind: Kind = Kind.TODO) -> list[str]:
    """The texts of the places that something is said about."""
    conversion = convert(source, Distributed(MAIN))
    return [finding.before for finding in conversion.findings if finding.kind is kind]


def refusal(source: str, folder: Path | None = None, model: str = "") -> str:
    """Why a program is left as it is."""
    conversion = convert(source, Distributed(MAIN, model), folder)
    assert conversion.new_text is None
    (finding,) = [finding for finding in conversion.findings if finding.kind is Kind.TODO]
    assert finding.title.en == "Program not rewritten for several cards"
    return finding.why.en[0].lower() + finding.why.en[1:].rstrip(".")


def convert_project(
    files: dict[str, str], folder: Path, settings: Distributed | None = None
) -> dict[str, str]:
    """By path: the lines that change in each file of a project."""
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(textwrap.dedent(text), "utf-8")
    found: dict[str, str] = {}
    for path, text in files.items():
        conversion = convert(text, settings or Distributed(MAIN), folder, path)
        found[path] = shown(textwrap.dedent(text), conversion.new_text)
    return found
