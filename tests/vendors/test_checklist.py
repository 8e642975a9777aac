"""`ferry vendors --check`: what a built-in vendor must say, and what to write where something is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.vendors.test_cli_vendors import ferry_vendors
from torchferry.vendors.checklist import DEMANDS, Folder
from torchferry.vendors.registry import get_vendor

ACME = Path(__file__).parents[2] / "examples" / "vendors" / "acme"


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """The example, which lacks nothing."""
    return Path(shutil.copytree(ACME, tmp_path / "acme"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_example_lacks_nothing(language: str, complete: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ferry_vendors("--check", str(complete), "--lang", language) == 0
    *rows, verdict = capsys.readouterr().out.splitlines()
    assert len(rows) == len(DEMANDS)
    assert all(row.startswith("yes " if language == "en" else "有 ") for row in rows)
    assert "make docs" in verdict


def test_a_vendor_of_which_only_the_names_are_known(acme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ferry_vendors("--check", str(acme), "--lang", "en") == 1
    out = capsys.readouterr().out
    for line in (
        "no  Names match each other",
        'vendor.toml: company_zh = "..."',
        "errors.toml: the file; where nothing is known, [[sources]]: where its facts come from",
        'apis.toml: [apis] "torch.cuda.set_device" = "same"',
        'replacements.toml: [[replacements]] cuda = "flash_attn", use = ""',
        "yes Operators",
        "acme works with --vendor-path as it is; to be included in TorchFerry, it lacks the",
    ):
        assert line in out


MISTAKES = [
    ("vendor.toml", 'is_attribute = "is_acme"', 'is_attribute = "acme"', 'vendor.toml: is_attribute = "is_acme"'),
    ("vendor.toml", 'name = "acme"', 'name = "acne"', 'vendor.toml: name = "acme"'),
    ("vendor.toml", 'NCCL_DEBUG = "ACCL_DEBUG"', 'NCCL_DEBUG = "debug"', "[env_map] NCCL_DEBUG"),
    ("vendor.toml", 'raise_when = ["ACME_NO_CPU=1"]', "", "[limits] raise_when"),
    ("vendor.toml", 'becomes = "float32"', "", "[limits.dtypes.float64] becomes"),
    ("vendor.toml", "acme: {operator} runs", "acme: on the CPU runs {operator}", 'class = "cpu_fallback"'),
    ("vendor.toml", "[limits] ", '[limits]\noperator_version = "2.4" ', '[limits] operator_version = ""'),
    ("vendor.toml", "[[sources]]", "[[ sources ]]", ""),
    ("apis.toml", '"torch.acme.memory.peak"', '"torch.cuda.peak"', "a full name without cuda"),
    ("replacements.toml", 'cuda = "cupy"', 'cuda = "triton"', "one entry for triton"),
    ("replacements.toml", 'cuda = "pynvml"\nuse = "acme-smi"', 'cuda = "pynvml"\nuse = ""', 'use = "acme-smi"'),
    ("errors.toml", 'cause_zh = "设备显存不足"\n', "", "cause_zh of out-of-memory"),
    ("errors.toml", 'id = "falls-back"', 'id = "out-of-memory"', "another id for acme.out-of-memory"),
    ("similar.toml", "Acme PyTorch guide 1.2, chapter 4", "operator table of adapter version 2.4: no logit", "nothing on logit"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "said"), MISTAKES, ids=[said or "none" for *_, said in MISTAKES]
)
def test_what_to_write(file: str, old: str, new: str, said: str, complete: Path) -> None:
    path = complete / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    folder = Folder(complete)
    lacking = [f"{its}: {what.en}" for demand in DEMANDS for its, what in demand.lacking(folder)]
    assert (len(lacking) >= 1 and any(said in line for line in lacking)) if said else not lacking


def test_why_of_an_equivalent_says_that_the_operator_falls_back(tmp_path: Path) -> None:
    ascend = Path(shutil.copytree(get_vendor("ascend").folder, tmp_path / "ascend"))
    similar = ascend / "similar.toml"
    why = "aten::huber_loss has no device kernel and falls back to the CPU"
    text = similar.read_text("utf-8").replace(why, "aten::huber_loss is slow", 1)
    similar.write_text(text, "utf-8")
    lacking = [what.en for demand in DEMANDS for _, what in demand.lacking(Folder(ascend))]
    assert len(lacking) == 1 and lacking[0].startswith(
        '"falls back to the CPU" in why of torch.nn.functional.huber_loss'
    )


def test_as_json(acme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ferry_vendors("--check", str(acme), "--format", "json", "--lang", "en") == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["demand"] for row in rows] == [demand.title.en for demand in DEMANDS]
    assert all(row["met"] is not bool(row["write"]) for row in rows)


def test_every_demand_speaks_both_languages(acme: Path) -> None:
    folder = Folder(acme)
    for demand in DEMANDS:
        assert demand.title.en and demand.title.zh != demand.title.en
        assert all(what.en and what.zh for _, what in demand.lacking(folder))
