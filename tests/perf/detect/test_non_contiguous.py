"""Copies that make tensors contiguous, proved by strides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, real_run
from torchferry.perf.detect.conversions import Copied, copied
from torchferry.perf.detect.non_contiguous import DETECTOR
from torchferry.perf.model import Impact, in_words
from torchferry.traces.model import TraceSignature

ROWS, PLAIN, TRANSPOSED = [64, 32], [32, 1], [1, 64]
IMAGE, CHANNELS_LAST = [2, 3, 4, 5], [60, 1, 15, 3]


def copy(source: list[int], target: list[int], dims: list[int], types: tuple[str, str]) -> TraceSignature:
    return TraceSignature([dims, dims, []], [*types, "Scalar"], [target, source, []], [])


@pytest.mark.parametrize(
    ("source", "target", "dims", "types", "expected"),
    [
        (PLAIN, PLAIN, ROWS, ("float", "float"), Copied.NOTHING),
        (
            [1, 7],
            [9, 1],
            [1, 1],
            ("float", "float"),
            Copied.NOTHING,
        ),  # strides of single elements mean nothing
        (TRANSPOSED, PLAIN, ROWS, ("float", "float"), Copied.ORDER),
        ([128, 1], PLAIN, ROWS, ("float", "float"), Copied.ORDER),  # a slice: gaps between the rows
        ([0, 1], PLAIN, ROWS, ("float", "float"), Copied.REPEATED),
        (CHANNELS_LAST, [60, 20, 5, 1], IMAGE, ("float", "float"), Copied.LAYOUT),
        ([60, 20, 5, 1], CHANNELS_LAST, IMAGE, ("float", "float"), Copied.LAYOUT),
        (PLAIN, TRANSPOSED, ROWS, ("float", "float"), Copied.TARGET),
        (TRANSPOSED, PLAIN, ROWS, ("c10::Half", "float"), Copied.TYPE),
    ],
)
def test_what_a_copy_is_for(
    source: list[int], target: list[int], dims: list[int], types: tuple[str, str], expected: Copied
) -> None:
    assert copied(copy(source, target, dims, types)) is expected


def test_without_strides_nothing_is_said() -> None:
    assert copied(TraceSignature([ROWS, ROWS], ["float", "float"], [], [])) is Copied.UNKNOWN


def contiguous(
    strides: list[int], wrapper: str = "aten::contiguous", caller: str = "", kernels: bool = False
) -> TraceBuilder:
    """Two steps of 1000 µs, in each of which a tensor is copied for 200 µs."""
    built = TraceBuilder()
    given = {"dims": [ROWS], "types": ["float"], "strides": [strides]}
    both = {"dims": [ROWS, ROWS], "types": ["float", "float"], "strides": [PLAIN, strides]}
    for number, start in enumerate((0, 1000)):
        built.step(number, start, 1000)
        built.python("train.py(7): forward", start, 1000)
        built.op("aten::mm", start + 10, 500, dims=[ROWS, [32, 8]], types=["float", "float"])
        if caller:
            built.op(caller, start + 590, 220)
        if wrapper:
            built.op(wrapper, start + 600, 200, **given)
        built.op("aten::copy_", start + 650, 150, **both)
        if kernels:
            built.kernel("gemm", start + 50, 400, launched=start + 20)
            built.kernel("direct_copy", start + 700, 100, launched=start + 660)
    return built


@pytest.mark.parametrize("strides", [PLAIN])
def test_a_copy_of_a_contiguous_tensor(tmp_path: Path, strides: list[int]) -> None:
    assert not found(DETECTOR, contiguous(strides, "aten::clone").run(tmp_path))


def test_a_tensor_that_goes_to_another_device(tmp_path: Path) -> None:
    assert not found(DETECTOR, contiguous(TRANSPOSED, "aten::to").run(tmp_path))


def test_a_copy_that_an_operator_needs_itself(tmp_path: Path) -> None:
    assert not found(DETECTOR, contiguous([0, 1], "", "aten::addmm").run(tmp_path))


def test_a_transposed_tensor(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, contiguous(TRANSPOSED).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.2)
    assert diagnosis.severity is Impact.HIGH
    (evidence,) = diagnosis.evidence
    assert evidence.what == "aten::contiguous"
    assert evidence.place == "train.py:7(forward)"
    assert evidence.count == 2
    assert in_words(evidence.detail, "en") == "64×32 float32, strides (1, 64)"
    assert in_words(evidence.detail, "zh") == "64×32 float32，步长 (1, 64)"


def test_on_a_device_its_time_counts(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, contiguous(TRANSPOSED, kernels=True).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.1)


def test_an_expanded_tensor_is_said_to_be_one(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, contiguous([0, 1], "aten::reshape").run(tmp_path))
    assert "2 of them materialize an expanded tensor" in diagnosis.summary.en
    assert in_words(diagnosis.evidence[0].detail, "en").endswith("expanded")
    assert any(".expand()" in remedy.en for remedy in diagnosis.remedies)


def test_a_real_model_with_transposed_attention() -> None:
    diagnosis = the(DETECTOR, real_run(LANGUAGE_MODEL))
    place = diagnosis.evidence[0].place
    assert place == "transformers/integrations/sdpa_attention.py:18(sdpa_attention_forward)"
    assert diagnosis.evidence[0].count == 72


def test_a_trace_of_2021_has_no_strides() -> None:
    missing = DETECTOR.lacks(real_run(FAST_LOADER))
    assert missing is not None and "strides" in missing.en
