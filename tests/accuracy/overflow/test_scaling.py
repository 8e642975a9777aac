"""Overflows of scaled gradients, which a GradScaler handles, are normal; others stay overflows."""

from __future__ import annotations

from pathlib import Path

from tests.accuracy.overflow.checking import check, training
from torchferry.accuracy.overflow.model import End, Standing

SCALED = """\
with torch.autocast("cpu", torch.float16):
    loss = {loss}
scaler.scale(loss).backward()
"""
STEP = "scaler.step(optimizer); scaler.update()"


def scaled(loss: str, scale: str, steps: int = 12) -> str:
    return training(
        SCALED.format(loss=loss),
        step=STEP,
        steps=steps,
        before=f"scaler = torch.amp.GradScaler('cpu', init_scale={scale})",
    )


def test_skipped_steps_are_noted_and_do_not_count(tmp_path: Path) -> None:
    run = check(scaled("model(torch.ones(3, 4)).float().square().mean()", "2.0**20"), tmp_path)
    assert run.findings.first is None and run.ended.returncode == 0
    assert (run.findings.end, run.findings.steps) == (End.STEPS, 3)
    skipped = run.of(Standing.SKIPPED)
    assert run.findings.skipped_steps == len(skipped) > 1
    assert [event.scale for event in skipped] == [2.0 ** (20 - number) for number in range(len(skipped))]
    assert not run.record.exists()
    assert run.findings.largest is not None and run.findings.largest.value <= 65504


def test_they_are_found_if_asked(tmp_path: Path) -> None:
    program = scaled("model(torch.ones(3, 4)).float().square().mean()", "2.0**20")
    assert check(program, tmp_path, strict=True).first.call.phase == "backward"


def test_nan_that_has_nothing_to_do_with_the_scale(tmp_path: Path) -> None:
    loss = "(model(torch.ones(3, 4)).float() - model(torch.ones(3, 4)).float().detach()).sqrt().sum()"
    run = check(scaled(loss, "2.0**8"), tmp_path)
    assert (run.first.call.operator, run.first.call.node) == ("aten::div.Tensor", "SqrtBackward0")
    assert run.record.exists()


def test_an_overflow_that_no_scale_ends(tmp_path: Path) -> None:
    # the gradients overflow by a factor in half precision, whatever the scale is
    loss = "(model(torch.ones(3, 4)) * 3e4 * 3e4 * 1e-9).float().sum()"
    run = check(scaled(loss, "2.0**4", steps=40), tmp_path, steps=3)
    assert run.first.call.phase in ("forward", "backward")
    assert run.findings.steps == 0
