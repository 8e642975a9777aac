"""What is read of runs from outside: how far they are, what they said last, whether the proof holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchferry.launch.parts import parts_in
from torchferry.proof.model import REFERENCE, ProgramRun, Proof, ProofRequest, ProofVerdict, VendorResult
from torchferry.proof.recordings import last_words
from torchferry.proof.runs import RecordedSteps, shown
from torchferry.proof.settings import ProofSettings, Weights

OWN = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nIndexError: out of range\n'
EARLIER = "Traceback (most recent call last):\nKeyError: 'x'\n\nDuring handling of the above exception:\n\n"
TORCHRUN = (
    "E1115 failed (exitcode: 1) local_rank: 0\nTraceback (most recent call last):\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", ""),
        ("Killed\n", "Killed"),
        (f"a warning\n{OWN}", OWN.rstrip()),
        (EARLIER + OWN, OWN.rstrip()),
        (OWN + TORCHRUN, (OWN + TORCHRUN.split("Traceback")[0]).rstrip()),
        (f"[rank1]: {OWN}", f"[rank1]: {OWN.rstrip()}"),
    ],
)
def test_the_last_words_of_a_run(tmp_path: Path, log: str, words: str) -> None:
    file = tmp_path / "stderr.txt"
    file.write_text(log)
    assert last_words(file) == words


def test_counting_steps_while_they_are_written(tmp_path: Path) -> None:
    counter = RecordedSteps(tmp_path)
    assert counter.count() == 0
    file = tmp_path / "1.steps"
    file.write_text("who\nstep\n")
    assert counter.count() == 1
    with file.open("a") as more:
        more.write("step\nste")
    (tmp_path / "2.steps").write_text("who\n")
    assert counter.count() == 2


def test_a_run_is_named_for_what_it_is(tmp_path: Path) -> None:
    said = {
        name: shown(name, tmp_path, 20, "en").sentence() for name in (REFERENCE, "ascend", "ascend-again")
    }
    assert said[REFERENCE].startswith("ferry: running the original on the CPU: ")
    assert said["ascend"].startswith("ferry: running the migrated program on ascend: ")
    again = "ferry: running the migrated program on ascend, once more with its operators: "
    assert said["ascend-again"].startswith(again)


def test_settings_travel_in_a_variable() -> None:
    settings = ProofSettings("/records", None, 3, Weights.LOAD, "/weights", 2, 1)
    assert parts_in(settings.environment()) == (settings,)
    assert parts_in({}) == ()


@pytest.mark.parametrize(
    ("verdicts", "exact", "holds"),
    [
        ([ProofVerdict.EQUAL, ProofVerdict.CLOSE], False, True),
        ([ProofVerdict.EQUAL, ProofVerdict.CLOSE], True, False),
        ([ProofVerdict.EQUAL, ProofVerdict.EQUAL], True, True),
        ([ProofVerdict.EQUAL, ProofVerdict.PARTED], False, False),
        ([ProofVerdict.CRASHED], False, False),
        ([ProofVerdict.UNREPEATABLE], False, False),
        ([ProofVerdict.INCOMPARABLE], False, False),
    ],
)
def test_when_a_proof_holds(verdicts: list[ProofVerdict], exact: bool, holds: bool) -> None:
    run = ProgramRun(REFERENCE, 0, 1.0, "", "", ())
    request = ProofRequest(("train.py",), "", ("ascend",), 20, 0, 0, False, exact, None, None)
    result = VendorResult("ascend", "npu", ProofVerdict.EQUAL, run, 1)
    results = tuple(replace(result, verdict=verdict) for verdict in verdicts)
    assert Proof(request, run, results, "2.13.0", "2026-11-15").holds is holds
