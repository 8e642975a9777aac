"""Calls as JSON, and back. Encoding is what recording waits for: what repeats is encoded once."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from torchferry.accuracy.model import (
    Call,
    Kept,
    KeptPart,
    RandomState,
    RecordHeader,
    Statistics,
    TensorRecord,
    TensorRef,
    Value,
    figures_in,
)
from torchferry.readiness.model import Special


def _plain(value: object) -> object:
    if isinstance(value, TensorRef):
        return {"tensor": value.index}
    if isinstance(value, Special):
        return {value.kind: value.text, "special": True}
    raise TypeError(f"{type(value).__name__} can't be recorded")


_STRICT = json.JSONEncoder(default=_plain, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
_quoted = json.encoder.encode_basestring_ascii


def encoded_value(value: Any) -> str:
    """A value, or tuples of values."""
    try:
        return _STRICT.encode(value)
    except ValueError:  # a float that is not finite
        return _STRICT.encode(_spelled(value))


def _spelled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return [_spelled(each) for each in value] if isinstance(value, (tuple, list)) else value


def decoded_value(value: Any) -> Value:
    """A value, from what JSON made of it."""
    if isinstance(value, list):
        return tuple(decoded_value(each) for each in value)
    if isinstance(value, dict):
        if "special" in value:
            kind = next(iter(value))
            return Special(kind, value[kind])
        return TensorRef(value["tensor"]) if "tensor" in value else float(value["float"])
    found: Value = value
    return found


@lru_cache(maxsize=50_000)
def _tensor_start(
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    device: str,
    role: str,
    is_dense: bool,
    unread: str,
) -> str:
    parts = [f'{{"name":{_quoted(name)},"dtype":{_quoted(dtype)},"shape":[{",".join(map(str, shape))}]']
    parts.append(f'"stride":[{",".join(map(str, stride))}],"device":{_quoted(device)}')
    if role:
        parts.append(f'"role":{_quoted(role)}')
    if not is_dense:
        parts.append('"is_dense":false')
    if unread:
        parts.append(f'"unread":{_quoted(unread)}')
    return ",".join(parts)


def encoded_tensor(tensor: TensorRecord) -> str:
    """A tensor; what says no more than the default is left out."""
    return _tensor_format(tensor) % tuple(figures_of((tensor,)))


def _tensor_format(tensor: TensorRecord) -> str:
    start = _tensor_start(
        tensor.name, tensor.dtype, tensor.shape, tensor.stride, tensor.device, tensor.role, tensor.is_dense,
        tensor.unread,
    )  # fmt: skip
    content = ',"content":%d' if tensor.content else ""
    offset = "" if tensor.offset is None else ',"offset":%d'
    if tensor.part is not None:
        offset += f',"part":[%d,{",".join(map(str, tensor.part[1:]))}]'
    statistics = "" if tensor.statistics is None else ',"statistics":%s'
    return f"{_unformatted(start)}{content}{offset}{statistics}}}"


def _unformatted(text: str) -> str:
    """A text that formatting leaves as it is."""
    return text.replace("%", "%%")


def figures_of(tensors: Iterable[TensorRecord], random: RandomState | None = None) -> list[int | str]:
    """What is different in each call: for every tensor its content, offsets and statistics as far as there are any."""
    figures: list[int | str] = []
    for tensor in tensors:
        if tensor.content:
            figures.append(tensor.content)
        if tensor.offset is not None:
            figures.append(tensor.offset)
        if tensor.part is not None:
            figures.append(tensor.part.offset)
        if tensor.statistics is not None:
            figures.append(encoded_statistics(tensor.statistics))
    if random is not None:
        figures += (random.offset, random.nbytes)
    return figures


def encoded_statistics(each: Statistics) -> str:
    """The figures in the order of their names."""
    return encoded_value(figures_in(each))


@lru_cache(maxsize=50_000)
def _site(operator: str, phase: str, model: str, module: str, place: str, node: str) -> str:
    parts = [f'"operator":{_quoted(operator)},"phase":{_quoted(phase)}']
    for name, text in (("model", model), ("module", module), ("place", place), ("node", node)):
        if text:
            parts.append(f'"{name}":{_quoted(text)}')
    return ",".join(parts)


class CallLine:
    """The JSON of calls that are alike: all but their numbers, steps and figures."""

    def __init__(self, call: Call, arguments: str) -> None:
        results = call.results
        answer = f'{{"tensor":{results.index}}}' if type(results) is TensorRef else encoded_value(results)
        site = _site(call.operator, call.phase, call.model, call.module, call.place, call.node)
        parts = [
            f'{{"number":%d,"step":%d,{_unformatted(site)}',
            f'"arguments":{_unformatted(arguments)}',
            f'"inputs":[{",".join(map(_tensor_format, call.inputs))}]',
            f'"outputs":[{",".join(map(_tensor_format, call.outputs))}]',
            f'"results":{_unformatted(answer)}',
        ]
        if call.random is not None:
            device = _unformatted(_quoted(call.random.device))
            parts.append(f'"random":{{"device":{device},"offset":%d,"nbytes":%d}}')
        self._format = ",".join(parts) + "}"

    def of(self, number: int, step: int, figures: Iterable[int | str]) -> bytes:
        """The line of one of them."""
        return (self._format % (number, step, *figures)).encode()


def encoded_call(call: Call) -> str:
    """A call, on one line."""
    figures = figures_of((*call.inputs, *call.outputs), call.random)
    return CallLine(call, encoded_value(call.arguments)).of(call.number, call.step, figures).decode()


def decoded_call(text: bytes | str) -> Call:
    """A call from its line."""
    made = json.loads(text)
    random = made.get("random")
    return Call(
        **{name: made[name] for name in ("number", "operator", "step", "phase")},
        **{name: made[name] for name in ("model", "module", "place", "node") if name in made},
        arguments=tuple((name, decoded_value(value)) for name, value in made["arguments"]),
        inputs=tuple(map(decoded_tensor, made["inputs"])),
        outputs=tuple(map(decoded_tensor, made["outputs"])),
        results=decoded_value(made["results"]),
        random=RandomState(random["device"], random["offset"], random["nbytes"]) if random else None,
    )


def decoded_tensor(made: dict[str, Any]) -> TensorRecord:
    """A tensor from what JSON made of it."""
    figures: Any = made.get("statistics")
    statistics = None
    if figures is not None:
        plain: list[Any] = [float(each["float"]) if isinstance(each, dict) else each for each in figures]
        statistics = Statistics(*plain)
    return TensorRecord(
        made["name"], made["dtype"], tuple(made["shape"]), tuple(made["stride"]), made["device"],
        made.get("role", ""), made.get("content", 0), made.get("offset"), made.get("is_dense", True),
        made.get("unread", ""), statistics, KeptPart(*made["part"]) if "part" in made else None,
    )  # fmt: skip


def encoded_header(header: RecordHeader) -> str:
    """What a record is of."""
    return json.dumps(asdict(header))


def decoded_header(text: bytes | str) -> RecordHeader:
    """What a record is of, from its JSON; fields of newer versions are left out."""
    made = {
        name: value for name, value in json.loads(text).items() if name in RecordHeader.__dataclass_fields__
    }
    made["kept"] = Kept(made["kept"])
    made["notes"] = tuple(made.get("notes", ()))
    return RecordHeader(**made)
