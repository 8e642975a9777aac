"""The mode that captures: every operator of this thread and of autograd's, with what it is called and from where."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch

from torchferry.observe.modes import LocatingMode, has_compiled
from torchferry.observe.operators import SKIPPED_NAMESPACES, has_own_operators
from torchferry.observe.where import BACKWARD, OPTIMIZER
from torchferry.operators.names import CHOOSE_BY_DEVICE
from torchferry.readiness.capture.folding import Folded, PastCall, key_of, tensors_among
from torchferry.readiness.capture.undecided import Undecided, owner_of, owner_of_all, set_owner
from torchferry.readiness.model import ModuleInfo, OperatorSite, Phase, Use

_set_excluded: Any = torch._C._SetExcludeDispatchKeyGuard
_NUMBERS = (int, float, complex)


# What PyTorch does on devices, where it has a short cut for the CPU.
_ON_DEVICES: Mapping[str, Callable[..., Any]] = {
    "aten::scalar_tensor": lambda value, **options: torch.empty((), **options).fill_(value)
}
# These look whether a mode watches, and then go another way than without: their own consists of views and a copy.
_DISTURBED = frozenset({"aten::repeat"})
# The first that an operator has is what a device without a kernel of its own computes with.
_COMPOSITE = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


@cache
def formula_of(func: Any) -> Callable[..., Any] | None:
    """The formula that PyTorch computes this operator with on every device; None: it has kernels.

    Views are left whole: all that they need of a device is memory. Operators of other libraries have their own ways.
    """
    name = func.name()
    if name in _ON_DEVICES:
        return _ON_DEVICES[name]
    if func.namespace != "aten" or name in CHOOSE_BY_DEVICE or name in _DISTURBED:
        return None
    returned = [result.alias_info for result in func._schema.returns]
    if any(alias is not None and not alias.is_write for alias in returned):  # a view
        return None
    if not torch._C._dispatch_has_kernel(name):  # how the dispatcher asks subclasses for their sizes
        return None
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if has_kernel(name, "CPU"):
        return None
    key = next((getattr(torch._C.DispatchKey, key) for key in _COMPOSITE if has_kernel(name, key)), None)
    return None if key is None else partial(func._op_dk, key)


def with_tensors(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A formula hands numbers on as tensors that a mode gets as numbers again, and most operators refuse those."""
    numbers = [
        place for place in _only_tensors(func) if place < len(args) and isinstance(args[place], _NUMBERS)
    ]
    tensor = next((each for each in args if isinstance(each, torch.Tensor)), None)
    if not numbers or tensor is None:
        return args
    changed = list(args)
    for place in numbers:
        changed[place] = torch.tensor(args[place], dtype=torch.result_type(tensor, args[place]))
    return tuple(changed)


@cache
def _only_tensors(func: Any) -> tuple[int, ...]:
    """The positions of arguments that can't be numbers."""
    if torch._C._should_allow_numbers_as_tensors(func._schema.name.partition("::")[2]):
        return ()
    kinds = [str(argument.type) for argument in func._schema.arguments]
    return tuple(place for place, kind in enumerate(kinds) if kind == "Tensor")


_FAKE = "FakeTensor"  # a class of tensors that computes by shapes alone: it stands for the plain one
_FORKED = 0  # instead of a process: one that was forked, and has not called an operator yet
_IN = "\0"  # between a model and a path in it
_PHASES = {BACKWARD: Phase.BACKWARD, OPTIMIZER: Phase.OPTIMIZER}


class CapturingMode(LocatingMode):  # type: ignore[no-untyped-call]
    """Adds up calls until it is switched off. `device` is the type of one that computes by itself; "": the CPU."""

    counts_fakes = False  # what a program computes with shapes alone, no device ever sees

    def __init__(self, device: str = "") -> None:
        super().__init__()
        self.folded = Folded()
        self.notes: set[str] = set()
        self.is_loading_data = False
        self.making: Undecided | None = None  # of what is made from nothing now
        self._wait = getattr(getattr(torch, device, None), "synchronize", None) if device else None
        self._process = os.getpid()
        self._thread = threading.local()
        self._lock = threading.RLock()  # a signal may end the process while it is held

    @contextmanager
    def loading_data(self) -> Iterator[None]:
        """What is called in this context is the host's."""
        before, self.is_loading_data = self.is_loading_data, True
        try:
            yield
        finally:
            self.is_loading_data = before

    @property
    def is_at_work(self) -> bool:
        """Whether calls of this process are added up."""
        return self._process in (os.getpid(), _FORKED)

    def begin_anew(self) -> None:
        """In a process that has just been forked: what its parent called is the parent's."""
        if self._process != -1:
            self._process = _FORKED
            self._lock = threading.RLock()
            self.folded = Folded()

    def switch_off(self) -> None:
        """Add up no more calls."""
        super().switch_off()
        self._process = -1  # threads that still have the mode on their stack
        if has_compiled():
            self.notes.add("compiled")

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call, its composite parts one by one, and add it up."""
        if self._process == _FORKED and not is_data_worker():
            self._process = os.getpid()
        if os.getpid() != self._process:
            return func(*args, **kwargs)
        if getattr(func, "namespace", "") in SKIPPED_NAMESPACES:
            return func(*args, **kwargs)
        if types and any(kind.__name__ != _FAKE and has_own_operators(kind) for kind in types):
            return NotImplemented  # nested and distributed tensors: what their class calls instead is seen
        tensors = list(tensors_among((*args, *kwargs.values())))
        if not self.counts_fakes and any(type(tensor).__name__ == _FAKE for tensor in tensors):
            return func(*args, **kwargs)
        if not isinstance(func, torch._ops.OpOverload):
            self.notes.add("higher_order")
            return func(*args, **kwargs)
        owner = False if self.is_loading_data else owner_of_all((*args, *kwargs.values()) if kwargs else args)
        if owner is True:
            with self.loading_data():
                result = self._add_up(func, None, args, kwargs)
            set_owner([result], True)
            return result
        formula = None if any(call.func is func for call in self._calls()) else formula_of(func)
        if formula is not None and any(
            each.layout is not torch.strided or each.is_nested or each.is_quantized for each in tensors
        ):
            formula = None  # they have kernels of their own
        watched = formula and self._watched(formula)
        undecided = self.making if owner is None else owner or None
        if undecided is None:
            return self._add_up(func, watched, args, kwargs)
        before, self.making = self.making, undecided  # the formula makes tensors as well
        try:
            result = self._add_up(func, watched, args, kwargs, undecided)
        finally:
            self.making = before
        set_owner([result], undecided)
        return result

    def settle_on_host(self, tensor: torch.Tensor) -> None:
        """What moves to the device only now was the host's, and so was all that it was made of."""
        owner = owner_of(tensor)
        if isinstance(owner, Undecided):
            with self._lock:
                for call in owner.decide(are_the_hosts=True):
                    self.folded.move(call, OperatorSite(Phase.DATA, inside=call.inside))

    def take_whole(self, func: Any, formula: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Compute what a device knows as one operator by what the CPU makes of it; its derivative belongs to it."""

        def parts(*args: Any) -> Any:
            self.where.inside = func.name()
            try:
                return formula(*args)
            finally:
                self.where.inside = ""

        return self._add_up(func, parts, args, {})

    def _add_up(
        self,
        func: Any,
        formula: Callable[..., Any] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        undecided: Undecided | None = None,
    ) -> Any:
        calls = self._calls()
        # before the call: it may resize them
        named = tuple((name, key_of(value)) for name, value in kwargs.items())
        arguments = (tuple(map(key_of, args)), named)
        site = self._site(calls)
        with self._lock:
            row = self.folded.row(func, site, arguments, formula is not None)
        call = _PendingCall(func)
        calls.append(call)
        begin = time.perf_counter_ns()
        try:
            result = self._make(func, formula, args, kwargs)
        finally:
            calls.pop()
            taken = max(time.perf_counter_ns() - begin - call.inner, 0)
            row.add_time(taken)
            if undecided is not None:
                undecided.add(PastCall(func, site.inside, arguments, row, taken))
        if row.results is None:
            row.results = tuple(map(key_of, result if isinstance(result, (list, tuple)) else [result]))
        if calls:
            calls[-1].inner += time.perf_counter_ns() - begin
        return result

    def _make(
        self, func: Any, formula: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if formula is not None:
            return formula(*args, **kwargs)
        if len(self._calls()) > 1:
            args = with_tensors(func, args)
        result = func(*args, **kwargs)
        if self._wait is not None:
            self._wait()
        return result

    def _watched(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """The mode is off while it handles a call: what the formula calls is to be seen as well.

        What a mode calls gets tensors that are only marked as conjugate or negative as they are: most operators would
        not see the mark. Those that a formula calls have to get them as anywhere else.
        """
        keys = torch._C.DispatchKey

        def watched(*args: Any, **kwargs: Any) -> Any:
            with self, _set_excluded(keys.Conjugate, False), _set_excluded(keys.Negative, False):
                return formula(*args, **kwargs)

        return watched

    def _calls(self) -> list[_PendingCall]:
        if not hasattr(self._thread, "calls"):
            self._thread.calls = []
        calls: list[_PendingCall] = self._thread.calls
        return calls

    def _site(self, calls: list[_PendingCall]) -> OperatorSite:
        inside = calls[-1].func.name() if calls else ""
        if self.is_loading_data:
            return OperatorSite(Phase.DATA, inside=inside)
        now = self.where.now()
        if not self.where.has_begun:
            return OperatorSite(Phase.SETUP, place=now["place"], inside=inside)
        phase = _PHASES.get(now["phase"], Phase.FORWARD)
        module = f"{now['model']}{_IN}{now['module']}" if "model" in now else ""
        return OperatorSite(phase, module, now["place"], now.get("node", ""), now.get("inside", inside))

    def uses(self) -> tuple[Use, ...]:
        """What was called, so far. Without modules nothing tells where set-up ends: all of it is the program's work."""
        with self._lock:
            uses = self.folded.uses()
        main = self._main_model()
        sites = {use.site for use in uses}
        moved = {site: replace(site, module=self._path(site.module, main)) for site in sites}
        if not self.where.models:
            moved = {site: replace(site, phase=Phase.FORWARD) for site in sites if site.phase is Phase.SETUP}
        return tuple(replace(use, site=moved.get(use.site, use.site)) for use in uses)

    def modules(self) -> tuple[ModuleInfo, ...]:
        """The modules that took part, and those around them."""
        main = self._main_model()
        return tuple(
            ModuleInfo(_joined("" if model == main else model, path), kind)
            for model, parts in self.where.models.items()
            for path, kind in parts.items()
        )

    def _main_model(self) -> str:
        """The model with the most parts: its paths stand for themselves, those of others begin with their names."""
        models = self.where.models
        return max(models, key=lambda model: len(models[model]), default="")

    def _path(self, module: str, main: str) -> str:
        model, between, inner = module.partition(_IN)
        if not between:
            return module
        path = inner if inner in self.where.models.get(model, {}) else ""  # the model itself goes by its type
        return _joined("" if model == main else model, path)


def is_data_worker() -> bool:
    """Whether this process is one of a DataLoader: what they compute is the host's, on every machine."""
    return torch.utils.data.get_worker_info() is not None


def _joined(model: str, path: str) -> str:
    return f"{model}.{path}" if model and path else model or path


@dataclass
class _PendingCall:
    func: Any
    inner: int = 0  # nanoseconds of the calls that it makes
