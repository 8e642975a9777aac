"""Looks at a call's tensors before it is made and afterwards: what is known of them, what has to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from torchferry.accuracy.model import INPUT, OUTPUT, RandomState, TensorRecord, TensorRef, Value
from torchferry.accuracy.record.layout import Outside, Outsides, synchronize
from torchferry.accuracy.record.tensors import UNKNOWN, Content, Contents
from torchferry.observe.operators import (
    COMMUNICATION,
    SKIPPED_NAMESPACES,
    base_name,
    is_described,
    is_random,
    is_view,
    leaves_uninitialised,
    may_move,
    overwrites,
    written_to,
)
from torchferry.observe.tensors import OVERWRITTEN, UNINITIALISED
from torchferry.observe.where import Site, Whereabouts
from torchferry.ops.capture.folding import key_of, value_of
from torchferry.ops.model import Special

# What has to be done with an operator's tensors, found once for each operator from its schema.

_WAITING = "wait_tensor"  # a collective ends here: what it was given holds no data yet, what it answers does


class Plan:
    """Of one operator. Arguments go by their position in the schema."""

    __slots__ = (
        "call",
        "communicates",
        "func",
        "generator",
        "has_effects",
        "in_place",
        "is_described",
        "is_random",
        "is_skipped",
        "is_view",
        "lost",
        "may_be_under_way",
        "names",
        "operator",
        "positions",
        "uninitialised",
        "waits",
        "written",
    )

    def __init__(self, func: Any) -> None:
        arguments = func._schema.arguments
        written = written_to(func)
        base = base_name(func)
        self.func = func  # keeps the operator: plans are found by its number
        # what makes the call, without a function of Python's in between
        self.call: Callable[..., Any] = func._op if type(func) is torch._ops.OpOverload else func
        self.operator: str = func.name()
        self.is_skipped = func.namespace in SKIPPED_NAMESPACES
        self.names: tuple[str, ...] = tuple(argument.name for argument in arguments)
        self.positions = {name: position for position, name in enumerate(self.names)}
        self.written = frozenset(self.positions[name] for name in written)
        self.waits = func.namespace in COMMUNICATION and base == _WAITING
        self.communicates = func.namespace in COMMUNICATION and not self.waits
        self.lost = frozenset(  # not read by the operator
            position
            for position, argument in enumerate(arguments)
            if getattr(argument, "is_out", False)
            or self.waits
            or (position in self.written and overwrites(base))
        )
        self.is_view = is_view(func)
        self.uninitialised = leaves_uninitialised(base)
        self.is_described = is_described(func)
        self.has_effects = bool(self.written) or self.communicates or self.waits or not self.is_described
        self.may_be_under_way = "non_blocking" in self.positions
        # the argument that the call may answer with, where it writes to nothing else and has no other effects
        is_special = self.communicates or self.waits or self.uninitialised or self.may_be_under_way
        is_plain = self.is_described and not is_special and not may_move(func)
        returns = func._schema.returns
        self.in_place = min(self.written) if is_plain and len(self.written) == len(returns) == 1 else None
        self.is_random = is_random(func)
        self.generator = self.positions.get("generator")

    def argument(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What was given for this argument; None if nothing was."""
        position = self.positions.get(name)
        if position is None:
            return None
        return args[position] if position < len(args) else kwargs.get(name)


def plan_of(func: Any) -> Plan | None:
    """None for what is no operator with a schema: higher-order ones."""
    return Plan(func) if isinstance(func, torch._ops.OpOverload) else None


# Arguments and results of a call, as small keys that can be compared, and as a record has them.

_AS_THEY_ARE = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def key_of_number(value: float) -> Any:
    """0.0 and -0.0 are equal, and nan is not."""
    return value if value == value and value else repr(value)


def key_of_odd(value: Any) -> Any:
    """Of what is no tensor, list, whole number or text."""
    return value if type(value) in _AS_THEY_ARE else key_of(value)


class Numbering:
    """Puts references in the place of tensors, in the order in which they are met."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, value: Any) -> Value:
        """As a record has it."""
        if isinstance(value, torch.Tensor):
            self._count += 1
            return TensorRef(self._count - 1)
        if isinstance(value, (list, tuple)):
            return tuple(map(self.value, value))
        if value is None or type(value) in (bool, int, float, str):
            return value  # type: ignore[no-any-return]
        found = value_of(key_of(value))
        return found if isinstance(found, (Special, bool, int, float, str)) else str(value)


def names_of(side: str, name: str, value: Any) -> Iterator[str]:
    """The names of the tensors of an argument or result: input/self, input/tensors/tensors_0."""
    if isinstance(value, torch.Tensor):
        yield f"{side}/{name}"
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from names_of(f"{side}/{name}", f"{name}_{index}", item)


# One call while it is being made: its tensors before and after, and the key that is equal for calls
# that look alike.

Mark = str | tuple[str, str]  # a role; or a role, and why the tensor was not read


# a tensor of a call, the position of the argument that it belongs to, its outside and mark
Look = tuple[torch.Tensor, int, Outside, Mark]


class Seen:
    """A call."""

    __slots__ = (
        "args",
        "contents",
        "inputs",
        "key",
        "kwargs",
        "outputs",
        "plan",
        "random",
        "result",
        "site",
        "values",
    )

    def __init__(self, plan: Plan, site: Site, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.plan = plan
        self.site = site
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.inputs: list[Look] = []
        self.outputs: list[Look] = []  # results, then arguments that were written to and are not among them
        self.contents: list[Content] = []  # of the inputs, then of the outputs
        self.key: list[Any] = [plan]  # equal for calls whose tensors look alike
        self.values: list[Any] = []  # numbers and the like
        self.random: RandomState | None = None


class Templates:
    """The tensors of calls that look alike, without their contents."""

    __slots__ = ("encoded", "inputs", "outputs")

    def __init__(self, seen: Seen) -> None:
        names = [each for name, value in _given(seen) for each in names_of(INPUT, name, value)]
        self.inputs = _templates(names, seen.inputs)
        self.outputs = _templates(_output_names(seen, names), seen.outputs)
        self.encoded = ""  # both, once that is needed


def arguments_of(seen: Seen) -> tuple[tuple[str, Value], ...]:
    """By the names of the schema, in its order."""
    numbering = Numbering()
    values = [(name, numbering.value(value)) for name, value in _given(seen)]
    if len(seen.kwargs) > 1:
        order = seen.plan.positions
        values.sort(key=lambda each: order[each[0]])
    return tuple(values)


def results_of(seen: Seen) -> Value:
    """What the call answered."""
    return Numbering().value(seen.result)


def _given(seen: Seen) -> list[tuple[str, Any]]:
    return [*zip(seen.plan.names, seen.args), *seen.kwargs.items()]  # noqa: B905  the rest have their defaults


def _output_names(seen: Seen, input_names: list[str]) -> list[str]:
    """An argument that was written to keeps its name, also where the call answers with it."""
    written = seen.plan.written
    names = {
        id(tensor): OUTPUT + name.removeprefix(INPUT)
        for name, (tensor, position, *_) in zip(input_names, seen.inputs, strict=True)
        if position in written
    }
    results = seen.result if isinstance(seen.result, (list, tuple)) else [seen.result]
    plain = [
        name for place, value in enumerate(results) for name in names_of(OUTPUT, f"output_{place}", value)
    ]
    plain += [""] * (len(seen.outputs) - len(plain))
    return [names.get(id(look[0]), name) for look, name in zip(seen.outputs, plain, strict=True)]


def _templates(names: list[str], looks: list[Look]) -> tuple[TensorRecord, ...]:
    """What is known of the tensors without their contents."""
    found = []
    for name, (_, _, outside, mark) in zip(names, looks, strict=True):
        role, unread = mark if isinstance(mark, tuple) else (mark, "")
        found.append(
            TensorRecord(
                name,
                outside.dtype,
                outside.shape,
                outside.stride,
                outside.device,
                role,
                is_dense=outside.is_dense,
                unread=outside.unread or unread,
            )
        )
    return tuple(found)


UNDER_WAY = "under way"  # other processes are writing to it
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_PLAIN = frozenset({int, bool, str, type(None)})
_RESULTS = -1  # the position of what is no argument


class Sink(Protocol):
    """What reads contents that are not known yet, and takes calls."""

    def content(self, tensor: torch.Tensor, outside: Outside, is_output: bool) -> Content:
        """The content of a tensor, read if it is not known; RuntimeError if it can't be read."""

    def write(self, seen: Seen, step: int) -> None:
        """Take a complete call."""


class Looker:
    """At the calls of one process."""

    def __init__(self, contents: Contents, outsides: Outsides, sink: Sink, where: Whereabouts) -> None:
        self._contents = contents
        self._outsides = outsides
        self._sink = sink
        self._where = where
        self._role_of = where.role_of

    def before(self, plan: Plan, site: Site, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Seen:
        """The arguments, as the operator finds them."""
        seen = Seen(plan, site, args, kwargs)
        of = self._outsides.of
        for position, value in enumerate(args):
            kind = type(value)
            if kind is _Tensor or kind is _Parameter:
                self._take_input(seen, position, value, of(value))
            else:
                self._take(seen, position, value)
        for name, value in kwargs.items():
            seen.key.append(name)
            self._take(seen, plan.positions.get(name, _RESULTS), value)
        return seen

    def after(self, seen: Seen, result: Any) -> None:
        """The results, and the arguments that the operator has written to."""
        plan = seen.plan
        if plan.in_place is not None and self._take_in_place(seen, plan.in_place, result):
            return
        if plan.has_effects:
            self._apply_effects(plan, seen.inputs)
        if plan.may_be_under_way and plan.argument("non_blocking", seen.args, seen.kwargs):
            _wait_for_devices(seen.inputs)
        seen.result = result
        seen.key.append(Seen)  # between arguments and results
        if type(result) is _Tensor:
            self._take_output(seen, result)
        else:
            self._take_results(seen, result)
        if plan.written:
            self._take_written(seen)

    def _take_in_place(self, seen: Seen, position: int, result: Any) -> bool:
        """The result of most calls that write is the argument that was written to, and looks as it did."""
        args = seen.args
        if position >= len(args) or args[position] is not result:
            return False
        look = next((look for look in seen.inputs if look[1] == position), None)
        if look is None or look[2].unread:
            return False
        _, _, outside, mark = look
        self._contents.forget(result, outside)
        seen.result = result
        seen.key.append(Seen)
        role = mark if isinstance(mark, str) else mark[0]
        self._take_content(seen, result, outside, role)
        return True

    def effects_of(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Forget what a call that was not looked at has written to."""
        looks: list[Look] = []
        given = [*enumerate(args), *((plan.positions.get(name, _RESULTS), kwargs[name]) for name in kwargs)]
        for position, value in given:
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, _Tensor):
                    looks.append((tensor, position, self._outsides.of_any(tensor), ""))
        self._apply_effects(plan, looks)

    def _apply_effects(self, plan: Plan, looks: list[Look]) -> None:
        """What the call has written to is not known any more."""
        contents = self._contents
        for tensor, position, outside, _ in looks:
            if outside.unread:
                continue
            if plan.communicates or plan.waits:
                contents.set_shifting(tensor, outside, plan.communicates)
            elif not plan.is_described or (plan.uninitialised and position in plan.written):
                contents.forget_storage(tensor)
            elif position in plan.written:
                contents.forget(tensor, outside)

    def _take(self, seen: Seen, position: int, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN:
            seen.values += (kind, value)
        elif kind is _Tensor or kind is _Parameter:
            self._take_input(seen, position, value, self._outsides.of(value))
        elif kind is list or kind is tuple:
            self._take_list(seen, position, value)
        elif kind is float:
            seen.values.append(key_of_number(value))
        elif isinstance(value, _Tensor):
            self._take_input(seen, position, value, self._outsides.of_any(value))
        else:
            seen.values.append(key_of_odd(value))

    def _take_list(self, seen: Seen, position: int, items: Any) -> None:
        """Where its tensors are is part of their names."""
        seen.key.append(len(items))
        for index, item in enumerate(items):
            if isinstance(item, _Tensor):
                seen.key.append(index)
            self._take(seen, position, item)

    def _take_input(self, seen: Seen, position: int, tensor: torch.Tensor, outside: Outside) -> None:
        plan = seen.plan
        role = self._role_of(tensor)
        mark: Mark = role
        content = UNKNOWN
        if outside.unread:
            pass
        elif position in plan.lost:
            mark = (role, OVERWRITTEN)
        else:
            try:  # a view is not read: whoever computes with it does
                if plan.is_view:
                    content = self._contents.find(tensor, outside) or UNKNOWN
                else:
                    content = self._sink.content(tensor, outside, False)
            except RuntimeError as error:  # a tensor that we can't read must not end the program
                outside, mark = self._why(tensor, role, error)
        seen.inputs.append((tensor, position, outside, mark))
        seen.contents.append(content)
        seen.key += (position, outside, mark)

    def _take_output(self, seen: Seen, tensor: torch.Tensor) -> None:
        kind = type(tensor)
        is_plain = kind is _Tensor or kind is _Parameter
        outside = self._outsides.of(tensor) if is_plain else self._outsides.of_any(tensor)
        self._take_content(seen, tensor, outside, self._role_of(tensor))

    def _take_content(self, seen: Seen, tensor: torch.Tensor, outside: Outside, role: str) -> None:
        """Of an output."""
        plan = seen.plan
        mark: Mark = role
        content = UNKNOWN
        if outside.unread:
            pass
        elif plan.uninitialised or plan.communicates:
            mark = (role, UNINITIALISED if plan.uninitialised else UNDER_WAY)
        else:
            try:
                if plan.is_view:
                    content = self._contents.find(tensor, outside) or UNKNOWN
                else:
                    content = self._sink.content(tensor, outside, True)
                    if plan.written:
                        content.slack += 1
            except RuntimeError as error:
                outside, mark = self._why(tensor, role, error)
        seen.outputs.append((tensor, _RESULTS, outside, mark))
        seen.contents.append(content)
        seen.key += (outside, mark)

    def _why(self, tensor: torch.Tensor, role: str, error: RuntimeError) -> tuple[Outside, Mark]:
        """For a tensor that could not be read."""
        odd = self._outsides.of_any(tensor)
        return odd, role if odd.unread else (role, type(error).__name__)

    def _take_results(self, seen: Seen, result: Any) -> None:
        if isinstance(result, _Tensor):
            self._take_output(seen, result)
        elif isinstance(result, (list, tuple)):
            seen.key.append(len(result))
            for index, item in enumerate(result):
                seen.key.append(index)
                self._take_results(seen, item)
        elif type(result) is float:
            seen.values.append(key_of_number(result))
        else:
            seen.values.append(key_of_odd(result))

    def _take_written(self, seen: Seen) -> None:
        """Arguments that were written to, but are not among the results."""
        returned = {id(look[0]) for look in seen.outputs}
        for tensor, position, *_ in seen.inputs:
            if position in seen.plan.written and id(tensor) not in returned:
                self._take_output(seen, tensor)


def _wait_for_devices(looks: list[Look]) -> None:
    """A copy to the host may be under way."""
    for kind in {look[2].device.partition(":")[0] for look in looks if not look[2].on_host}:
        synchronize(kind)
