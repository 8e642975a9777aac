"""One operator in one dtype: every sample, every way to call it, on the CPU and on the device."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable

import torch

from .checks import CHECKS, Check, Operator, Sample
from .comparison import compare
from .observations import Observation, Raised, Seen, observe
from .operators import cpu_promises, operator, samples, skip_reason
from .places import Place
from .records import HARMLESS, Difference, Kind, Outcome, Result
from .upcasting import Upcasting, in_float32, is_half, lacks_kernel

CPU = Place(torch.device("cpu"))


def examine(
    name: str, dtype_name: str, device: torch.device, limit: int, announce: Callable[[str], None]
) -> Result:
    """The verdict on an operator; `announce` is told what will be run next, in case it does not return."""
    dtype = getattr(torch, dtype_name)
    if reason := skip_reason(name):
        return Result(name, dtype_name, Outcome.SKIPPED, reason=reason)
    began = time.perf_counter()
    announce("making the samples")
    examination = Examination(operator(name, dtype), dtype, device, cpu_promises(name, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        examination.run(samples(name, dtype, limit), announce)
    return examination.result(time.perf_counter() - began)


class Examination:
    """Counts what was compared and keeps the first difference of each kind in each check."""

    def __init__(
        self,
        operator: Operator,
        dtype: torch.dtype,
        device: torch.device,
        is_promised: bool = True,
        on_device: Operator | None = None,
    ) -> None:
        """`on_device` stands in for the operator on the device, to see whether a fault is found."""
        self.operator = operator
        self.on_device = on_device or operator
        self.dtype = dtype
        self.place = Place(device)
        self.is_promised = is_promised
        self.samples = self.checks = self.raised = self.compared = self.wrong = self.upcast = self.refused = (
            self.returned
        ) = 0
        self.differences: dict[tuple[str, Kind], Difference] = {}

    def run(self, samples: Iterable[Sample], announce: Callable[[str], None] = lambda text: None) -> None:
        """Compare on every sample."""
        for sample in samples:
            for check in CHECKS:
                if check.applies(self.operator, sample):
                    announce(f"sample {self.samples}, {check.name}")
                    self._compare(check, sample)
            self.samples += 1

    def _compare(self, check: Check, sample: Sample) -> None:
        expected = self._expected(check, sample)
        actual = observe(lambda: check.run(self.on_device, sample, self.place))
        if isinstance(expected, Seen) and isinstance(actual, Raised) and actual.is_limit:
            self.refused += 1
            self.returned += 1
            return
        self.checks += 1
        found = compare(expected, actual)
        self.raised += isinstance(expected, Raised) and not found
        if not check.name.startswith("out="):
            self.compared += 1
            self.wrong += any(kind not in HARMLESS for kind, _, _ in found)
        self.returned += isinstance(expected, Seen)
        for kind, where, words in found:
            difference = Difference(kind, check.name, self.samples, where, words)
            self.differences.setdefault((check.name, kind), difference)

    def _expected(self, check: Check, sample: Sample) -> Observation:
        """What the CPU does; where it lacks a kernel for a half precision, what it does with that part in float32.

        Where PyTorch refuses the dtype before it comes to a kernel, everything is computed in float32 and rounded.
        """
        expected = observe(lambda: check.run(self.operator, sample, CPU))
        is_device = self.place.device.type != "cpu"
        if not (is_device and is_half(self.dtype) and self._needs_float32(expected)):
            return expected
        self.upcast += 1
        with Upcasting(self.dtype):
            upcast = observe(lambda: check.run(self.operator, sample, CPU))
        if isinstance(upcast, Seen):
            return upcast
        wider = observe(lambda: check.run(in_float32(self.operator, self.dtype), sample, CPU))
        return wider if isinstance(wider, Seen) else expected

    def _needs_float32(self, observation: Observation) -> bool:
        """Did the CPU refuse the dtype? Not if PyTorch's table says that it has it and it says nothing else."""
        return isinstance(observation, Raised) and (not self.is_promised or lacks_kernel(observation.message))

    def result(self, seconds: float) -> Result:
        """The verdict; an operator that the CPU never runs is not examined, whatever the device does."""
        reason = "" if self.returned else "cpu-raises" if self.samples else "no-samples"
        kinds = {difference.kind for difference in self.differences.values()}
        outcome = Outcome.PASS if not kinds else Outcome.CLOSE if kinds == {Kind.ROUNDING} else Outcome.FAIL
        return Result(
            self.operator.name,
            str(self.dtype).removeprefix("torch."),
            Outcome.SKIPPED if reason else outcome,
            self.samples,
            self.checks,
            self.raised,
            self.compared,
            self.wrong,
            self.upcast,
            self.refused,
            round(seconds, 2),
            reason,
            tuple(sorted(self.differences.values(), key=lambda difference: difference.kind is Kind.ROUNDING)),
        )
