"""Makes a user's model and captures one step of it: forward, and on request backward and optimizer, under autocast or fake."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from textwrap import dedent
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.optim import optimizer
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import torchferry
from torchferry import variables
from torchferry.errors import FerryError, InputError, RunError
from torchferry.readiness.capture.choices import as_on_device
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.capture.program import warm_up
from torchferry.readiness.cases import notation
from torchferry.readiness.cases.model import Draw, TensorContents, TensorInput
from torchferry.readiness.cases.writing import lines_for
from torchferry.readiness.model import Capture, Special
from torchferry.readiness.models.request import (
    InputValue,
    ModelRequest,
    is_file,
    parse_init,
    parse_inputs,
    split_factory,
)
from torchferry.text import NOTHING, Text, did_you_mean, then

# Tensors without contents, for models that no memory holds; small ones that depend on none of them
# are real.
#
# PyTorch's own FakeTensorMode makes all tensors fake. Models that ask for a number while they are
# built (the rates of stochastic depth are a `linspace`), and optimizers that count their steps in a
# tensor, can't be run with it.

NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException)
_BATCH_NORM = torch.ops.aten.native_batch_norm.default
_MOST_REAL_ELEMENTS = 4096  # of a tensor; a model of 100,000 such would take 2 GB


@contextmanager
def taken_for_real() -> Iterator[None]:
    """Optimizers work on lists of tensors only where they know the type of every tensor; and nobody reads the memory
    of fakes when they are copied, though PyTorch warns of it."""
    known: list[type] = getattr(optimizer, "_foreach_supported_types", [])
    known.append(FakeTensor)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
            yield
    finally:
        known.remove(FakeTensor)


class MostlyFakeMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Whatever is large, or made of what is fake, is fake."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        given = _tensors((args, kwargs))
        if any(isinstance(tensor, FakeTensor) for tensor in given):
            return self._in_fake(func, args, kwargs)
        if not given or any(tensor.numel() > _MOST_REAL_ELEMENTS for tensor in given):
            try:
                result = self._in_fake(func, args, kwargs)
            except NEEDS_VALUES:  # which are there
                return func(*args, **kwargs)
            if any(tensor.numel() > _MOST_REAL_ELEMENTS for tensor in _tensors(result)):
                return result
        return func(*args, **kwargs)

    def _in_fake(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._fake:
            result = func(*args, **kwargs)
            if func is not _BATCH_NORM:
                return result
            # PyTorch's formula has mean and deviation in the dtype of the input, its kernels in that of the weights
            dtype = result[0].dtype if args[1] is None else args[1].dtype
            return (result[0], *(each.to(dtype) for each in result[1:]))

    def fake(self, value: Any) -> Any:
        """A value whose tensors have lost their contents."""
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            return self._fake.from_tensor(value)
        if isinstance(value, dict):
            return {name: self.fake(each) for name, each in value.items()}
        return [self.fake(each) for each in value] if isinstance(value, list) else value

    def empty(self, model: torch.nn.Module) -> None:
        """Take the contents of a model's parameters and buffers away; those that it shares stay shared."""
        for module in model.modules():
            for held in (module._parameters, module._buffers):
                for name, tensor in list(held.items()):
                    if tensor is not None and not torch.nn.parameter.is_lazy(tensor):
                        setattr(module, name, self.fake(tensor))  # recurrent layers keep lists of theirs


class FakeCapturingMode(CapturingMode):  # type: ignore[no-untyped-call]
    """Captures what is computed with fakes."""

    counts_fakes = True

    def _make(self, func: Any, formula: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Formulas lose what makes a tensor a fake where they make a view by themselves, not by an operator, and
        where they copy a fake into memory that is small, and so real."""
        result = super()._make(func, formula, args, kwargs)
        if formula is None or all(isinstance(tensor, FakeTensor) for tensor in _tensors(result)):
            return result
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            return result  # a recurrent layer: autograd knows it by its parts, which have been made already
        has_fakes = any(isinstance(tensor, FakeTensor) for tensor in _tensors((args, kwargs)))
        return func(*args, **kwargs) if has_fakes else result


def _tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in tree_flatten(value)[0] if isinstance(each, torch.Tensor)]


_NOT_THE_USERS = tuple(
    os.path.join(os.path.dirname(package.__file__ or ""), "") for package in (torch, torchferry)
)
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
_NO_SUCH_KERNEL = "could not create a primitive"
_MOST_CHARACTERS = 300

_NO_VALUES = Text(
    "{what}: {place}: {function} needs the numbers in a tensor, which --fake does not have; run without --fake, if "
    "necessary with a smaller model or input",
    "{what}：{place}：{function} 需要张量中的数值，而 --fake 没有数值；请去掉 --fake，必要时减小模型或输入",
)
_NO_MEMORY = Text(
    "not enough memory: try a smaller input, or --fake, which computes only shapes",
    "内存不足：请减小输入，或使用只计算形状的 --fake",
)
_NO_DTYPE = Text(
    "this CPU does not support that dtype: try --autocast bfloat16, or --fake, which computes nothing",
    "该 CPU 不支持此数据类型：请使用 --autocast bfloat16，或不做计算的 --fake",
)
_FORWARD = Text("the forward pass", "前向计算")


@contextmanager
def told_as(what: str | Text, advice: Text = NOTHING, fake: bool = False) -> Iterator[None]:
    """Whatever is raised becomes one line that begins with what was being done."""
    try:
        yield
    except (FerryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a SystemExit of a user's file included
        place = _place(error)
        where = f" ({place})" if place else ""
        cause: Any = error
        while cause is not None and not isinstance(cause, NEEDS_VALUES):
            cause = cause.__cause__ or cause.__context__
        if fake and cause is not None:
            raise RunError(_NO_VALUES.format(what=what, place=place or "-", function=cause.func)) from None
        if isinstance(error, MemoryError) or any(words in str(error).lower() for words in _OUT_OF_MEMORY):
            advice = _NO_MEMORY
        elif _NO_SUCH_KERNEL in str(error):
            advice = _NO_DTYPE
        # an exception's text may have several lines, the first of which says most
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raised = ": ".join((type(error).__name__, *lines[:1]))
        if len(raised) > _MOST_CHARACTERS:
            raised = raised[:_MOST_CHARACTERS] + "..."
        failed = Text("{what} failed: {raised}{where}", "{what}失败：{raised}{where}")
        raise RunError(then(failed.format(what=what, raised=raised, where=where), advice)) from None


def _place(error: BaseException) -> str:
    """The innermost line that is neither PyTorch's nor ours; for a file that can't be parsed, the line in it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_relative(error.filename)}:{error.lineno}"
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*_NOT_THE_USERS, "<frozen"))
        and f"{os.sep}importlib{os.sep}" not in frame.filename
    ]
    return f"{_relative(own[-1].filename)}:{own[-1].lineno}" if own else ""


def _relative(file: str) -> str:
    return file.removeprefix(os.getcwd() + os.sep)


def make_model(request: ModelRequest) -> torch.nn.Module:
    """The model; a factory is called, a model that is there already is taken as it is."""
    found = find(request.factory, "--model")
    init = parse_init(request.init)
    if isinstance(found, torch.nn.Module):
        if init:
            raise InputError(
                Text(
                    f"--init {request.init}: {request.factory} is already a model; leave --init out",
                    f"--init {request.init}：{request.factory} 已经是模型；请去掉 --init",
                )
            )
        return found
    if not callable(found):
        raise InputError(
            Text(
                f"--model {request.factory}: a {type(found).__name__}, which can't create a model; name a "
                "function or a class",
                f"--model {request.factory}：类型为 {type(found).__name__}，无法创建模型；请给出函数或类",
            )
        )
    with told_as(f"{request.factory}({request.init})", _how_to_call(found, "--init"), request.fake):
        model = found(**init)
    if not isinstance(model, torch.nn.Module):
        raise RunError(
            Text(
                f"--model {request.factory}: returns a {type(model).__name__}, not a torch.nn.Module; name a "
                "function that returns only the model",
                f"--model {request.factory}：返回 {type(model).__name__}，而不是 torch.nn.Module；"
                "请给出只返回模型的函数",
            )
        )
    return model


def find(text: str, option: str) -> Any:
    """What is called package.module:name, or path/to/file.py:name."""
    place, name = split_factory(text, option)
    with told_as(Text(f"{option} {text}: importing {place}", f"{option} {text}：导入 {place} ")):
        module = _from_file(place) if is_file(place) else importlib.import_module(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), 1)
            absent = Text(
                f"{option} {text}: {place} has no {name}", f"{option} {text}：{place} 中没有 {name}"
            )
            raise InputError(then(absent, did_you_mean(near)))
        found = getattr(found, part)
    return found


def _from_file(place: str) -> ModuleType:
    """The file as a module; what lies beside it can be imported, as if Python had been called with it."""
    path = os.path.abspath(place)
    if not os.path.isfile(path):
        raise InputError(
            Text(
                f"no such file: {place}; give the file of the model",
                f"没有该文件：{place}；请给出模型所在的文件",
            )
        )
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        name = f"torchferry_model_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look there
    if os.path.dirname(path) not in sys.path:
        sys.path.insert(0, os.path.dirname(path))
    spec.loader.exec_module(module)
    return module


def _how_to_call(function: Any, option: str) -> Text:
    try:
        signature = f"{getattr(function, '__name__', '')}{inspect.signature(function)}"
    except (TypeError, ValueError):
        return NOTHING
    return Text(f"{option} is for {signature}", f"{option} 对应 {signature}")


def how_to_call_model(model: torch.nn.Module) -> Text:
    """What a model's forward pass takes, for a user whose inputs did not fit."""
    return _how_to_call(model.forward, "--input")


def differentiable(output: Any) -> list[torch.Tensor]:
    """The tensors of an output that autograd can go back from, each once."""
    found = {id(tensor): tensor for tensor in _output_tensors(output) if tensor.requires_grad}
    return list(found.values())


def _output_tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _output_tensors(value)
    elif isinstance(output, (list, tuple)):
        for value in output:
            yield from _output_tensors(value)
    elif is_dataclass(output) and not isinstance(output, type):
        for field in fields(output):
            yield from _output_tensors(getattr(output, field.name))


_FRACTIONS = TensorContents(Draw.NORMAL)
# Of integers nothing is known: 0 and 1 are in range for every embedding, class or mask.
_INTEGERS = TensorContents(Draw.INTS, 0, 2)


def built(value: InputValue, device: torch.device) -> Any:
    """An argument as the model gets it."""
    if isinstance(value, TensorInput):
        return drawn(value).to(device)
    if isinstance(value, (list, tuple)):
        return [built(each, device) for each in value]
    if isinstance(value, dict):
        return {name: built(each, device) for name, each in value.items()}
    if isinstance(value, Special):
        return device if value.kind == "device" else getattr(torch, value.text)
    return value


def drawn(tensor: TensorInput) -> torch.Tensor:
    """A tensor of the shape, dtype, contents and strides that are asked for, made as in the file of a case."""
    if tensor.contents.draw is Draw.DEFAULT:
        contents = _FRACTIONS if notation.is_floating(tensor.dtype) else _INTEGERS
        tensor = replace(tensor, contents=contents)
    names: dict[str, Any] = {"torch": torch, "random": torch.default_generator}
    exec(dedent("\n".join(lines_for("tensor", tensor, {}))), names)
    made: torch.Tensor = names["tensor"]
    return made


_LEARNING_RATE = 1e-3
# A loss scaled by 65536, as usual, often overflows in the first step, and the optimizer is not called.
_SCALE = 1.0


def capture_here(request: ModelRequest) -> Capture:
    """Make the model in this process and capture one step of it."""
    torch.manual_seed(0)
    fake = MostlyFakeMode() if request.fake else None
    with fake or nullcontext(), taken_for_real() if fake else nullcontext():
        step = _prepare(request, fake)
        began = time.monotonic()
        mode = FakeCapturingMode() if fake else CapturingMode(request.device)
        with ExitStack() as stack:
            if not request.device:
                stack.enter_context(as_on_device())
            stack.enter_context(mode.switched_on())
            steps = step.run()
        uses = mode.uses()
        if fake:  # the time of shapes says nothing
            uses = tuple(replace(use, seconds=0.0) for use in uses)
        noted = {
            "fake": request.fake,
            "no_step": request.backward and not steps,
            "scripted": any(isinstance(part, torch.jit.ScriptModule) for part in step.model.modules()),
            "cpu_autocast": bool(request.amp) and not request.device and variables.LAYER not in os.environ,
        }
        return Capture(
            program=request.described,
            origin="model",
            device=request.device or "cpu",
            torch=torch.__version__,
            steps=steps,
            seconds=0.0 if fake else round(time.monotonic() - began, 6),
            uses=uses,
            modules=mode.modules(),
            notes=tuple(sorted(mode.notes | {note for note, applies in noted.items() if applies})),
        )


@dataclass(frozen=True)
class _ModelStep:
    """A forward pass, and on request a backward pass and a step of the optimizer; all that it needs is made before the
    capture begins."""

    request: ModelRequest
    model: torch.nn.Module
    args: list[Any]
    kwargs: dict[str, Any]
    loss: Callable[..., torch.Tensor] | None
    optimizer: torch.optim.Optimizer | None
    scaler: Any  # None: without

    def run(self) -> int:
        """Make the step; answers how many the optimizer made."""
        request, model = self.request, self.model
        with (
            told_as(_FORWARD, how_to_call_model(model), request.fake),
            self._autocast(),
            torch.set_grad_enabled(request.backward),
        ):
            output = model(*self.args, **self.kwargs)
        if self.optimizer is None:
            return 0
        loss = self._loss(output)
        with told_as(Text("the backward pass", "反向计算"), fake=request.fake):
            self._backward(loss, output)
        with told_as(
            Text(f"the step of {request.optimizer}", f"{request.optimizer} 的 step "), fake=request.fake
        ):
            return self._step(self.optimizer)

    def _autocast(self) -> Any:
        request = self.request
        if not request.amp:
            return nullcontext()
        return torch.autocast(request.device or "cpu", getattr(torch, request.amp))

    def _loss(self, output: Any) -> torch.Tensor | None:
        if self.loss is None:
            # the one that the model has computed itself, as those of transformers do
            own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
            is_loss = isinstance(own, torch.Tensor) and own.numel() == 1 and own.requires_grad
            return own if is_loss else None
        with told_as(f"--loss {self.request.loss}", fake=self.request.fake), self._autocast():
            loss = self.loss(output, *self.args)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
            raise RunError(
                Text(
                    f"--loss {self.request.loss}: must return one number that depends on the model",
                    f"--loss {self.request.loss}：必须返回一个依赖模型的数",
                )
            )
        return loss

    def _backward(self, loss: torch.Tensor | None, output: Any) -> None:
        """From a loss; without one from all outputs, so that no operator is captured that is not the model's."""
        scaler = self.scaler
        if loss is not None:
            (loss if scaler is None else scaler.scale(loss)).backward()
            return
        outputs = differentiable(output)
        if not outputs:
            raise RunError(
                Text(
                    "--backward: nothing in the model's output depends on its parameters; name a loss with --loss",
                    "--backward：模型的输出不依赖任何参数；请用 --loss 指定损失函数",
                )
            )
        with _python_dispatch._disable_current_modes():
            seeds = [torch.full_like(each, 1 / max(each.numel(), 1)) for each in outputs]
            if scaler is not None:  # it has to know the device
                scaler.scale(torch.zeros((), device=outputs[0].device))
        torch.autograd.backward(outputs, seeds)

    def _step(self, optimizer: torch.optim.Optimizer) -> int:
        if self.scaler is None:
            optimizer.step()
            return 1
        steps: list[object] = []  # a scaler leaves one out when gradients have overflowed
        optimizer.register_step_post_hook(lambda *given: steps.append(given))
        self.scaler.step(optimizer)
        self.scaler.update()
        return len(steps)


def _prepare(request: ModelRequest, fake: MostlyFakeMode | None) -> _ModelStep:
    model = make_model(request).train(request.train)
    device = torch.device(request.device or "cpu")
    with told_as("--input"):
        inputs = parse_inputs(request.inputs)
        args = [built(value, device) for value in inputs.args]
        kwargs = {name: built(value, device) for name, value in inputs.kwargs.items()}
    if request.device:
        with told_as(Text(f"moving the model to {device}", f"将模型移动到 {device} ")):
            model.to(device)
    if fake is not None:
        fake.empty(model)
        args, kwargs = fake.fake(args), fake.fake(kwargs)
    if any(map(torch.nn.parameter.is_lazy, model.parameters())):
        with told_as(_FORWARD, how_to_call_model(model), request.fake), torch.no_grad():
            model(*args, **kwargs)
        if fake is not None:
            fake.empty(model)  # what has just been made
    if fake is None and not request.device:
        warm_up()
    loss = find(request.loss, "--loss") if request.loss else None
    optimizer = _optimizer(request.optimizer, model) if request.backward else None
    scaler = None
    if request.backward and request.amp == "float16":
        if not hasattr(torch.amp, "GradScaler"):
            raise RunError(
                Text(
                    "--autocast float16 with --backward needs PyTorch 2.3; use --autocast bfloat16",
                    "--autocast float16 与 --backward 同时使用需要 PyTorch 2.3；请使用 --autocast bfloat16",
                )
            )
        scaler = torch.amp.GradScaler(request.device or "cpu", init_scale=_SCALE)
    return _ModelStep(request, model, args, kwargs, loss, optimizer, scaler)


def _optimizer(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    kind = getattr(torch.optim, name, None)
    if not isinstance(kind, type) or not issubclass(kind, torch.optim.Optimizer):
        raise InputError(
            Text(
                f"--optimizer {name}: torch.optim has no such optimizer; use SGD, Adam, AdamW ...",
                f"--optimizer {name}：torch.optim 没有该优化器；请使用 SGD、Adam、AdamW 等",
            )
        )
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise RunError(
            Text(
                "--backward: the model has no trainable parameter; leave --backward out",
                "--backward：模型没有可训练的参数；请去掉 --backward",
            )
        )
    make: Any = kind
    with told_as(f"--optimizer {name}"):
        optimizer: torch.optim.Optimizer = make(parameters, lr=_LEARNING_RATE)
    return optimizer
