"""The numbers behind the plots, and the pictures."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from torchferry.proof.model import StepSummary
from torchferry.proof.report.html import charts
from torchferry.report import svg
from torchferry.report.svg import MAX_GROUPS, Chart
from torchferry.text import Text

from .samples import SAMPLES, adversaries, distributed, equal, long, not_finite, one_step, proof, run, sample


def chart(*curves: tuple[float | None, ...]) -> Chart:
    names = tuple(Text(f"run {place}", f"运行 {place}") for place in range(len(curves)))
    steps = tuple(float(step) for step in range(1, len(curves[0]) + 1))
    return Chart(Text("Loss", "损失"), names, steps, curves, len(steps), 1)


def test_reference_and_every_vendor_on_one_plot() -> None:
    losses, norms = charts(sample())
    assert [name.en for name in losses.names] == ["original on the CPU", "ascend", "cambricon", "tecorigin"]
    assert (losses.title.en, norms.title.en) == ("Loss", "Gradient norm")
    assert len(losses.steps) == 20
    assert losses.values[3][2] is not None and losses.values[3][3] is None  # it failed after three steps


def test_one_plot_for_each_rank_and_each_optimizer() -> None:
    assert [each.title.en for each in charts(distributed())][::2] == ["Loss · rank 0", "Loss · rank 1"]
    assert [each.title.en for each in charts(adversaries())][::2] == ["Loss · 0 Adam", "Loss · 1 RMSprop"]


def test_several_losses_in_a_step_are_several_points() -> None:
    step = StepSummary(3, 0, (1.0, 2.0), 1.0, "", 0)
    reference = run(count=1)
    process = reference.processes[0]
    from dataclasses import replace

    many = replace(reference, processes=(replace(process, steps=(*process.steps, step)),))
    losses = charts(proof(equal(count=1), reference=many))[0]
    assert losses.steps == (1.0, 2.5, 3.0)
    assert losses.values[0][1:] == (1.0, 2.0)


def test_thinning_keeps_what_stands_out() -> None:
    losses = charts(long())[0]
    assert losses.total == 10_000 and losses.group > 1
    assert len(losses.steps) <= 2 * MAX_GROUPS + 2
    assert max(value for value in losses.values[0] if value is not None) == 9.0
    assert (losses.steps[0], losses.steps[-1]) == (1, 10_000)


def test_few_values_are_all_there() -> None:
    assert charts(long(600))[0].group == 1


def test_thinning_keeps_what_is_not_finite() -> None:
    thinned = charts(long(10_000))[0]
    assert all(math.isfinite(value) for value in thinned.values[0] if value is not None)
    broken = proof(reference=run(count=5000, loss=lambda step: math.nan if step == 777 else 1.0))
    assert any(math.isnan(value) for value in charts(broken)[0].values[0] if value is not None)


@pytest.mark.parametrize("name", SAMPLES)
def test_pictures_are_well_formed_and_stay_inside(name: str) -> None:
    for each in charts(SAMPLES[name]()):
        picture = svg.draw(each)
        ElementTree.fromstring(picture)
        assert "nan" not in "".join(re.findall(r'\sd="[^"]*"', picture))
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", picture):
            assert -10 <= float(x) <= svg.WIDTH + 10 and -10 <= float(y) <= svg.HEIGHT + 10


@pytest.mark.parametrize(
    "values",
    [
        (0.0,),
        (5.0, 5.0),
        (1e308, -1e308),
        (1e-320, 1e300),
        (math.nan,),
        (math.inf, 1.0),
        (-3.0, 1e-9),
        (None, 2.0),
    ],
)
def test_extreme_values(values: tuple[float | None, ...]) -> None:
    ElementTree.fromstring(svg.draw(chart(values)))


def test_a_line_is_broken_where_a_value_is_not_finite() -> None:
    picture = svg.draw(chart((1.0, 2.0, math.nan, 2.0, 1.0)))
    (curve,) = re.findall(r'class="curve" d="([^"]*)"', picture)
    assert curve.count("M") == 2
    assert picture.count('class="mark bad"') == 1


def test_curves_that_coincide_have_marks_of_their_own() -> None:
    same = tuple(float(step) for step in range(200))
    picture = svg.draw(chart(same, same))
    first, second = picture.split('<g class="s1">')
    marks = [set(re.findall(r'class="mark" d="M(-?[\d.]+)', part)) for part in (first, second)]
    assert marks[0] and marks[1]
    circle, cross = (re.findall(r'class="mark" d="([^"]*)"', part)[0] for part in (first, second))
    assert "a6 6" in circle and "l8 8" in cross


def test_a_large_span_of_positive_values_has_a_logarithmic_scale() -> None:
    axis = svg.y_axis(chart((1e-4, 1.0, 100.0)))
    assert axis is not None and axis.logarithmic
    assert axis.ticks(4) == [pytest.approx(10.0**power) for power in (-4, -2, 0, 2)]
    linear = svg.y_axis(chart((0.1, 1.0)))
    assert linear is not None and not linear.logarithmic


def test_one_step_and_none() -> None:
    assert len(charts(one_step())) == 2
    assert charts(SAMPLES["empty"]()) == []
    assert len(charts(not_finite())) == 2


@pytest.mark.parametrize(
    ("low", "high"), [(0.9999985, 0.9999995), (0.0, 1.0), (-3e-9, 2e-9), (123456.0, 123456.5), (1e6, 9e8)]
)
def test_ticks_are_told_apart_whatever_the_range(low: float, high: float) -> None:
    up = svg.y_axis(chart((low, high)))
    assert up is not None
    labels = [up.label(tick) for tick in up.ticks(svg.TICKS)]
    assert len(set(labels)) == len(labels) >= 2
    assert all(len(label) <= 12 for label in labels)
    assert [float(label) for label in labels] == pytest.approx(up.ticks(svg.TICKS), abs=(high - low) / 100)
