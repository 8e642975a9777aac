"""The verdict on two runs, from recordings that were written by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from torchferry.proof.compare import EXACT, ProofComparison, Tolerance, compare
from torchferry.proof.model import (
    LossRecord,
    NamedFacts,
    ProcessIdentity,
    ProofVerdict,
    StepRecord,
    TensorFacts,
    What,
)
from torchferry.proof.recordings import find_recordings, identity_line, step_line, summary

Steps = list[StepRecord]


def tensor(value: float, dtype: str = "float32", shape: tuple[int, ...] = (4,)) -> TensorFacts:
    """Facts of a tensor whose elements are all the same; its projections are those of one element."""
    norm = abs(value) * math.sqrt(math.prod(shape))
    return TensorFacts(shape, dtype, f"{dtype}{shape}{value}", norm, (norm, -norm, norm))


def step(ordinal: int, value: float = 1.0, **changed: object) -> StepRecord:
    """A step in which every tensor has this value."""
    one = StepRecord(
        ordinal=ordinal,
        optimizer=0,
        optimizer_type="SGD",
        losses=(LossRecord(value, tensor(value, shape=()), "train.py:9"),),
        skipped=0,
        gradients=(NamedFacts("weight", tensor(value)), NamedFacts("bias", None)),
        parameters=(NamedFacts("weight", tensor(value)), NamedFacts("bias", tensor(value))),
        buffers=(NamedFacts("mean", tensor(value)),),
    )
    return replace(one, **changed)  # type: ignore[arg-type]


def write(folder: Path, steps: Steps, rank: int | None = None, restart: int = 0) -> None:
    """A recording of one process."""
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    identity = ProcessIdentity(rank, "main", 1000 + number, number, restart, "2.13.0")
    lines = identity_line(identity) + "".join(map(step_line, steps))
    (folder / f"{number}.steps").write_text(lines)


def compared(
    folder: Path, reference: Steps, migrated: Steps, tolerance: Tolerance | None = None
) -> ProofComparison:
    write(folder / "reference", reference)
    write(folder / "migrated", migrated)
    runs = [find_recordings(folder / name) for name in ("reference", "migrated")]
    return compare(*runs, tolerance or Tolerance())


THREE = [step(1, 1.0), step(2, 2.0), step(3, 3.0)]


def test_equal_bit_for_bit(tmp_path: Path) -> None:
    found = compared(tmp_path, THREE, THREE)
    assert found == ProofComparison(ProofVerdict.EQUAL, 3)


def test_a_nan_that_both_have_is_equal(tmp_path: Path) -> None:
    steps = [step(1, math.nan)]
    assert compared(tmp_path, steps, steps).verdict is ProofVerdict.EQUAL


def test_close_names_the_largest_difference(tmp_path: Path) -> None:
    weight, bias = NamedFacts("weight", tensor(2.000001)), NamedFacts("bias", tensor(2.000002))
    found = compared(tmp_path, THREE, [THREE[0], replace(THREE[1], parameters=(weight, bias)), THREE[2]])
    assert (found.verdict, found.compared_steps) == (ProofVerdict.CLOSE, 3)
    assert found.largest is not None
    assert (found.largest.name, found.largest.step) == ("bias", 2)
    assert found.largest.relative == pytest.approx(1e-6, rel=1e-3)


def test_what_is_close_is_not_exact(tmp_path: Path) -> None:
    found = compared(tmp_path, [step(1, 2.0)], [step(1, 2.000001)], EXACT)
    assert found.verdict is ProofVerdict.PARTED


@pytest.mark.parametrize(
    ("changed", "what", "name"),
    [
        ({"losses": (LossRecord(2.1, tensor(2.1, shape=()), "other.py:3"),)}, What.LOSS, "train.py:9"),
        (
            {"gradients": (NamedFacts("weight", tensor(2.1)), NamedFacts("bias", None))},
            What.GRADIENT,
            "weight",
        ),
        ({"gradients": (NamedFacts("weight", None), NamedFacts("bias", None))}, What.GRADIENT, "weight"),
        (
            {"parameters": (NamedFacts("weight", tensor(2.0)), NamedFacts("bias", tensor(math.nan)))},
            What.PARAMETER,
            "bias",
        ),
        ({"buffers": (NamedFacts("mean", tensor(2.1)),)}, What.BUFFER, "mean"),
    ],
)
def test_parted(tmp_path: Path, changed: dict[str, object], what: What, name: str) -> None:
    found = compared(tmp_path, THREE, [THREE[0], step(2, 2.0, **changed), step(3, 9.0)])
    assert found.verdict is ProofVerdict.PARTED
    assert found.parting is not None
    assert (found.parting.what, found.parting.name, found.parting.step) == (what, name, 2)
    assert found.parting.distance > found.parting.tolerance


def test_the_first_rank_and_step_that_parted(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path / "reference", THREE, rank)
    write(tmp_path / "migrated", [THREE[0], step(2, 9.0), step(3, 9.0)], 1)
    write(tmp_path / "migrated", [*THREE[:2], step(3, 9.0)], 0)
    found = compare(*(find_recordings(tmp_path / name) for name in ("reference", "migrated")), Tolerance())
    assert found.parting is not None
    assert (found.parting.rank, found.parting.step) == (1, 2)


def test_the_coarser_of_two_dtypes_decides(tmp_path: Path) -> None:
    narrow = step(
        1, parameters=(NamedFacts("weight", tensor(1 + 1e-6, "float32")),), gradients=(), buffers=()
    )
    wide = replace(narrow, parameters=(NamedFacts("weight", tensor(1.0, "float64")),))
    assert compared(tmp_path, [wide], [narrow]).verdict is ProofVerdict.CLOSE


def test_whole_numbers_must_be_equal(tmp_path: Path) -> None:
    counts = [step(1, buffers=(NamedFacts("count", tensor(value, "int64")),)) for value in (1e6, 1e6 + 1)]
    found = compared(tmp_path, counts[:1], counts[1:], Tolerance(rtol=0.1))
    assert found.verdict is ProofVerdict.PARTED


@pytest.mark.parametrize(
    ("migrated", "says"),
    [
        (THREE[:2], "the original made 3 optimizer steps, the migrated run 2"),
        ([*THREE, step(4)], "the original made 3 optimizer steps, the migrated run 4"),
        (
            [step(1, optimizer=1)],
            "step 1 is a step of optimizer 0 (SGD) in the original, of optimizer 1 (SGD)",
        ),
        ([step(1, losses=THREE[0].losses * 2, skipped=1)], "(steps skipped by GradScaler: 0 and 1)"),
        (
            [step(1, parameters=(), gradients=())],
            "the original's optimizer has 2 parameters, the migrated run's 0",
        ),
        (
            [
                step(
                    1,
                    parameters=(
                        NamedFacts("w", tensor(1.0, shape=(2, 2))),
                        NamedFacts("b", tensor(1.0)),
                    ),
                )
            ],
            "the shape of weight is [4] in the original, [2, 2] in the migrated run",
        ),
    ],
)
def test_incomparable(tmp_path: Path, migrated: Steps, says: str) -> None:
    found = compared(tmp_path, THREE, migrated)
    assert found.verdict is ProofVerdict.INCOMPARABLE
    assert found.reason is not None
    assert says in found.reason.en
    assert not {"{", "}"} & set(found.reason.en + found.reason.zh)


def test_other_processes(tmp_path: Path) -> None:
    write(tmp_path / "reference", THREE, 0)
    write(tmp_path / "reference", THREE, 1)
    write(tmp_path / "migrated", THREE, 0)
    found = compare(*(find_recordings(tmp_path / name) for name in ("reference", "migrated")), Tolerance())
    assert found.reason is not None
    assert "rank 0, 1 in the original, rank 0 in the migrated run" in found.reason.en


@pytest.mark.parametrize(("rank", "hints"), [(0, True), (None, False)])
def test_a_program_that_became_one_for_several_cards(tmp_path: Path, rank: int | None, hints: bool) -> None:
    write(tmp_path / "reference", THREE, None if hints else 0)
    write(tmp_path / "migrated", THREE, rank)
    found = compare(*(find_recordings(tmp_path / name) for name in ("reference", "migrated")), Tolerance())
    assert found.reason is not None
    assert ["--distributed" in said for said in found.reason] == [hints, hints]


def test_buffers_that_only_one_run_shows_are_left_out(tmp_path: Path) -> None:
    assert compared(tmp_path, [step(1)], [step(1, buffers=())]).verdict is ProofVerdict.EQUAL


def test_only_the_beginning(tmp_path: Path) -> None:
    write(tmp_path / "whole", THREE)
    write(tmp_path / "beginning", THREE[:2])
    whole, beginning = (find_recordings(tmp_path / name) for name in ("whole", "beginning"))
    assert compare(whole, beginning, EXACT, until=2).verdict is ProofVerdict.EQUAL
    assert compare(whole, beginning, EXACT).verdict is ProofVerdict.INCOMPARABLE


def test_recordings_are_read_as_they_were_written(tmp_path: Path) -> None:
    steps = [step(1, 0.1), step(2, 1 / 3), step(3, math.inf)]
    write(tmp_path / "run", steps)
    (recording,) = find_recordings(tmp_path / "run")
    assert list(recording.steps()) == steps
    with recording.path.open("a") as file:
        file.write(step_line(step(4))[:50])  # killed while it wrote
    assert len(list(recording.steps())) == 3


def test_of_a_restarted_run_the_last_attempt_counts(tmp_path: Path) -> None:
    write(tmp_path / "run", THREE, 0, restart=0)
    write(tmp_path / "run", THREE[:1], 0, restart=1)
    (recording,) = find_recordings(tmp_path / "run")
    assert len(list(recording.steps())) == 1


def test_a_summary(tmp_path: Path) -> None:
    write(tmp_path / "run", [step(1, 3.0), step(2, 3.0, optimizer=1, optimizer_type="Adam")])
    told = summary(find_recordings(tmp_path / "run")[0])
    assert told.optimizers == ("SGD", "Adam")
    assert [each.losses for each in told.steps] == [(3.0,), (3.0,)]
    assert told.steps[0].gradient_norm == 6.0
    assert told.steps[0].checksum == told.steps[1].checksum
