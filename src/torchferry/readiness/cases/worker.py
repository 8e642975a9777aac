"""The process in which cases run: reads requests from stdin, a JSON object a line, and answers on another stream.

    python -m torchferry.readiness.cases.worker DESCRIPTOR

{"file": PATH, "do": "probe"} is answered with `TrialFacts`, {"file": PATH, "do": "time"} with `Times`, {"file": PATH,
"do": "run" or "try", "fallback": MESSAGE} with a `CaseOutcome`; "ready" comes before the first answer. A case that takes this process down is the caller's to notice.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from types import CodeType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchferry.observe.operators import is_random
from torchferry.readiness.cases.comparing import ResultMismatchError
from torchferry.readiness.cases.model import CaseOutcome, CaseVerdict, Times, TrialFacts
from torchferry.readiness.cases.timing import measured
from torchferry.readiness.cases.writing import TIME_TEST
from torchferry.sim import fallback_calls, is_active

_SET_PARENT_DEATH_SIGNAL = 1
_CPU = torch.device("cpu")


def main() -> None:
    """Serve until stdin ends."""
    if sys.platform == "linux":  # nobody waits for us any more when the caller has been killed
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    answers = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    print("ready", file=answers, flush=True)
    for line in _requests():
        request = json.loads(line)
        answer: TrialFacts | Times | CaseOutcome
        if request["do"] == "probe":
            answer = probe(request["file"])
        else:
            answer = time_case(request["file"]) if request["do"] == "time" else run_case(**request)
        print(json.dumps(asdict(answer)), file=answers, flush=True)


def time_case(file: str) -> Times:
    """How long one call takes, on the CPU and on the device."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = _load(file)
            return measured(module, any(name.endswith("_backward") for name, _ in _tests(module)))
        except Exception as error:
            return Times(error=_said(error))


def _requests() -> Iterator[str]:
    """The lines of stdin; a case that reads stdin itself finds it empty."""
    with os.fdopen(os.dup(0), encoding="utf-8") as requests, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        yield from requests


def probe(file: str) -> TrialFacts:
    """What the CPU does with a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = _load(file)
            operator, arguments = module.operator(), module.inputs()
            drawing = _Drawing()  # type: ignore[no-untyped-call]
            with drawing:
                first = module.forward(operator, arguments, _CPU)
        except Exception as error:
            return TrialFacts(error=_said(error))
        random = False
        if drawing.draws:
            second = module.forward(module.operator(), module.inputs(), _CPU, seed=1)
            random = any(not torch.equal(first[name], tensor) for name, tensor in second.items())
        try:
            results = module.backward(module.operator(), module.inputs(), _CPU)
            is_differentiable = any(name.startswith("gradient of") for name in results)
        except Exception:  # whatever a backward pass raises, on the CPU: there are no gradients to compare
            is_differentiable = False
        return TrialFacts("", is_differentiable, random)


class _Drawing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees whether an operator draws random numbers."""

    draws = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.draws = self.draws or is_random(func)
        return func(*args, **(kwargs or {}))


def run_case(file: str, do: str = "run", fallback: str = "") -> CaseOutcome:
    """What the device does with a case; with `try` one that the CPU refuses is invalid."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            module = _load(file)
            if do == "try":
                module.forward(module.operator(), module.inputs(), _CPU)
        except Exception as error:
            return CaseOutcome(CaseVerdict.INVALID, "", _said(error))
        before = fallback_calls()
        for name, test in _tests(module):
            failure = _failure(name, test)
            if failure is not None:
                return failure
        fell_back = [
            operator for operator, calls in fallback_calls().items() if calls > before.get(operator, 0)
        ]
        fell_back = fell_back or _warned(caught, fallback)
    kind = CaseVerdict.FALLS_BACK if fell_back else CaseVerdict.EQUAL
    return CaseOutcome(kind, operators=tuple(sorted(fell_back)), simulated=is_active())


def _failure(name: str, test: Callable[[], None]) -> CaseOutcome | None:
    try:
        test()
    except unittest.SkipTest as reason:
        return CaseOutcome(CaseVerdict.NO_DEVICE, name, str(reason))
    except Exception as error:
        if type(error).__name__ != ResultMismatchError.__name__:  # its own: the case holds a copy
            return CaseOutcome(CaseVerdict.RAISES, name, _said(error), simulated=is_active())
        message = str(error)
        aspect = message.partition(": the ")[2].partition(" ")[0]
        return CaseOutcome(CaseVerdict.DIFFERS, name, message, aspect, simulated=is_active())
    return None


class _CompiledAnew(importlib.machinery.SourceFileLoader):
    """Python keeps byte code, and takes it for a file of the same size and second: trials come faster than that."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _load(file: str) -> Any:
    loader = _CompiledAnew("torchferry_case", file)
    spec = importlib.util.spec_from_file_location(loader.name, file, loader=loader)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tests(module: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """The tests of either style, in the order of the file, without that which only prints a time."""
    for name, thing in list(vars(module).items()):
        if name.startswith("test_") and callable(thing) and name != TIME_TEST:
            yield name, thing
        elif isinstance(thing, type) and issubclass(thing, unittest.TestCase):
            for method in unittest.defaultTestLoader.getTestCaseNames(thing):
                if method != TIME_TEST:
                    yield method, getattr(thing(method), method)


def _warned(caught: list[warnings.WarningMessage], message: str) -> list[str]:
    """Operators that a real plugin has said it computes on the CPU, in the words of `message`."""
    before, _, after = message.partition("{operator}")
    if not before:
        return []
    said = [str(warning.message).partition(before) for warning in caught]
    return [rest.partition(after[:1])[0] for _, found, rest in said if found]


def _said(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


if __name__ == "__main__":
    main()
