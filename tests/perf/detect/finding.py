"""Runs one detector, as tests need it."""

from __future__ import annotations

from torchferry.perf.detect.model import Detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run


def found(detector: Detector, run: Run) -> list[Diagnosis]:
    """Everything it says of a run that holds what it needs."""
    assert detector.lacks(run) is None
    return list(detector.detect(run))


def the(detector: Detector, run: Run) -> Diagnosis:
    """The only diagnosis, with the properties that every one has."""
    (diagnosis,) = found(detector, run)
    assert diagnosis.id == detector.id
    assert diagnosis.remedies
    assert 0 <= diagnosis.share <= 1
    assert (diagnosis.gain is None) == (diagnosis.gain_basis is None)
    for text in (diagnosis.title, diagnosis.summary, *diagnosis.remedies):
        assert text.en and text.zh and "{" not in text.en + text.zh
    return diagnosis


SIMULATED = {"device": "npu", "simulated": True}  # of run.json
