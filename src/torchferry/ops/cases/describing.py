"""A case in one line, in the notation of the command line: aten::max.dim(8:int64:ints(-10,10), 0). Imports no torch."""

from __future__ import annotations

from torchferry.ops.cases.model import Case, CaseValue, Contents, Draw, TensorInput
from torchferry.ops.model import Special


def described_call(case: Case) -> str:
    """The whole call."""
    made = f"({_listed((), case.init)})" if case.init else ""
    return f"{case.callee.name}{made}({_listed(case.args, case.kwargs)})"


def described(value: CaseValue) -> str:
    """One argument."""
    if isinstance(value, TensorInput):
        return _tensor(value)
    if isinstance(value, Special):
        return value.kind if value.kind in ("device", "generator") else value.text
    if isinstance(value, tuple):
        items = ", ".join(map(described, value))
        return f"list({items})" if any(isinstance(item, TensorInput) for item in value) else f"[{items}]"
    return repr(value)


def _listed(args: tuple[CaseValue, ...], kwargs: tuple[tuple[str, CaseValue], ...]) -> str:
    named = [described(value) if name.isdigit() else f"{name}={described(value)}" for name, value in kwargs]
    return ", ".join([*map(described, args), *named])


def _tensor(tensor: TensorInput) -> str:
    size = "x".join(map(str, tensor.shape)) or "scalar"
    parts = [size, tensor.dtype, *_contents(tensor.contents)]
    if tensor.stride is not None:
        parts.append(f"strides({','.join(map(str, tensor.stride))})")
    if tensor.offset:
        parts.append(f"offset({tensor.offset})")
    return ":".join(parts)


def _contents(contents: Contents) -> list[str]:
    special = "".join(f"+{value}" for value in contents.special)
    if contents.draw is Draw.DEFAULT:
        return []
    if contents.draw in (Draw.UNIFORM, Draw.INTS):
        return [f"{contents.draw.value}({contents.low:g},{contents.high:g}){special}"]
    if contents.draw is Draw.FULL:
        return [f"full({contents.low:g}){special}"]
    if contents.draw is Draw.STORED:
        return [f"recorded({contents.key})"]
    return [contents.draw.value + special]
