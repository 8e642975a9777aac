"""Gives the operators of a running program the inputs that they had in a record: what each makes of them is its own.

Results go back to the program, so that it goes on; the next operator gets recorded inputs again. An argument that is
written to keeps its memory and gets the recorded contents. Views are left alone. What is random is drawn from the
recorded state where this device's generator can be set to it; otherwise the program goes on with the recorded numbers.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import torch

from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.model import INPUT, OUTPUT, Call, TensorRecord, TensorRef, Value, group_name
from torchferry.accuracy.record.calls import named_tensors
from torchferry.accuracy.record.layout import generator_of
from torchferry.observe.modes import LocatingMode, unobserved
from torchferry.observe.operators import (
    COMMUNICATION,
    SKIPPED_NAMESPACES,
    base_name,
    find_overload,
    has_own_operators,
    is_described,
    is_random,
    is_view,
    leaves_uninitialised,
    sizes_of,
    written_to,
)
from torchferry.observe.where import ProgramSite
from torchferry.operators.names import is_plumbing

# Finds, while a program runs, the recorded call that does the same job as the one that it is about to
# make.

Shapes = tuple[tuple[int, ...], ...]


class Pairing:
    """Calls are found by step, phase, module, operator and shapes, in order: first those of the same line, then any.

    An operator that only one of the two programs calls leaves the others where they are. Copies and casts, of which
    devices make more or fewer, have to be those of the same line.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._steps = {step: place for place, step in enumerate(sorted({call.step for call in calls}))}
        self._has_sites = any(call.phase for call in calls)  # vendors' own dumpers do not say where
        self._exact: dict[Hashable, deque[int]] = defaultdict(deque)
        self._plain: dict[Hashable, deque[int]] = defaultdict(deque)
        self._taken: set[int] = set()
        self._lock = threading.Lock()
        self.count = 0  # calls that can be paired
        self.unpaired: Counter[str] = Counter()  # of the program that runs, by operator

    def add(self, place: int, call: Call) -> None:
        """A call of the record that waits for its like."""
        site = ProgramSite(call.phase, call.module, call.place, call.model, "", call.node)
        shapes = tuple(tensor.shape for tensor in call.inputs)
        exact, plain = self._keys(self._steps[call.step], site, call.operator, shapes)
        self._exact[exact].append(place)
        self._plain[plain].append(place)
        self.count += 1

    @property
    def paired(self) -> int:
        """How many were found so far."""
        return len(self._taken)

    def find(self, step: int, site: ProgramSite, operator: str, shapes: Shapes) -> Call | None:
        """The like of a call of the n-th step, n from 0."""
        exact, plain = self._keys(step, site, operator, shapes)
        with self._lock:
            place = self._next(self._exact.get(exact))
            if place is None and not is_plumbing(operator):
                place = self._next(self._plain.get(plain))
            if place is None:
                self.unpaired[operator] += 1
                return None
            self._taken.add(place)
        return self._calls[place]

    def _next(self, waiting: deque[int] | None) -> int | None:
        while waiting:
            place = waiting.popleft()
            if place not in self._taken:
                return place
        return None

    def _keys(self, step: int, site: ProgramSite, operator: str, shapes: Shapes) -> tuple[Hashable, Hashable]:
        group = group_name(operator)
        if not self._has_sites:
            return (group, shapes), (group, shapes)
        plain = (step, site.phase, site.module, group, shapes)
        return (*plain, site.place, site.node), plain


_MOST_KEPT = 1 << 29  # bytes of recorded tensors that are kept on the device for the next operator
_CPU = "cpu"
_VIEWS = frozenset({"_unsafe_view"})  # their schemas do not say so


class ReplayingMode(LocatingMode):  # type: ignore[no-untyped-call]
    """Is switched on after the recorder's mode, so that this one sees calls first.

    `forget` is told of memory that was written to out of its sight. `is_shared`: devices draw from the CPU's generator.
    """

    def __init__(
        self, record: Record, forget: Callable[[torch.Tensor], None], is_shared: bool = False
    ) -> None:
        super().__init__()
        self.step = 0  # from 0 on
        self.pairing = Pairing(record.calls)
        self._record = record
        self._forget = forget
        self._is_shared = is_shared
        self._kept = _Kept(record)
        self.around: Callable[[Any], Any] | None = None  # makes a call that has its recorded inputs
        for place, call in enumerate(record.calls):
            func = find_overload(call.operator)
            if func is None or _is_given_inputs(func):
                self.pairing.add(place, call)

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call with recorded inputs, if there are any."""
        if types and any(has_own_operators(kind) for kind in types):
            return func(*args, **kwargs)  # what the tensor's class calls instead has no recorded inputs
        if not isinstance(func, torch._ops.OpOverload) or not _is_given_inputs(func):
            self.where.site()  # it keeps account of what it sees
            return func(*args, **kwargs)
        given = _Arguments(func, args, kwargs)
        call = self.pairing.find(self.step, self.where.site(), given.operator, given.shapes())
        if call is None:
            return func(*args, **kwargs)
        self._replace(given, call, is_described(func))
        is_drawn = is_random(func) and not self._draw_again(call, given)
        result = given.call() if self.around is None else self.around(given.call)
        if is_drawn:
            return self._recorded_results(call, given, result)
        return self._kept.apart(result)

    def _replace(self, given: _Arguments, call: Call, is_described: bool) -> None:
        """An operator of which it is not known what it writes to gets copies."""
        recorded = {tensor.name.removeprefix(f"{INPUT}/"): tensor for tensor in call.inputs}
        for name, tensor, is_written in given.tensors():
            golden = recorded.get(name)
            if golden is None or not self._kept.has(golden):
                continue
            if is_written:
                self._fill(tensor, golden)
            else:
                contents = self._kept.tensor(golden, tensor)
                given.put(name, contents if is_described else _copied(contents))

    def _fill(self, tensor: torch.Tensor, golden: TensorRecord) -> None:
        """Below autograd: it has saved the tensor a moment ago, and does not count this as a change."""
        with unobserved():
            tensor.copy_(self._kept.tensor(golden, tensor))
        self._forget(tensor)

    def _draw_again(self, call: Call, given: _Arguments) -> bool:
        """Whether the generator is now in the state in which it was."""
        if call.random is None:
            return False
        golden = torch.device(call.random.device)
        mine = given.device()
        if golden.type == _CPU and (mine.type == _CPU or self._is_shared):
            generator = torch.default_generator
        elif golden.type == mine.type and not given.has_generator():
            generator = generator_of(mine)
        else:
            return False
        state = torch.frombuffer(bytearray(self._record.state(call.random)), dtype=torch.uint8)
        try:
            with unobserved():
                generator.set_state(state)
        except (RuntimeError, TypeError):  # of another version of PyTorch
            return False
        return True

    def _recorded_results(self, call: Call, given: _Arguments, result: Any) -> Any:
        """What the program goes on with instead of numbers of its own."""
        written = {name: tensor for name, tensor, is_written in given.tensors() if is_written}
        for output in call.outputs:
            own = written.get(output.name.removeprefix(f"{OUTPUT}/"))
            if own is not None and self._kept.has(output):
                self._fill(own, output)
        return self._kept.apart(self._taken(call.results, call, result))

    def _taken(self, recorded: Value, call: Call, own: Any) -> Any:
        if isinstance(own, (list, tuple)) and isinstance(recorded, tuple):
            return type(own)(self._taken(each, call, mine) for each, mine in zip(recorded, own, strict=False))
        if not isinstance(own, torch.Tensor) or not isinstance(recorded, TensorRef):
            return own
        output = call.outputs[recorded.index]
        is_fresh = output.name.startswith(f"{OUTPUT}/output_")
        if not is_fresh or not self._kept.has(output) or output.shape != sizes_of(own):
            return own
        return self._kept.tensor(output, own)


class _Arguments:
    """The arguments of a call, by the names that a record has for their tensors."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._func = func
        self.operator: str = func.name()
        self._written = written_to(func)
        names = [argument.name for argument in func._schema.arguments]
        self._positional = len(args)
        self._values = {**dict(zip(names, args, strict=False)), **kwargs}

    def tensors(self) -> Iterator[tuple[str, torch.Tensor, bool]]:
        """Each tensor with its name, and whether it is written to."""
        for name, value in list(self._values.items()):
            for path, tensor in named_tensors(name, value):
                yield path, tensor, name in self._written

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all tensors, in the order in which they were given."""
        return tuple(sizes_of(tensor) for _, tensor, _ in self.tensors())

    def device(self) -> torch.device:
        """Where the call is made."""
        given = self._values.get("device")
        if given is not None:
            return torch.device(given)
        return next((tensor.device for _, tensor, _ in self.tensors()), torch.device(_CPU))

    def has_generator(self) -> bool:
        """Whether the program says which one is to be drawn from."""
        return self._values.get("generator") is not None

    def put(self, path: str, tensor: torch.Tensor) -> None:
        """Put a tensor in the place of the one of that name."""
        name, *inner = path.split("/")
        indices = [int(part.rpartition("_")[2]) for part in inner]
        self._values[name] = _with(self._values[name], indices, tensor)

    def call(self) -> Any:
        """Make the call with the arguments as they are now."""
        values = list(self._values.values())[: self._positional]
        rest = dict(list(self._values.items())[self._positional :])
        return self._func(*values, **rest)


def _with(value: Any, indices: list[int], tensor: torch.Tensor) -> Any:
    if not indices:
        return tensor
    items = list(value)
    items[indices[0]] = _with(items[indices[0]], indices[1:], tensor)
    return items


class _Kept:
    """Recorded tensors on the devices on which they are wanted: each content once, the latest ones."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._tensors: OrderedDict[tuple[Any, ...], torch.Tensor] = OrderedDict()
        self._storages: set[int] = set()
        self._nbytes = 0

    def has(self, golden: TensorRecord) -> bool:
        """Whether the record has the contents of a tensor."""
        return golden.offset is not None and golden.elements > 0

    def tensor(self, golden: TensorRecord, like: torch.Tensor) -> torch.Tensor:
        """On the device and in the dtype of another; it must not be written to."""
        is_parameter = isinstance(like, torch.nn.Parameter)
        layout = (golden.offset, golden.dtype, golden.shape, golden.stride)
        key = (layout, like.device, like.dtype, is_parameter)
        found = self._tensors.get(key)
        if found is not None:
            self._tensors.move_to_end(key)
            return found
        with unobserved():
            made = self._record.tensor(golden).to(like.device, like.dtype)
            if is_parameter:
                made = torch.nn.Parameter(made, requires_grad=False)
        self._tensors[key] = made
        self._storages.add(_storage(made))
        self._nbytes += made.nbytes
        while self._nbytes > _MOST_KEPT and len(self._tensors) > 1:
            _, gone = self._tensors.popitem(last=False)
            self._storages.discard(_storage(gone))
            self._nbytes -= gone.nbytes
        return made

    def apart(self, result: Any) -> Any:
        """What the program gets must not share memory with what is kept: it may write to it."""
        if isinstance(result, (list, tuple)):
            return type(result)(map(self.apart, result))
        if not isinstance(result, torch.Tensor) or _storage(result) not in self._storages:
            return result
        return _copied(result)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Not with `clone`: the kernels of this device are what is in doubt."""
    with unobserved():
        return torch.empty_like(tensor).copy_(tensor)


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # sparse ones have none
        return 0


def _is_given_inputs(func: Any) -> bool:
    """Views and what makes tensors without contents compute nothing; communication is other processes' as well."""
    if func.namespace in SKIPPED_NAMESPACES or func.namespace in COMMUNICATION:
        return False
    base = base_name(func)
    return not is_view(func) and base not in _VIEWS and not leaves_uninitialised(base)
