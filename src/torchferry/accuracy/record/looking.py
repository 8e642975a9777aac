"""Looks at a call's tensors before it is made and afterwards: what is known of them, what has to be read."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from torchferry.accuracy.record.outside import Outside, Outsides
from torchferry.accuracy.record.plans import Plan
from torchferry.accuracy.record.reading import synchronize
from torchferry.accuracy.record.seen import Look, Mark, Seen
from torchferry.accuracy.record.tensors import UNKNOWN, Content, Contents
from torchferry.accuracy.record.values import key_of_number, key_of_odd
from torchferry.observe.tensors import OVERWRITTEN, UNINITIALISED
from torchferry.observe.where import Site, Whereabouts

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
