"""Two runs, operator by operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.real_traces import (
    FAST_LOADER,
    KERNEL_TABLE,
    LANGUAGE_MODEL,
    LANGUAGE_MODEL_ELSEWHERE,
    SLOW_LOADER,
    real_trace,
)
from torchferry.errors import InputError
from torchferry.perf.compare.comparing import compare
from torchferry.perf.compare.model import MatchKind, Measure, OperatorPair, RunComparison
from torchferry.perf.model import TimePart
from torchferry.perf.opening import open_runs
from torchferry.perf.run import Run

MATRICES = {"dims": [[2, 3], [3, 4]], "types": ["float", "float"]}
OTHER_MATRICES = {"dims": [[9, 3], [3, 4]], "types": ["float", "float"]}


class Program(TraceBuilder):
    """Operators one after the other, each with one kernel."""

    now: float = 0.0

    def call(self, name: str, device: float, inside: str = "", kernel: str = "k", **inputs: object) -> None:
        """`inside`: the operator that calls it."""
        if inside:
            self.op(inside, self.now, 20, **inputs)
        self.op(name, self.now + 1, 15, **inputs)
        if device:
            self.kernel(kernel, self.now + 30, device, launched=self.now + 5)
        self.now += 100 + device


def compared(folder: Path, baseline: TraceBuilder, other: TraceBuilder) -> RunComparison:
    runs = []
    for name, builder in (("baseline", baseline), ("other", other)):
        (folder / name).mkdir()
        runs.append(builder.run(folder / name))
    return compare(runs[1], runs[0])


def the(comparison: RunComparison, operator: str) -> OperatorPair:
    (found,) = [pair for pair in comparison.pairs if pair.operator == operator]
    return found


def test_the_same_run_twice(tmp_path: Path) -> None:
    program = Program()
    program.call("aten::mm", 40, **MATRICES)
    found = compared(tmp_path, program, program)
    assert found.ratio == found.work_ratio == 1
    assert found.matched == {MatchKind.EXACT: (1, 1)}
    pair = the(found, "aten::mm")
    assert (pair.ratio, pair.more, pair.shapes, pair.dtypes) == (1, 0, "2×3, 3×4", "float32×2")


def test_figures_are_per_step(tmp_path: Path) -> None:
    """Twice as slow, in a run of three times as many steps."""
    runs = []
    for steps, time in ((1, 40), (3, 80)):
        program = Program()
        for number in range(steps):
            begin = program.now
            program.call("aten::mm", time, **MATRICES)
            program.call("aten::mm", time, **MATRICES)
            program.step(number, begin, program.now - begin)
        runs.append(program)
    found = compared(tmp_path, *runs)
    pair = the(found, "aten::mm")
    assert pair.baseline and pair.compared
    assert (found.baseline.steps, found.compared.steps) == (1, 3)
    assert (pair.baseline.calls, pair.compared.calls) == (2, 2)
    assert pair.ratio == pytest.approx(2)
    assert pair.more == pytest.approx(80e-6)
    assert found.compared.work_seconds == pytest.approx(160e-6)
    assert found.compared.parts[TimePart.COMPUTE] == pytest.approx(160e-6)


def test_what_costs_most_more_comes_first(tmp_path: Path) -> None:
    runs = []
    for times in ((10, 50, 50), (40, 51, 5)):
        program = Program()
        for name, time in zip(("aten::relu", "aten::mm", "aten::add"), times, strict=True):
            program.call(name, time, **MATRICES)
        runs.append(program)
    found = compared(tmp_path, *runs)
    assert [pair.operator for pair in found.pairs] == ["aten::relu", "aten::mm", "aten::add"]


def test_other_shapes_are_matched_in_the_order_of_the_program(tmp_path: Path) -> None:
    """A batch of 8 instead of 4: every shape is another, none must be taken for another layer's."""
    runs = []
    for batch in (4, 8):
        program = Program()
        for width in (16, 32, 64):
            program.call(
                "aten::mm", batch * width, dims=[[batch, width], [width, 2]], types=["float", "float"]
            )
        runs.append(program)
    found = compared(tmp_path, *runs)
    assert {(pair.baseline_shapes, pair.shapes) for pair in found.pairs} == {
        ("4×16, 16×2", "8×16, 16×2"),
        ("4×32, 32×2", "8×32, 32×2"),
        ("4×64, 64×2", "8×64, 64×2"),
    }
    assert {pair.match for pair in found.pairs} == {MatchKind.NAME}
    assert all(pair.ratio == pytest.approx(2) for pair in found.pairs)


def test_a_layer_more_does_not_shift_the_others(tmp_path: Path) -> None:
    runs = []
    for batch, widths in ((4, (16, 64)), (8, (16, 32, 64))):
        program = Program()
        for width in widths:
            program.call("aten::mm", 10, dims=[[batch, width], [width, 2]], types=["float", "float"])
        runs.append(program)
    found = compared(tmp_path, *runs)
    assert {(pair.baseline_shapes, pair.shapes) for pair in found.pairs} == {
        ("4×16, 16×2", "8×16, 16×2"),
        ("4×64, 64×2", "8×64, 64×2"),
    }
    assert [pair.shapes for pair in found.only_compared] == ["8×32, 32×2"]
    assert found.matched_shares == (1, pytest.approx(2 / 3))


def test_operators_with_too_many_shapes_are_added_up(tmp_path: Path) -> None:
    runs = []
    for first in (1, 1000):
        program = Program()
        for length in range(first, first + 70):
            program.call("aten::mm", 10, dims=[[length, 2], [2, 2]], types=["float", "float"])
        runs.append(program)
    pair = the(compared(tmp_path, *runs), "aten::mm")
    assert pair.baseline and pair.compared
    assert (pair.baseline.calls, pair.compared.calls, pair.ratio) == (70, 70, pytest.approx(1))
    assert pair.shapes.endswith("(70)")


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("aten::cudnn_convolution", "aten::miopen_convolution"),
        ("aten::cudnn_convolution", "aten::convolution_overrideable"),
        ("aten::cudnn_convolution_backward", "aten::convolution_backward"),
        ("aten::_flash_attention_forward", "aten::_scaled_dot_product_fused_attention_overrideable"),
        ("aten::cudnn_batch_norm", "aten::native_batch_norm"),
        ("aten::add_", "aten::add"),
        ("aten::dtype_cast", "npu::npu_dtype_cast"),
    ],
)
def test_operators_that_do_the_same(tmp_path: Path, mine: str, theirs: str) -> None:
    baseline, other = Program(), Program()
    baseline.call(mine, 10, **MATRICES)
    other.call(theirs, 30, **MATRICES)
    pair = the(compared(tmp_path, baseline, other), theirs)
    assert (pair.match, pair.baseline_operator) == (MatchKind.EQUIVALENT, mine)
    assert pair.ratio == pytest.approx(3)


def test_who_computes_is_matched_with_who_computes(tmp_path: Path) -> None:
    """Here an operator hands on to a library's; there it computes itself."""
    baseline, other = Program(), Program()
    baseline.call("aten::cudnn_convolution", 10, inside="aten::_convolution", **MATRICES)
    other.call("aten::_convolution", 20, **MATRICES)
    found = compared(tmp_path, baseline, other)
    pair = the(found, "aten::_convolution")
    assert (pair.match, pair.baseline_operator) == (MatchKind.EQUIVALENT, "aten::cudnn_convolution")
    assert not found.only_baseline and not found.only_compared


def test_operators_that_are_split_in_another_way(tmp_path: Path) -> None:
    baseline, other = Program(), Program()
    baseline.call("aten::addmm", 10, inside="aten::linear", **MATRICES)
    other.call("aten::mm", 10, inside="aten::linear", **MATRICES)
    other.call("aten::bias", 5, inside="aten::linear", **MATRICES)
    found = compared(tmp_path, baseline, other)
    (pair,) = [pair for pair in found.pairs if pair.match is MatchKind.CALLER]
    assert pair.operator == "aten::linear"
    assert pair.compared and pair.compared.seconds == pytest.approx(15e-6)
    assert found.matched_shares == (1, 1)


def test_what_is_in_one_run_only(tmp_path: Path) -> None:
    baseline, other = Program(), Program()
    for program in (baseline, other):
        program.call("aten::mm", 10, **MATRICES)
    baseline.call("aten::relu", 10)
    other.call("aten::sort", 30)
    found = compared(tmp_path, baseline, other)
    assert [pair.operator for pair in found.only_baseline] == ["aten::relu"]
    assert [pair.operator for pair in found.only_compared] == ["aten::sort"]
    assert found.matched[MatchKind.NONE] == (pytest.approx(0.5), pytest.approx(0.75))


def test_work_of_no_operator_is_matched_by_its_name(tmp_path: Path) -> None:
    runs = []
    for time in (10, 20):
        program = Program()
        program.call("aten::mm", 10, **MATRICES)
        program.kernel("graph_kernel", program.now, time, launched=program.now + 500)
        runs.append(program)
    pair = the(compared(tmp_path, *runs), "graph_kernel")
    assert (pair.match, pair.ratio) == (MatchKind.KERNEL, pytest.approx(2))


def test_work_that_was_queued_before_is_not_counted(tmp_path: Path) -> None:
    """The device still works on the step before, of which the trace has no operators."""
    runs = []
    for earlier in (0, 500):
        program = Program()
        if earlier:
            program.kernel("gemm", 0, earlier, launched=0)
            program.events.pop(-2)  # the call that launched it
        program.now = 1000
        program.step(1, -1, 2000)
        program.call("aten::mm", 10, **MATRICES)
        runs.append(program)
    found = compared(tmp_path, *runs)
    assert found.work_ratio == pytest.approx(1)
    (note,) = [note.en for note in found.notes if "queued before" in note.en]
    assert note.startswith("The compared run: 0.5 ms")


def test_runs_without_shapes_are_compared_by_name(tmp_path: Path) -> None:
    baseline, other = Program(), Program()
    baseline.call("aten::mm", 10, **MATRICES)
    baseline.call("aten::mm", 10, **OTHER_MATRICES)
    other.call("aten::mm", 40)
    found = compared(tmp_path, baseline, other)
    pair = the(found, "aten::mm")
    assert (pair.ratio, pair.shapes, pair.match) == (pytest.approx(2), "", MatchKind.EXACT)
    assert any("compared only by name" in note.en for note in found.notes)


def test_a_run_without_a_device_is_measured_on_the_host(tmp_path: Path) -> None:
    baseline, other = Program(), Program()
    baseline.call("aten::mm", 10, **MATRICES)
    other.call("aten::mm", 0, **MATRICES)
    found = compared(tmp_path, baseline, other)
    assert (found.baseline.measure, found.compared.measure) == (Measure.DEVICE, Measure.HOST)
    assert any("not comparable" in note.en for note in found.notes)
    assert the(found, "aten::mm").compared == (1, pytest.approx(15e-6), pytest.approx(15e-6), ())


def test_only_what_has_operators_can_be_compared() -> None:
    with pytest.raises(InputError, match="can't be compared"):
        compare(Run(("memory.csv",)), Run(("memory.csv",)))


def test_the_same_model_on_two_vendors_devices() -> None:
    baseline, other = (
        open_runs([real_trace(name)])[0] for name in (LANGUAGE_MODEL, LANGUAGE_MODEL_ELSEWHERE)
    )
    found = compare(other, baseline)
    assert found.matched[MatchKind.EXACT] == (pytest.approx(1), pytest.approx(0.9964, abs=1e-4))
    worst = found.pairs[0]
    assert worst.baseline and worst.compared
    assert (worst.operator, worst.shapes) == ("aten::mm", "8944×1024, 1024×2816")
    assert (worst.baseline.calls, worst.compared.calls) == (48, 48)
    assert worst.ratio == pytest.approx(1.309, abs=1e-3)
    assert found.ratio == pytest.approx(0.906, abs=1e-3)
    assert [pair.operator for pair in found.only_compared] == [
        "aten::fill_"
    ]  # in attention, on one vendor only


def test_before_and_after_a_faster_loader() -> None:
    slow, fast = (open_runs([real_trace(name)])[0] for name in (SLOW_LOADER, FAST_LOADER))
    found = compare(fast, slow)
    assert min(found.matched_shares) > 0.9999
    assert found.ratio == pytest.approx(0.799, abs=1e-3)
    saved = found.baseline.parts[TimePart.LOADER] - found.compared.parts[TimePart.LOADER]
    assert saved == pytest.approx(0.058, abs=1e-3)  # seconds per step: more than all that was won


def test_a_table_of_kernels_with_itself() -> None:
    (run,) = open_runs([real_trace(KERNEL_TABLE)])
    found = compare(run, run)
    assert found.matched_shares == (1, 1)
    assert sum(pair.compared.seconds for pair in found.pairs if pair.compared) == pytest.approx(0.010061159)
