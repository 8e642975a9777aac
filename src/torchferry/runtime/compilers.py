"""torch.jit.script and torch.compile: eager where the vendor has no compiler, else taught the layer's functions."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from abc import ABCMeta
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from torchferry.runtime.entry_points import wrapped_factories
from torchferry.runtime.host.devices import is_cuda
from torchferry.runtime.patches import Action, Change, Patch
from torchferry.runtime.target import LayerTarget, TwoNames

_INDUCTOR = "inductor"
_EAGER = "eager"
_PYTORCH = f"{Path(torch.__file__).parent}{os.sep}"


def changes(target: LayerTarget) -> Iterator[Change]:
    """What the two compilers do. Comes after the factories: TorchScript has to know their replacements."""
    if target.is_reference or (target.vendor and target.vendor.jit_script):
        yield from _scripts_run_eagerly(target)
    yield _scripts_know_factories()
    prepare = _teach_dynamo
    if target.is_reference:
        change_fake_tensors, change_back = _fake_tensors_on_the_cpu()

        def prepare() -> None:
            _teach_dynamo()
            change_fake_tensors()

    if hasattr(torch, "compile"):
        means = f"runs eagerly where inductor generates no code for {target.device_type}"
        compile = eager_without_inductor(target.device_type, target.is_reference, prepare)  # noqa: A001
        yield Patch("torch.compile", torch, "compile", compile, means)
    if target.is_reference:
        means = "treats CUDA devices as the CPU"  # when something is compiled; it is taken back here
        yield Action("torch.compile", means, lambda: None, change_back)
    yield from _streams_are_streams(target)


def _scripts_run_eagerly(target: LayerTarget) -> Iterator[Change]:
    say = _once(
        f"torch.jit.script does nothing on {target.device_type}: {target.company}'s adapter runs scripted code "
        "eagerly"
    )

    original = torch.jit.script

    def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
        # PyTorch scripts formulas of its own, those of forward-mode derivatives, and needs their graphs.
        if sys._getframe(1).f_code.co_filename.startswith(_PYTORCH):
            if not args:  # it looks for the names that a class uses in the caller of this function
                kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1
            return original(obj, *args, **kwargs)
        if not target.is_reference:
            say()
        return obj

    def script_method(function: Any) -> Any:
        return function

    means = "returns its argument: the code runs eagerly"
    yield Patch("torch.jit.script", torch.jit, "script", script, means)
    yield Patch("torch.jit.script_method", torch.jit, "script_method", script_method, means)


def _scripts_know_factories() -> Change:
    """TorchScript finds the operator behind a function of torch by the function's identity."""
    from torch.jit import _builtins

    table: dict[int, str] = _builtins._get_builtin_table()  # type: ignore[no-untyped-call]
    known: list[int] = []

    def register() -> None:
        for name, function in wrapped_factories():
            if id(function) not in table:
                known.append(id(function))
                table[id(function)] = f"aten::{name}"

    def forget() -> None:
        while known:
            table.pop(known.pop(), None)

    return Action("torch.jit.script", "knows the factories that take CUDA devices", register, forget)


def _streams_are_streams(target: LayerTarget) -> Iterator[Change]:
    """Up to 2.5 dynamo, which every optimizer imports, refuses a torch.cuda.Stream that is not of torch's own class."""
    bases: Any = getattr(torch, "_streambase", None)
    for name in ("Stream", "Event"):
        base, kind = getattr(bases, f"_{name}Base", None), getattr(target.module, name, None)
        if isinstance(base, ABCMeta) and isinstance(kind, type) and not issubclass(kind, base):
            register: Any = functools.partial(base.register, kind)
            # There is no way to take it back, and no need: it changes nothing but this answer.
            yield Action(f"torch.{name}", f"{target.torch_module}.{name} is one", register, lambda: None)


def eager_without_inductor(
    device_type: str, silently: bool = False, prepare: Callable[[], None] = lambda: None
) -> Callable[..., Any]:
    """torch.compile that captures graphs and runs them eagerly, where inductor would have to generate code that it
    can't; silently for a reference: code made by a compiler rounds otherwise than what it is compared with."""
    original = torch.compile
    say = _once(
        f"torch.compile: inductor has no code generator for {device_type} here; the captured graph runs eagerly"
    )

    @functools.wraps(original)
    def compile(model: Any = None, **settings: Any) -> Any:  # noqa: A001
        prepare()
        is_inductor = settings.get("backend", _INDUCTOR) == _INDUCTOR
        if is_inductor and (silently or not _inductor_generates_for(device_type)):
            if not silently and not settings.get("disable"):
                say()
            for name in ("mode", "options"):  # inductor's own
                settings.pop(name, None)
            settings["backend"] = _EAGER
        return original(model, **settings)

    return compile


def _inductor_generates_for(device_type: str) -> bool:
    from torch._inductor.codegen.common import get_scheduling_for_device

    return get_scheduling_for_device(str(device_type)) is not None


def _teach_dynamo() -> None:
    """Let `device.type` be a constant in captured code, as a plain string is."""
    from torch._dynamo import utils

    constants: Any = getattr(utils, "common_constant_types", None)
    if isinstance(constants, set):
        constants.add(TwoNames)


def _fake_tensors_on_the_cpu() -> tuple[Callable[[], None], Callable[[], None]]:
    """What changes the tensors that a compiler computes with, and changes them back. In the reference those on CUDA's
    devices, which are the CPU's with a number, have to be the CPU's like all others; this is done when something is
    compiled, since importing them takes long."""
    before: list[Any] = []

    def change() -> None:
        if before:
            return
        from torch._subclasses.fake_tensor import FakeTensor

        before.append(vars(FakeTensor)["__new__"])
        make: Any = FakeTensor.__new__

        @functools.wraps(make)
        def new(kind: Any, fake_mode: Any, elem: Any, device: Any, *args: Any, **settings: Any) -> Any:
            place = torch.device("cpu") if is_cuda(device) else device
            return make(kind, fake_mode, elem, place, *args, **settings)

        type.__setattr__(FakeTensor, "__new__", staticmethod(new))

    def change_back() -> None:
        if before:
            from torch._subclasses.fake_tensor import FakeTensor

            type.__setattr__(FakeTensor, "__new__", before.pop())

    return change, change_back


def _once(message: str) -> Callable[[], None]:
    """A warning that is given once, of the line that calls the function which gives it."""
    return functools.cache(lambda: warnings.warn(message, stacklevel=3))
