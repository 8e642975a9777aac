"""What is read from the files of a run, and how two of them compare."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from torchferry.errors import InputError
from torchferry.zoo.evidence.compare import compare
from torchferry.zoo.evidence.model import Evidence
from torchferry.zoo.evidence.reading import read_evidence
from torchferry.zoo.licences import licence_name


@pytest.mark.parametrize(
    ("line", "losses"),
    [
        ("step 3: loss 1.391128", (1.391128,)),
        ("Train Epoch: 1 [4/16]\tLoss: 0.693", (0.693,)),
        ("loss=2.5e-3, lr=0.1", (0.0025,)),
        ("{'loss': 0.25, 'epoch': 1}", (0.25,)),
        ("Loss 0.5 (0.6)", (0.5,)),
        ("val_loss: 0.7", ()),
        ("losses are fine 3", ()),
        ("loss: nan", (math.nan,)),
    ],
)
def test_lines_of_a_log(tmp_path: Path, line: str, losses: tuple[float, ...]) -> None:
    file = tmp_path / "train.log"
    file.write_text(f"{line}\nAcc@1 10.0\n")
    found = read_evidence(file).curves.get("loss", ())
    assert str(found) == str(losses)


def test_figures_of_a_log(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_text(
        "Acc@1 10.0 Acc@5 20.0\r100 img/s\r300 images/sec\nTop-1: 70.5\n200 imgs/s\nmIoU = 41.2\n"
    )
    assert read_evidence(file).metrics == {
        "acc1": 70.5,
        "acc5": 20.0,
        "images/s": 200.0,
        "miou": 41.2,
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "step,loss,acc1\n0,2.0,10\n1,1.5,20\n"),
        ("a.json", '{"loss": [2.0, 1.5], "acc1": 20, "epoch": 3}'),
        ("b.json", '{"curves": {"loss": [2.0, 1.5]}, "metrics": {"acc1": 20}}'),
        ("c.json", '[{"step": 0, "loss": 2.0}, {"step": 1, "loss": 1.5, "acc1": 20}]'),
        ("a.jsonl", '{"step": 0, "loss": 2.0}\n\n{"step": 1, "loss": 1.5, "acc1": 20}\n'),
        ("d.json", Evidence({"loss": (2.0, 1.5)}, {"acc1": 20.0}).to_json()),
    ],
)
def test_forms(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = read_evidence(tmp_path / name)
    assert (dict(found.curves), dict(found.metrics)) == ({"loss": (2.0, 1.5)}, {"acc1": 20.0})


def test_an_analysis(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        '{"format": "torchferry-analysis", "runs": [{"steps": [{}, {}, {}, {}], "seconds": 2.0, "simulated": true}]}'
    )
    found = read_evidence(tmp_path / "a.json")
    assert (dict(found.metrics), found.simulated) == ({"steps/s": 2.0}, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{"),
        ("a.json", "3"),
        ("a.json", "[" * 100_000),
        ("a.json", '{"format": "torchferry-evidence", "curves": [1]}'),
        ("a.json", '{"holds": true, "reference": 1, "results": []}'),
        ("a.csv", ""),
        ("a.csv", "a,b\n1,2,3,4\n"[4:]),
        ("a.log", ""),
    ],
)
def test_nothing_to_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"no loss, accuracy or throughput|is no JSON|is damaged"):
        read_evidence(tmp_path / name)
    with pytest.raises(InputError, match="can't be read"):
        read_evidence(tmp_path / "absent.log")


def judged(original: Evidence, port: Evidence) -> dict[str, bool | None]:
    return {row.name: row.holds for row in compare(original, port, 0.05, 0.0002)}


def test_curves() -> None:
    original = Evidence({"loss": (2.0, 1.0)})
    assert judged(original, Evidence({"loss": (2.05, 1.04)})) == {"loss": True}
    assert judged(original, Evidence({"loss": (2.2, 1.2)})) == {"loss": False}
    assert judged(original, Evidence({"loss": (1.0, 0.5)})) == {"loss": True}  # better
    assert judged(original, Evidence({"loss": (2.0, math.nan)})) == {"loss": False}
    assert judged(Evidence({"loss": (1e-6, 0.0)}), Evidence({"loss": (2e-6, 1e-6)})) == {"loss": True}
    assert judged(original, Evidence({"val_loss": (1.0,)})) == {"loss": None, "val_loss": None}


def test_figures_have_a_sense() -> None:
    original = Evidence({}, {"acc1": 76.0, "wer": 5.0, "images/s": 900.0, "score": 3.0})
    same = judged(original, Evidence({}, {"acc1": 75.9, "wer": 5.02, "images/s": 1.0, "score": 3.0}))
    assert same == {"acc1": True, "wer": True, "images/s": None, "score": True}
    better = judged(original, Evidence({}, {"acc1": 90.0, "wer": 1.0, "score": 4.0}))
    assert better == {"acc1": True, "wer": True, "images/s": None, "score": False}
    worse = judged(original, Evidence({}, {"acc1": 70.0, "wer": 6.0, "score": 2.0}))
    assert (worse["acc1"], worse["wer"], worse["score"]) == (False, False, False)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Apache License\n  Version 2.0, January 2004", "Apache-2.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE", "LGPL"),
        ("Redistribution and use in source and binary forms ... Neither the name of", "BSD-3-Clause"),
        ("do what you like", ""),
    ],
)
def test_licences(text: str, name: str) -> None:
    assert licence_name(text) == name
