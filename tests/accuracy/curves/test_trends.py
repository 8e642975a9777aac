"""Curves hold what the file holds: sizes, trees of modules, runs of other lengths and steps, ranks, NaN, jumps."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.accuracy.curves.samples import BEGAN, COUNT, WatchedFile, watched
from torchferry.accuracy.compare.statistics import distance
from torchferry.accuracy.curves.reports import REPORTS, module_rows, notes_of, remarks
from torchferry.accuracy.curves.runs import StepFigures, WatchedRun
from torchferry.accuracy.curves.trends import FINE, CurveChoice, Trends, distances, spikes, trends_of
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Statistics
from torchferry.accuracy.watch import rows
from torchferry.errors import InputError


def said(trends: Trends) -> list[str]:
    """What stands out, in English."""
    return [remark.text.en for remark in remarks(trends)]


def test_figures_are_those_of_the_calls(tmp_path: Path) -> None:
    path = watched(tmp_path / "a.h5")
    run = WatchedRun(path)
    figures = run.figures(3, 7)
    numbers = {each.key: at for at, each in enumerate(run.series)}
    with open_record(path) as record:
        for call in record.calls:
            for tensor in call.outputs if 4 <= call.step <= 7 else ():
                column = numbers[call.operator, call.model, call.module, tensor.name.partition("/")[2]]
                for name in ("count", "nans", "zeros", "minimum", "maximum", "mean", "rms", "checksum"):
                    assert getattr(figures, name)[call.step - 4, column] == getattr(tensor.statistics, name)


def test_sizes_are_norms_numbers_and_ratios(tmp_path: Path) -> None:
    trend = trends_of([watched(tmp_path / "a.h5")]).runs[0]
    last = {each.key: trend.last[at] for at, each in enumerate(trend.series)}
    assert last[rows.LOSS, "", "", "output_0"] == 1 / 20
    assert last[rows.GRADIENT, "Net", "body.first", "weight"] == pytest.approx(0.1 * math.sqrt(COUNT))
    assert last[rows.PARAMETERS, "Net", "body.first", "weight"] == pytest.approx(16.0)
    assert last[rows.UPDATE, "Net", "body.first", "weight"] == pytest.approx(0.01 / 4)
    assert last[rows.MODULE, "Net", "body.first", "output_0"] == 0.5
    assert last[rows.SECONDS, "", "", ""] == 0.5


def test_a_module_has_the_norm_of_all_gradients_below_it(tmp_path: Path) -> None:
    trend = trends_of([watched(tmp_path / "a.h5")]).runs[0]
    last = {each.key: trend.last[at] for at, each in enumerate(trend.series)}
    of_one = math.sqrt(COUNT * (0.1**2 + 0.05**2))
    assert last[rows.GRADIENT, "Net", "body.first", ""] == pytest.approx(of_one)
    assert last[rows.GRADIENT, "Net", "body", ""] == pytest.approx(of_one * math.sqrt(2))
    assert last[rows.GRADIENT, "Net", "", ""] == last[rows.GRADIENT, "Net", "body", ""]
    assert (rows.PARAMETERS, "Net", "body.first", "") not in last  # it has one parameter


def test_calls_of_one_step_are_one_tensor(tmp_path: Path) -> None:
    file = WatchedFile(tmp_path / "a.h5")
    for value in (1.0, 3.0):
        file.put(1, rows.LOSS, None, "output_0", value)
        file.put(1, rows.MODULE, "cell", "output_0", value)
    file.end_step(1)
    file.writer.close()
    run = WatchedRun(tmp_path / "a.h5")
    figures = run.figures(0, 1)
    numbers = {each.row: at for at, each in enumerate(run.series)}
    assert figures.size[0, numbers[rows.LOSS]] == 2.0
    assert figures.size[0, numbers[rows.MODULE]] == pytest.approx(math.sqrt(5))
    assert figures.count[0, numbers[rows.MODULE]] == 2 * COUNT
    assert figures.maximum[0, numbers[rows.MODULE]] == 3.0


def test_a_step_that_is_not_whole_is_left_out(tmp_path: Path) -> None:
    file = WatchedFile(tmp_path / "a.h5")
    file.put(1, rows.LOSS, None, "output_0", 1.0)
    with pytest.raises(InputError, match="holds no complete step yet"):
        WatchedRun(tmp_path / "a.h5")
    file.end_step(1)
    file.put(2, rows.LOSS, None, "output_0", 1.0)
    assert WatchedRun(tmp_path / "a.h5").steps.tolist() == [1]


def test_many_steps_are_thinned_and_a_spike_stays(tmp_path: Path) -> None:
    file = WatchedFile(tmp_path / "a.h5")
    for step in range(1, 5001):
        file.put(step, rows.LOSS, None, "output_0", 100.0 if step == 3333 else 1.0 + step % 3 / 10)
        file.end_step(step)
    file.writer.close()
    trends = trends_of([tmp_path / "a.h5"])
    trend, axis = trends.runs[0], trends.whole_axis
    assert axis.size == 7 and len(axis.first) <= FINE and (axis.first[0], axis.last[-1]) == (1, 5000)
    column = trend.whole.columns.tolist().index(trend.column(rows.LOSS))
    high = trend.whole.high[:, column]
    place = int(high.argmax())
    assert high[place] == 100.0 and axis.first[place] <= 3333 <= axis.last[place]
    assert trend.whole.low[:, column].min() == 1.0
    assert trend.whole.middle[0, column] == pytest.approx(np.mean([1.1, 1.2, 1, 1.1, 1.2, 1, 1.1]))
    assert trend.spikes(rows.LOSS) == [3333]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0] * 40, []),
        ([float(step) for step in range(100)], []),  # it rises
        ([1.0, 1.1] * 20 + [5.0] + [1.0] * 5, [40]),
        ([1.0, 1.1] * 20 + [math.nan, 5.0], [41]),
        ([1.0, 9.0], []),  # nothing is known of what is usual
        ([1.0, 2.0] * 20 + [2.6], []),  # noise
    ],
)
def test_jumps(values: list[float], found: list[int]) -> None:
    assert spikes(np.array(values)).tolist() == found


def test_nan_is_found_where_it_begins(tmp_path: Path) -> None:
    trends = trends_of([watched(tmp_path / "a.h5", nan_from=7)])
    assert said(trends) == ["NaN first at step 7: Outputs, Net: body.second"]
    assert remarks(trends)[0].module == "Net: body.second"
    assert {row.label: row.first_bad for row in module_rows(trends)} == {
        "Net": None, "Net: body": None, "Net: body.first": None, "Net: body.second": 7,
    }  # fmt: skip
    assert said(trends_of([watched(tmp_path / "b.h5")])) == ["no NaN, no Inf"]


def test_what_a_gradscaler_skips_is_no_news(tmp_path: Path) -> None:
    file = WatchedFile(tmp_path / "a.h5")
    for step in (1, 2):
        file.put(step, rows.LOSS, None, "output_0", 1.0)
        file.put(step, rows.GRADIENT, "body", "weight", 1.0, nans=3 if step == 1 else 0)
        file.end_step(step, skipped=step == 1)
    file.writer.close()
    trends = trends_of([tmp_path / "a.h5"])
    assert said(trends) == ["no NaN, no Inf"]
    assert "a.h5: the GradScaler skipped 1 of these steps" in [note.en for note in notes_of(trends)]


# Two runs.


def test_equal_runs_are_equal(tmp_path: Path) -> None:
    paths = [watched(tmp_path / name) for name in ("a.h5", "b.h5")]
    trends = trends_of(paths)
    assert trends.differences is not None
    assert trends.differences.farthest.max() == 0 and not trends.differences.first.any()
    assert said(trends)[2:] == ["Loss: equal", "Gradient norm: equal"]


def test_other_steps_and_other_lengths_meet_where_both_have_a_step(tmp_path: Path) -> None:
    mine = watched(tmp_path / "mine.h5", range(3, 31, 3), loss=lambda step: 1 / step + (step >= 12))
    golden = watched(tmp_path / "golden.h5", range(2, 21, 2))
    trends = trends_of([mine, golden])
    found = trends.differences
    assert found is not None and found.steps == 3  # 6, 12, 18
    assert trends.steps.tolist() == sorted({*range(3, 31, 3), *range(2, 21, 2)})
    assert "Loss: more than rounding from step 12 on, at most 18 apart" in said(trends)
    at = next(at for at, number in enumerate(found.mine) if trends.runs[0].series[number].row == rows.LOSS)
    assert found.first[at] == 12 and found.farthest[at] == pytest.approx(18)
    assert np.isnan(found.whole[trends.steps.tolist().index(9)]).all()


def test_runs_without_a_common_step_say_so(tmp_path: Path) -> None:
    paths = [watched(tmp_path / "a.h5", range(1, 10, 2)), watched(tmp_path / "b.h5", range(2, 10, 2))]
    assert "no step in common: watch both runs with the same --every" in said(trends_of(paths))
    REPORTS.render(trends_of(paths), "html")


def test_modules_of_one_side_are_named(tmp_path: Path) -> None:
    mine = watched(tmp_path / "mine.h5", modules=("body.first", "body.other"))
    golden = watched(tmp_path / "golden.h5")
    notes = [note.en for note in notes_of(trends_of([mine, golden]))]
    assert "6 curves are only in mine, of Net: body.other" in notes
    assert "6 curves are only in golden, of Net: body.second" in notes


def test_differences_are_those_of_compare() -> None:
    numbers = np.random.default_rng(0)
    pairs = []
    for _ in range(300):
        values = numbers.normal(size=4) * 10.0 ** numbers.integers(-3, 3)
        one = [9, 0, 0, 0, *values[:3], abs(values[3]), 1]
        other = [
            *one[:4],
            *(value * numbers.choice([1, 1.01, -1, 0]) for value in one[4:7]),
            one[7] * numbers.choice([1, 1.01, 0]),
            2,
        ]
        other[1] = int(numbers.choice([0, 0, 0, 1]))
        pairs.append((Statistics(*one), Statistics(*other)))  # type: ignore[arg-type]
    pairs.append((pairs[0][0], pairs[0][0]))
    found = distances(*(_figures([pair[side] for pair in pairs]) for side in (0, 1)))
    assert found[0] == pytest.approx([distance(*pair) for pair in pairs])


def _figures(found: list[Statistics]) -> StepFigures:
    names = Statistics.__dataclass_fields__
    made: dict[str, Any] = {name: np.array([[getattr(each, name) for each in found]]) for name in names}
    return StepFigures(size=made["rms"], **made)


# Ranks, and what is chosen.


def test_ranks(tmp_path: Path) -> None:
    for rank in (0, 1, 2):
        watched(
            tmp_path / f"run.rank{rank}.h5", loss=lambda step, rank=rank: rank + 1 / step, rank=rank, world=3,
            nan_from=5 if rank == 2 else 99,
        )  # fmt: skip
    trends = trends_of([tmp_path / "run.h5"], CurveChoice(rank=1))
    assert trends.runs[0].header.rank == 1 and len(trends.ranks[0]) == 3
    assert said(trends) == ["run.rank2.h5: NaN first at step 5: Outputs, Net: body.second"]
    assert b"maximum of 3 ranks" in REPORTS.render(trends, "html")
    with pytest.raises(InputError, match="no rank 7; choose one of 0, 1, 2"):
        trends_of([tmp_path / "run.h5"], CurveChoice(rank=7))


def test_a_part_of_the_steps_and_modules(tmp_path: Path) -> None:
    path = watched(tmp_path / "a.h5")
    trends = trends_of([path], CurveChoice(("*second",), first_step=5, steps=3))
    assert trends.steps.tolist() == [5, 6, 7]
    assert [row.label for row in module_rows(trends)] == ["Net: body.second"]
    lines = REPORTS.render(trends, "csv").decode("utf-8-sig").splitlines()
    assert {line.split(",")[2] for line in lines[1:]} == {"5", "6", "7"}
    with pytest.raises(InputError, match="no step from 99 on was watched"):
        trends_of([path], CurveChoice(first_step=99))


def test_csv_has_every_figure(tmp_path: Path) -> None:
    path = watched(tmp_path / "a.h5", range(1, 4))
    lines = REPORTS.render(trends_of([path]), "csv").decode("utf-8-sig").splitlines()
    head = lines[0].split(",")
    found = [dict(zip(head, line.split(","), strict=True)) for line in lines[1:]]
    loss = [row for row in found if row["curve"] == "loss"]
    assert [(row["step"], float(row["value"])) for row in loss] == [("1", 1.0), ("2", 0.5), ("3", 1 / 3)]
    assert float(loss[0]["time"]) == BEGAN + 1
    assert {row["tensor"] for row in found if row["curve"] == "gradient"} == {"weight", "bias", ""}


def test_text_shows_the_course(tmp_path: Path) -> None:
    text = REPORTS.render(trends_of([watched(tmp_path / "a.h5", nan_from=7)]), "text").decode()
    assert "Loss" in text and "█" in text and "Net: body.second" in text
    table = text.partition("Modules")[2]
    assert table.index("body.second") < table.index("body.first")  # what is wrong comes first


def test_a_record_of_operators_has_no_curves(tmp_path: Path) -> None:
    file = WatchedFile(tmp_path / "a.h5")
    file.put(1, "aten::add.Tensor", None, "output_0", 1.0)
    file.writer.close()
    with pytest.raises(InputError, match="holds statistics of operators, no curves"):
        trends_of([tmp_path / "a.h5"])


def test_a_file_that_is_cut_off_or_damaged_is_read_or_refused(tmp_path: Path) -> None:
    whole = watched(tmp_path / "a.h5", range(1, 6)).read_bytes()
    path = tmp_path / "b.h5"
    numbers = random.Random(0)
    refused = 0
    for _ in range(30):
        data = bytearray(whole[: numbers.randrange(1, len(whole))] if numbers.random() < 0.3 else whole)
        used = [at for at in range(0, len(data) - 8, 64) if any(data[at : at + 64])]
        for _ in range(numbers.randrange(3)):
            at = numbers.choice(used) + numbers.randrange(8)
            data[at] ^= 1 << numbers.randrange(8)
        path.write_bytes(data)
        try:
            trends = trends_of([path])
            REPORTS.render(trends, "html")
            REPORTS.render(trends, "csv")
        except InputError as problem:
            refused += 1
            assert str(problem).startswith(str(path))
    assert 3 < refused < 30
