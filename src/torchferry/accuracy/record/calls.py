"""Looks at a call's tensors before it is made and afterwards: what is known of them, what has to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from torchferry.accuracy.model import INPUT, OUTPUT, RandomState, TensorRecord, TensorRef, Value
from torchferry.accuracy.record.layout import (
    UNKNOWN,
    Content,
    KnownContents,
    Layouts,
    TensorLayout,
    synchronize,
)
from torchferry.observe.operators import (
    COMMUNICATION,
    OVERWRITTEN,
    SKIPPED_NAMESPACES,
    UNINITIALISED,
    base_name,
    is_described,
    is_random,
    is_view,
    leaves_uninitialised,
    may_move,
    overwrites,
    written_to,
)
from torchferry.observe.where import ProgramSite, Whereabouts
from torchferry.readiness.capture.folding import key_of, value_of
from torchferry.readiness.model import Special

if TYPE_CHECKING:
    from torchferry.accuracy.record.sinks import Sink

# What has to be done with an operator's tensors, found once for each operator from its schema.

_WAITING = "wait_tensor"  # a collective ends here: what it was given holds no data yet, what it answers does


class OperatorPlan:
    """What has to be done around each call of one operator. Arguments go by their position in the schema."""

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


def plan_of(func: Any) -> OperatorPlan | None:
    """The plan of an operator; None for what is no operator with a schema: higher-order ones."""
    return OperatorPlan(func) if isinstance(func, torch._ops.OpOverload) else None


# Arguments and results of a call, as small keys that can be compared, and as a record has them.

_AS_THEY_ARE = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def key_of_number(value: float) -> Any:
    """0.0 and -0.0 are equal, and nan is not."""
    return value if value == value and value else repr(value)


def key_of_odd(value: Any) -> Any:
    """The key of what is no tensor, list, whole number or text."""
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


def named_tensors(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of an argument or result with their names: input/self, input/tensors/tensors_0."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)):
        last = name.rpartition("/")[2]
        for index, item in enumerate(value):
            yield from named_tensors(f"{name}/{last}_{index}", item)


# One call while it is being made: its tensors before and after, and the key that is equal for calls
# that look alike.

RoleAndReason = str | tuple[str, str]  # a role; or a role, and why the tensor was not read


# a tensor of a call, the position of the argument that it belongs to, its layout and role
CallTensor = tuple[torch.Tensor, int, TensorLayout, RoleAndReason]


class OngoingCall:
    """A call, from its arguments to what it has answered."""

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

    def __init__(
        self, plan: OperatorPlan, site: ProgramSite, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.plan = plan
        self.site = site
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.inputs: list[CallTensor] = []
        # results, then arguments that were written to and are not among them
        self.outputs: list[CallTensor] = []
        self.contents: list[Content] = []  # of the inputs, then of the outputs
        self.key: list[Any] = [plan]  # equal for calls whose tensors look alike
        self.values: list[Any] = []  # numbers and the like
        self.random: RandomState | None = None

    def argument(self, name: str) -> Any:
        """What was given for this argument; None if nothing was."""
        position = self.plan.positions.get(name)
        if position is None:
            return None
        return self.args[position] if position < len(self.args) else self.kwargs.get(name)


class TensorTemplates:
    """The tensors of calls that look alike, without their contents."""

    __slots__ = ("encoded", "inputs", "outputs")

    def __init__(self, call: OngoingCall) -> None:
        names = [each for name, value in _given(call) for each, _ in named_tensors(f"{INPUT}/{name}", value)]
        self.inputs = _templates(names, call.inputs)
        self.outputs = _templates(_output_names(call, names), call.outputs)
        self.encoded = ""  # both, once that is needed


def arguments_of(call: OngoingCall) -> tuple[tuple[str, Value], ...]:
    """By the names of the schema, in its order."""
    numbering = Numbering()
    values = [(name, numbering.value(value)) for name, value in _given(call)]
    if len(call.kwargs) > 1:
        order = call.plan.positions
        values.sort(key=lambda each: order[each[0]])
    return tuple(values)


def results_of(call: OngoingCall) -> Value:
    """What the call answered."""
    return Numbering().value(call.result)


def _given(call: OngoingCall) -> list[tuple[str, Any]]:
    return [*zip(call.plan.names, call.args), *call.kwargs.items()]  # noqa: B905  the rest have their defaults


def _output_names(call: OngoingCall, input_names: list[str]) -> list[str]:
    """An argument that was written to keeps its name, also where the call answers with it."""
    written = call.plan.written
    names = {
        id(tensor): OUTPUT + name.removeprefix(INPUT)
        for name, (tensor, position, *_) in zip(input_names, call.inputs, strict=True)
        if position in written
    }
    results = call.result if isinstance(call.result, (list, tuple)) else [call.result]
    plain = [
        name
        for place, value in enumerate(results)
        for name, _ in named_tensors(f"{OUTPUT}/output_{place}", value)
    ]
    plain += [""] * (len(call.outputs) - len(plain))
    return [names.get(id(each[0]), name) for each, name in zip(call.outputs, plain, strict=True)]


def _templates(names: list[str], tensors: list[CallTensor]) -> tuple[TensorRecord, ...]:
    found = []
    for name, (_, _, layout, mark) in zip(names, tensors, strict=True):
        role, unread = mark if isinstance(mark, tuple) else (mark, "")
        found.append(layout.record(name, role, unread))
    return tuple(found)


UNDER_WAY = "under way"  # other processes are writing to it
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_PLAIN = frozenset({int, bool, str, type(None)})
_RESULTS = -1  # the position of what is no argument


class CallObserver:
    """Looks at the tensors of each call of one process, before it and after it."""

    def __init__(self, contents: KnownContents, layouts: Layouts, sink: Sink, where: Whereabouts) -> None:
        self._contents = contents
        self._layouts = layouts
        self._sink = sink
        self._where = where
        self._role_of = where.role_of

    def before(
        self, plan: OperatorPlan, site: ProgramSite, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> OngoingCall:
        """The arguments, as the operator finds them."""
        call = OngoingCall(plan, site, args, kwargs)
        of = self._layouts.of
        for position, value in enumerate(args):
            kind = type(value)
            if kind is _Tensor or kind is _Parameter:
                self._take_input(call, position, value, of(value))
            else:
                self._take(call, position, value)
        for name, value in kwargs.items():
            call.key.append(name)
            self._take(call, plan.positions.get(name, _RESULTS), value)
        self._sink.read()
        if plan.is_random:
            self._sink.before(call)
        return call

    def take(self, call: OngoingCall, result: Any, step: int) -> None:
        """The call has been made: have it written, with its results."""
        self._after(call, result)
        self._sink.read()
        self._sink.write(call, step)

    def _after(self, call: OngoingCall, result: Any) -> None:
        """The results, and the arguments that the operator has written to."""
        plan = call.plan
        if plan.in_place is not None and self._take_in_place(call, plan.in_place, result):
            return
        if plan.has_effects:
            self._apply_effects(plan, call.inputs)
        if plan.may_be_under_way and call.argument("non_blocking"):
            for kind in {each[2].device.partition(":")[0] for each in call.inputs if not each[2].on_host}:
                synchronize(kind)  # a copy to the host may be under way
        call.result = result
        call.key.append(OngoingCall)  # between arguments and results
        if type(result) is _Tensor:
            self._take_output(call, result)
        else:
            self._take_results(call, result)
        if plan.written:  # arguments that are not among the results
            returned = {id(each[0]) for each in call.outputs}
            for tensor, position, *_ in call.inputs:
                if position in plan.written and id(tensor) not in returned:
                    self._take_output(call, tensor)

    def _take_in_place(self, call: OngoingCall, position: int, result: Any) -> bool:
        """The result of most calls that write is the argument that was written to, and tensors as it did."""
        args = call.args
        if position >= len(args) or args[position] is not result:
            return False
        given = next((each for each in call.inputs if each[1] == position), None)
        if given is None or given[2].unread:
            return False
        _, _, layout, mark = given
        self._contents.forget(result, layout)
        call.result = result
        call.key.append(OngoingCall)
        role = mark if isinstance(mark, str) else mark[0]
        self._take_content(call, result, layout, role)
        return True

    def effects_of(self, plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Forget what a call that was not looked at has written to."""
        tensors: list[CallTensor] = []
        given = [*enumerate(args), *((plan.positions.get(name, _RESULTS), kwargs[name]) for name in kwargs)]
        for position, value in given:
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, _Tensor):
                    tensors.append((tensor, position, self._layouts.of_any(tensor), ""))
        self._apply_effects(plan, tensors)

    def _apply_effects(self, plan: OperatorPlan, tensors: list[CallTensor]) -> None:
        """What the call has written to is not known any more."""
        contents = self._contents
        for tensor, position, layout, _ in tensors:
            if layout.unread:
                continue
            if plan.communicates or plan.waits:
                contents.set_shifting(tensor, layout, plan.communicates)
            elif not plan.is_described or (plan.uninitialised and position in plan.written):
                contents.forget_storage(tensor)
            elif position in plan.written:
                contents.forget(tensor, layout)

    def _take(self, call: OngoingCall, position: int, value: Any) -> None:
        kind = type(value)
        if kind in _PLAIN:
            call.values += (kind, value)
        elif kind is _Tensor or kind is _Parameter:
            self._take_input(call, position, value, self._layouts.of(value))
        elif kind is list or kind is tuple:
            call.key.append(len(value))
            for index, item in enumerate(value):  # where its tensors are is part of their names
                if isinstance(item, _Tensor):
                    call.key.append(index)
                self._take(call, position, item)
        elif kind is float:
            call.values.append(key_of_number(value))
        elif isinstance(value, _Tensor):
            self._take_input(call, position, value, self._layouts.of_any(value))
        else:
            call.values.append(key_of_odd(value))

    def _take_input(
        self, call: OngoingCall, position: int, tensor: torch.Tensor, layout: TensorLayout
    ) -> None:
        plan = call.plan
        role = self._role_of(tensor)
        mark: RoleAndReason = role
        content = UNKNOWN
        if position in plan.lost:
            mark = role if layout.unread else (role, OVERWRITTEN)
        elif layout.unread:
            content = self._sink.unusual(tensor)
        else:
            try:  # a view is not read: whoever computes with it does
                if plan.is_view:
                    content = self._contents.find(tensor, layout) or UNKNOWN
                else:
                    content = self._sink.content(tensor, layout, False)
            except RuntimeError as error:  # a tensor that we can't read must not end the program
                layout, mark = self._why(tensor, role, error)
        call.inputs.append((tensor, position, layout, mark))
        call.contents.append(content)
        call.key += (position, layout, mark)

    def _take_output(self, call: OngoingCall, tensor: torch.Tensor) -> None:
        kind = type(tensor)
        is_plain = kind is _Tensor or kind is _Parameter
        layout = self._layouts.of(tensor) if is_plain else self._layouts.of_any(tensor)
        self._take_content(call, tensor, layout, self._role_of(tensor))

    def _take_content(self, call: OngoingCall, tensor: torch.Tensor, layout: TensorLayout, role: str) -> None:
        plan = call.plan
        mark: RoleAndReason = role
        content = UNKNOWN
        if plan.uninitialised or plan.communicates:
            mark = role if layout.unread else (role, UNINITIALISED if plan.uninitialised else UNDER_WAY)
        elif layout.unread:
            content = self._sink.unusual(tensor)
        else:
            try:
                if plan.is_view:
                    content = self._contents.find(tensor, layout) or UNKNOWN
                else:
                    content = self._sink.content(tensor, layout, True)
                    if plan.written:
                        content.slack += 1
            except RuntimeError as error:
                layout, mark = self._why(tensor, role, error)
        call.outputs.append((tensor, _RESULTS, layout, mark))
        call.contents.append(content)
        call.key += (layout, mark)

    def _why(
        self, tensor: torch.Tensor, role: str, error: RuntimeError
    ) -> tuple[TensorLayout, RoleAndReason]:
        odd = self._layouts.of_any(tensor)
        return odd, role if odd.unread else (role, type(error).__name__)

    def _take_results(self, call: OngoingCall, result: Any) -> None:
        if isinstance(result, _Tensor):
            self._take_output(call, result)
        elif isinstance(result, (list, tuple)):
            call.key.append(len(result))
            for index, item in enumerate(result):
                call.key.append(index)
                self._take_results(call, item)
        elif type(result) is float:
            call.values.append(key_of_number(result))
        else:
            call.values.append(key_of_odd(result))
