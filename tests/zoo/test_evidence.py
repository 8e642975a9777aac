"""What is read from the files of a run, and how two of them compare."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from torchferry.errors import InputError
from torchferry.zoo.delivery import licence_name
from torchferry.zoo.evidence import RunEvidence, Step, StepCurve, compare, read_evidence


@pytest.mark.parametrize(
    ("line", "losses"),
    [
        ("step 3: loss 1.391128", (1.391128,)),
        ("Train Epoch: 1 [4/16]\tLoss: 0.693", (0.693,)),
        ("loss=2.5e-3, lr=0.1", (0.0025,)),
        ("{'loss': 0.25, 'epoch': 1}", (0.25,)),
        ("Loss 0.5 (0.6)", (0.5,)),
        ("val_loss: 0.7", ()),
        ("Test set: average loss 0.6931, accuracy 0.9", ()),
        ("Epoch: 0 Iteration: 3  rank : 0  train.loss : 0.53  train.ips : 10.4 imgs/s", (0.53,)),
        ("rank : 3  train.loss : 0.60", ()),
        ("losses are fine 3", ()),
        ("loss: nan", (math.nan,)),
    ],
)
def test_lines_of_a_log(tmp_path: Path, line: str, losses: tuple[float, ...]) -> None:
    file = tmp_path / "train.log"
    file.write_text(f"{line}\nAcc@1 10.0\n")
    found = read_evidence(file).curves.get("loss", StepCurve(()))
    assert str(found.values) == str(losses)


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
        (
            "e.jsonl",
            'DLLL {"type": "LOG", "step": [0, 0], "data": {"rank": 0, "train.loss": 2.0, "train.lr": 1}}\n'
            "DLLL {\"step\": [0, 1], \"data\": \"{'rank': '0', 'train.loss': '1.5', 'top1': '20'}\"}\n"
            'DLLL {"step": [0, 1], "data": {"rank": 1, "train.loss": 9.0}}\n',
        ),
        ("d.json", RunEvidence({"loss": StepCurve((2.0, 1.5))}, {"acc1": 20.0}).to_json()),
    ],
)
def test_forms(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = read_evidence(tmp_path / name)
    losses = {name: curve.values for name, curve in found.curves.items()}
    assert (losses, dict(found.metrics)) == ({"loss": (2.0, 1.5)}, {"acc1": 20.0})


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
    with pytest.raises(InputError, match=r"no loss, accuracy or throughput|is not JSON|damaged"):
        read_evidence(tmp_path / name)
    with pytest.raises(InputError, match="can't be read"):
        read_evidence(tmp_path / "absent.log")


def judged(original: RunEvidence, port: RunEvidence) -> dict[str, bool | None]:
    return {row.name: row.holds for row in compare(original, port, 0.05, 0.0002)}


def loss(*values: float, steps: tuple[Step, ...] = ()) -> RunEvidence:
    return RunEvidence({"loss": StepCurve(values, steps)})


def test_curves() -> None:
    original = loss(2.0, 1.0)
    assert judged(original, loss(2.05, 1.04)) == {"loss": True}
    assert judged(original, loss(2.2, 1.2)) == {"loss": False}
    assert judged(original, loss(1.0, 0.5)) == {"loss": True}  # better
    assert judged(original, loss(2.0, math.nan)) == {"loss": False}
    assert judged(loss(1e-6, 0.0), loss(2e-6, 1e-6)) == {"loss": True}
    other = RunEvidence({"val_loss": StepCurve((1.0,))})
    assert judged(original, other) == {"loss": None, "val_loss": None}


def test_steps_are_compared_by_their_numbers() -> None:
    def steps(*numbers: int) -> tuple[Step, ...]:
        return tuple((0, number) for number in numbers)

    every = loss(8.0, 6.0, 4.0, 2.0, steps=steps(0, 1, 2, 3))
    second = loss(8.0, 4.0, steps=steps(0, 2))
    (row,) = compare(every, second, 0.05, 0.0)
    assert (row.holds, row.steps, row.lengths, row.difference) == (True, 2, (4, 2), 0.0)
    from_one = loss(8.0, 6.0, 4.0, 2.0, steps=steps(1, 2, 3, 4))
    assert next(compare(every, from_one, 0.05, 0.0)).steps == 4
    later = loss(1.0, 1.0, steps=steps(100, 200))
    assert next(compare(every, later, 0.05, 0.0)).holds is None


def test_an_accuracy_in_percent_is_the_same() -> None:
    share, percent = RunEvidence({}, {"acc1": 0.761}), RunEvidence({}, {"acc1": 70.0})
    assert judged(share, percent) == {"acc1": False}
    assert judged(percent, share) == {"acc1": True}


def test_a_log_of_several_processes(tmp_path: Path) -> None:
    file = tmp_path / "sdaa.log"
    file.write_text(
        "TCAPPDLL 2025-05-15 14:20 - Epoch: 0 Iteration: 0  rank : 0  train.loss : 0.5 "
        "TCAPPDLL 2025-05-15 14:20 - Epoch: 0 Iteration: 0  rank : 3  train.loss : 9.0\n"
        "06/19 - mmengine - INFO - Epoch(train) [1][100/500] loss: 7.0\n"
        "TCAPPDLL 2025-05-15 14:21 - Epoch: 0 Iteration: 1  rank : 0  train.loss : 0.4\n"
    )
    assert read_evidence(file).curves["loss"] == StepCurve((0.5, 0.4), ((0, 0), (0, 1)))


def test_a_log_of_windows(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes("step 0 loss 2.0\r\nstep 1 loss 1.0\r\n".encode("utf-16"))
    assert read_evidence(tmp_path / "a.log").curves["loss"].values == (2.0, 1.0)


def test_figures_have_a_sense() -> None:
    original = RunEvidence({}, {"acc1": 76.0, "wer": 5.0, "images/s": 900.0, "score": 3.0})
    same = judged(original, RunEvidence({}, {"acc1": 75.9, "wer": 5.02, "images/s": 1.0, "score": 3.0}))
    assert same == {"acc1": True, "wer": True, "images/s": None, "score": True}
    better = judged(original, RunEvidence({}, {"acc1": 90.0, "wer": 1.0, "score": 4.0}))
    assert better == {"acc1": True, "wer": True, "images/s": None, "score": False}
    worse = judged(original, RunEvidence({}, {"acc1": 70.0, "wer": 6.0, "score": 2.0}))
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
