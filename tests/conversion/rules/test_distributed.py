"""TF710: a training program for one card becomes one for many; its pieces have their tests in ../distributed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conversion.distributed.programs import MAIN, script
from tests.conversion.rewriting import VENDORS, run, target
from torchferry.conversion.file import FileJob, convert_text
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.rule import RuleSet, all_rules
from torchferry.conversion.settings import Distributed, PassSettings
from torchferry.finding import Kind
from torchferry.source.decode import decode

EXAMPLES = Path(__file__).parents[3] / "examples" / "single_gpu"


def converted(source: str, to: str) -> str:
    """A script after the pass and all rules that are always on."""
    rules = RuleSet(rule for rule in all_rules() if rule.option in ("", "distributed"))
    job = FileJob(target(to), rules, settings=PassSettings(Distributed(MAIN)))
    conversion = convert_text(decode(source.encode()), MAIN, job)
    assert not conversion.failure
    return conversion.new_text or source


def test_noop_without_a_main_script() -> None:
    conversion = run(script(), "ascend", "distributed")
    assert not any(finding.rule == "TF710" for finding in conversion.findings)


def test_noop_in_a_module_that_the_script_does_not_import() -> None:
    job = FileJob(target("ascend"), RuleSet(all_rules()), settings=PassSettings(Distributed("other.py")))
    conversion = convert_text(decode(script().encode()), MAIN, job)
    assert not any(finding.rule == "TF710" for finding in conversion.findings)


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_every_target_gets_its_own_words(to: str) -> None:
    text = converted(script(), to)
    ast.parse(text)
    assert "cuda" not in text
    assert "nccl" not in text
    backend = target(to).backend
    assert (f'"{backend.word}"' if backend.word else backend.expression) in text
    if not target(to).is_portable:
        assert f"{target(to).vendor.torch_module}.set_device(local_rank)" in text


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_the_result_is_found_again(to: str) -> None:
    once = converted(script(), to)
    assert converted(once, to) == once


def test_a_line_can_be_silenced() -> None:
    source = script(end='torch.save({}, "x.pt")  # ferry: ignore[TF710]')
    assert '\ntorch.save({}, "x.pt")' in converted(source, "ascend")


def test_the_reason_is_one_finding() -> None:
    rules = RuleSet(rule for rule in all_rules() if rule.option in ("", "distributed"))
    job = FileJob(target("ascend"), rules, settings=PassSettings(Distributed(MAIN)))
    conversion = convert_text(decode(script(loader="loader = batches()").encode()), MAIN, job)
    (finding,) = [finding for finding in conversion.findings if finding.rule == "TF710"]
    assert finding.kind is Kind.TODO


ENGINE = """
import torch

def fit(model, train_loader, val_loader):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for x in train_loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
        with torch.no_grad():
            for x in val_loader:
                model(x.cuda())
        torch.save(model.state_dict(), "last.pt")
"""
START = """
from lib.data import make
from lib.engine import fit
from things import Net

def main():
    model = Net()
    model.cuda()
    fit(model, make("train"), make("val"))

if __name__ == "__main__":
    main()
"""
DATA = """
from torch.utils.data import DataLoader
from things import sets

def make(split):
    if split == "train":
        return DataLoader(sets.a, 8)
    return DataLoader(sets.b, 8)
"""


@pytest.mark.parametrize("to", ["ascend", "portable"])
def test_a_module_beside_the_script_is_changed_once(to: str, tmp_path: Path) -> None:
    files = {"tools/train.py": START, "lib/engine.py": ENGINE, "lib/data.py": DATA, "lib/__init__.py": ""}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    rules = RuleSet(rule for rule in all_rules() if rule.option in ("", "distributed"))
    settings = PassSettings(Distributed("tools/train.py"))
    neighbours = Neighbours(tmp_path, frozenset({"torch"}))
    job = FileJob(target(to), rules, settings=settings, neighbours=neighbours)
    conversion = convert_text(decode(ENGINE.encode()), "lib/engine.py", job)
    assert not conversion.failure
    assert (conversion.new_text or "").count("train_loader.sampler.set_epoch(epoch)") == 1
