"""What has to be done with an operator's tensors, found once for each operator from its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

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
