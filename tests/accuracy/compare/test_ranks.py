"""One process against several: a right run is quiet, and of a wrong one the first place is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.accuracy.compare.parallel import held, trained
from torchferry.accuracy.compare.layouts import Way
from torchferry.accuracy.compare.sides import grouped
from torchferry.accuracy.compare.stages import Outcome, RanksComparison, StepStage
from torchferry.accuracy.file.reader import rank_files
from torchferry.cli.main import main


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps in one process."""
    return trained(tmp_path_factory.mktemp("one"), 1, steps=2)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in two processes with DistributedDataParallel."""
    return trained(tmp_path_factory.mktemp("two"), 2, steps=2)


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In two processes whose gradients are not divided."""
    return trained(tmp_path_factory.mktemp("summed"), 2, "by hand", "summed")


def first(found: RanksComparison) -> tuple[str, str]:
    """The stage where they part first, and what is said of it."""
    assert found.culprit is not None
    stage = found.stages[found.culprit]
    assert stage.outcome is Outcome.PARTS and stage.step == 1 and stage.why is not None and stage.why.zh
    return stage.stage.value, stage.why.en


def test_right_processes_are_quiet(one: Path, two: Path) -> None:
    found = held(two, one)
    assert found.culprit is None
    assert {each.outcome for each in found.stages} == {Outcome.FITS}
    assert [each.stage for each in found.stages] == [*StepStage, *StepStage]  # in both steps
    assert found.division is not None and "DistributedSampler" in found.division.en
    ways = {(each.role, each.layout.way) for each in found.layouts}
    assert {("activation", Way.ROWS), ("gradient of a rank", Way.MEAN), ("gradient", Way.SAME)} <= ways
    swapped = held(one, two)
    assert swapped.culprit is None and len(swapped.many.headers) == 2


def test_gradients_that_are_not_divided(one: Path, summed: Path) -> None:
    stage, why = first(held(summed, one))
    assert stage == "reduction"
    assert (
        why
        == "gradients are 2 times too large: summed over the ranks instead of averaged (14 of 14 gradients)"
    )


def test_a_parameter_that_is_left_out(one: Path, tmp_path: Path) -> None:
    stage, why = first(held(trained(tmp_path, 2, "by hand", "left out"), one))
    assert stage == "reduction" and why.startswith("no. 7, two.up, float32[32,12] is not reduced")
    assert "(1 of 14 gradients)" in why


MISTAKES = {
    ("by hand", "lost"): (
        "reduction",
        "the reduced gradients do not include those of rank 1 (14 of 14 gradients)",
    ),
    ("by hand", "weights"): ("parameters", "the ranks start with different weights"),
    ("ddp", "twice"): ("batch", "sample 0 of the batch is on several ranks (0, 1); sample 1 is on no rank"),
    ("ddp", "same batch"): ("batch", "sample 0, 1, 2, 3 of the batch is on several ranks"),
    ("ddp", "wrong kernel"): ("forward", "aten::gelu itself computes wrong results on rank 1 of 2.h5: "),
    ("ddp", "one more call"): ("forward", "input/self of aten::_log_softmax differs on the ranks"),
    ("ddp", "uneven"): (
        "loss",
        "the mean of the ranks' means is not the mean of all samples: the ranks have 5, 3 samples",
    ),
    ("ddp", "loss times two"): (
        "reduction",
        "gradients are 2 times the correct value: averaging is correct",
    ),
    ("ddp", "learning rate"): ("optimizer", "the optimizer's step has different arguments"),
}
OF_BOTH = {  # what makes the program in one process another one, too
    "batch norm": ("forward", "BatchNorm is not synchronized"),
    "ignored labels": ("loss", "each rank divides its loss by its own count"),
    "sum of losses": ("reduction", "gradients are 0.5 times the correct value: averaged over the ranks"),
}


@pytest.mark.long
@pytest.mark.parametrize(("way", "mistake"), list(MISTAKES))
def test_mistakes_of_several_processes(one: Path, tmp_path: Path, way: str, mistake: str) -> None:
    stage, why = first(held(trained(tmp_path, 2, way, mistake), one))
    assert (stage, why[: len(MISTAKES[way, mistake][1])]) == MISTAKES[way, mistake]


@pytest.mark.long
@pytest.mark.parametrize("mistake", list(OF_BOTH))
def test_what_can_t_be_the_same_in_several_processes(tmp_path: Path, mistake: str) -> None:
    stage, why = first(held(trained(tmp_path, 2, "ddp", mistake), trained(tmp_path, 1, "ddp", mistake)))
    assert (stage, why[: len(OF_BOTH[mistake][1])]) == OF_BOTH[mistake]


@pytest.mark.long
def test_a_lost_rank_of_four(one: Path, tmp_path: Path) -> None:
    found = held(trained(tmp_path, 4, "by hand", "lost"), one)
    assert first(found)[1].startswith("the reduced gradients do not include those of rank 3 (14 of")
    assert found.culprit is not None and found.stages[found.culprit].rank == 3


@pytest.mark.long
def test_other_random_numbers_are_no_fault(tmp_path: Path) -> None:
    found = held(trained(tmp_path, 2, "ddp", "dropout"), trained(tmp_path, 1, "ddp", "dropout"))
    assert found.culprit is not None
    stage = found.stages[found.culprit]
    assert (stage.stage, stage.outcome) == (StepStage.FORWARD, Outcome.RANDOM)
    assert stage.spot is not None and stage.spot.module == "one.drop"


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "world", "mistake"),
    [
        ("ddp", 4, ""),
        ("ddp", 2, "contiguous"),
        ("ddp", 2, "bucket view"),
        ("by hand", 2, ""),
        ("fsdp", 2, ""),
        ("zero", 2, ""),
        ("tp", 2, ""),
    ],
)
def test_controls(one: Path, tmp_path: Path, way: str, world: int, mistake: str) -> None:
    found = held(trained(tmp_path, world, way, mistake, steps=2), one)
    assert {each.outcome for each in found.stages} == {Outcome.FITS}
    is_tensor_parallel = way == "tp"  # whose optimizer makes calls of its own
    assert {each.stage for each in found.stages} | {StepStage.OPTIMIZER} == set(StepStage)
    assert any("the optimizers make different calls" in note.en for note in found.notes) is is_tensor_parallel


@pytest.mark.long
@pytest.mark.parametrize("mistake", ["clipped", "accumulated"])
def test_controls_of_both(tmp_path: Path, mistake: str) -> None:
    found = held(trained(tmp_path, 2, "ddp", mistake, 2), trained(tmp_path, 1, "ddp", mistake, 2))
    assert {each.outcome for each in found.stages} == {Outcome.FITS}
    assert any("accumulates" in note.en for note in found.notes) is (mistake == "accumulated")


@pytest.mark.long
def test_layouts_against_layouts(two: Path, tmp_path: Path) -> None:
    four = trained(tmp_path / "four", 4)
    sharded, parallel = (trained(tmp_path / way, 2, way) for way in ("fsdp", "tp"))
    for mine, golden in ((four, two), (sharded, parallel), (parallel, sharded), (sharded, two)):
        found = held(mine, golden)
        assert {each.outcome for each in found.stages} == {Outcome.FITS}, (mine, golden)
        assert {StepStage.FORWARD, StepStage.BACKWARD, StepStage.REDUCTION} <= {
            each.stage for each in found.stages
        }


# The command.


def test_the_command_takes_all_files_of_a_run(
    one: Path, two: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    files = [str(each) for each in rank_files(two)]
    for words in (
        [str(two), str(one)],
        [*files, str(one)],
        [str(one), *files],
        ["--mine", str(two), "--golden", str(one)],
    ):
        assert main(["compare", *words, "-q"]) == 0
        assert capsys.readouterr().out.startswith(
            "no difference except rounding: together, the 2 processes of "
        )
    assert main(["compare", str(two), str(one), files[0], files[1], str(tmp_path / "a.h5")]) == 2
    assert "one record too many" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_judges_ranks_by_themselves(
    one: Path, two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(each) for each in rank_files(two)]
    assert main(["compare", *files, "-q", "--lang", "en"]) == 0  # without golden
    assert "rank 1: " in capsys.readouterr().out
    for golden in (str(two), str(one)):  # a rank alone is compared as it is
        assert main(["compare", files[0], golden, "-q", "--lang", "en"]) in (0, 3)
        assert "processes" not in capsys.readouterr().out


def test_files_of_one_run_are_one_side() -> None:
    def sides(*names: str) -> list[tuple[str, int]]:
        return [(str(each.name), len(each.files)) for each in grouped([Path(name) for name in names])]

    assert sides("a.h5", "b.h5") == [("a.h5", 0), ("b.h5", 0)]
    assert sides("a.rank0.h5", "b.rank0.h5") == [("a.rank0.h5", 0), ("b.rank0.h5", 0)]
    assert sides("a.rank0.h5", "a.rank1.h5", "b.h5") == [("a.h5", 2), ("b.h5", 0)]
    assert sides("x/a.rank0.h5", "y/a.rank1.h5") == [("x/a.rank0.h5", 0), ("y/a.rank1.h5", 0)]
    assert sides("a.rank10.h5", "a.rank2.h5", "a.rank1.h5") == [("a.h5", 3)]


def test_reports_of_ranks(
    one: Path, summed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [tmp_path / f"a.{suffix}" for suffix in ("txt", "json", "csv", "xlsx", "html")]
    words = [word for name in names for word in ("-o", str(name))]
    assert main(["compare", str(summed), str(one), "-q", "--lang", "zh", *words]) == 1
    assert capsys.readouterr().out.startswith("第 1 步，梯度归约：梯度是应有值的 2 倍：各 rank 的梯度被求和")
    assert all(name.stat().st_size > 500 for name in names)
    said = "gradients are 2 times too large: summed over the ranks"
    assert said in (tmp_path / "a.html").read_text()
    document = json.loads((tmp_path / "a.json").read_text())
    stage = document["stages"][document["culprit"]]
    assert (document["verdict"], stage["stage"], stage["outcome"]) == ("parts", "reduction", "parts")
    assert said in document["said"]["en"] and said in stage["why"]["en"]
    assert main(["compare", str(summed), str(one), "-q", "--format", "msaccucmp"]) == 2
    assert "msaccucmp" in capsys.readouterr().err
