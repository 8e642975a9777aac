"""Reads a pickle without running it: no name is looked up, nothing is called, tensors are described.

Python's own unpickler, in the form that is written in Python, with every operation replaced that would look up a name
or call what was found. (The one written in C can be made to claim memory by a number in the file.)
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import IO, Any, ClassVar

from torchferry.checkpoint.model import Global, Known, Opaque, Ordered, Storage, Tensor

_STORAGE_DTYPES: Mapping[str, str] = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "QInt8Storage": "qint8", "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32", "UntypedStorage": "uint8",
}  # fmt: skip
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_KNOWN = ("torch.Size", "torch.device")


class Bounded:
    """A stream that never claims more memory than what is left of it."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, count: int = -1) -> bytes:
        return self._took(self._stream.read(self._left if count < 0 else min(count, self._left)))

    def readline(self) -> bytes:
        return self._took(self._stream.readline(self._left))

    def _took(self, data: bytes) -> bytes:
        self._left -= len(data)
        return data


class Reader(pickle._Unpickler):
    """Reads one pickle; `globals` and `storages` are what it asked for."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]

    def __init__(self, stream: Bounded) -> None:
        super().__init__(stream, encoding="utf-8", errors="surrogateescape")
        self.globals: dict[Global, None] = {}
        self.storages: dict[str, Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        found = Global(_OLD_MODULES.get(module, module), name)
        self.globals[found] = None
        return found

    def get_extension(self, code: int) -> None:
        raise pickle.UnpicklingError(
            "it uses extension codes, which mean nothing outside the program that saved it"
        )

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid and _text(pid[0]) == "module":  # old files: a class and its source
            return pid[1]
        if not isinstance(pid, tuple) or len(pid) < 5 or _text(pid[0]) != "storage":
            raise pickle.UnpicklingError("it refers to something outside that is no storage")
        _, kind, key, device, elements, *view = pid
        dtype = _STORAGE_DTYPES.get(kind.name, "") if isinstance(kind, Global) else ""
        root = Storage(_text(key), dtype, _text(device), int(elements))
        self.storages[root.key] = root
        if view and view[0] is not None:
            _, first, count = view[0]
            return Storage(root.key, dtype, root.device, int(count), int(first))
        return root

    def _call(self, function: object, arguments: Any) -> object:
        if not isinstance(function, Global):
            raise pickle.UnpicklingError("it calls something that is no name")
        return made(function, tuple(arguments))

    def _instantiate(self, klass: object, args: Any) -> None:
        self.stack.append(self._call(klass, args))

    def load_reduce(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], arguments)

    def load_newobj(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], arguments)

    def load_newobj_ex(self) -> None:
        named = self.stack.pop()
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], (*arguments, named))

    def load_build(self) -> None:
        state = self.stack.pop()
        built = self.stack[-1]
        if isinstance(built, Opaque):
            built.state = state
        elif isinstance(built, Ordered) and isinstance(state, dict):
            built.metadata = state.get("_metadata")

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex
    dispatch[pickle.BUILD[0]] = load_build


def made(function: Global, arguments: tuple[Any, ...]) -> object:
    """What a call would make: a description for what PyTorch saves, else an object that is only named."""
    maker = _MAKERS.get(function.dotted)
    if maker is not None:
        return maker(*arguments)
    if function.dotted in _KNOWN:
        return Known(function.dotted, arguments)
    # The plugins of devices have functions of their own beside those of PyTorch, with the same first arguments.
    if function.module.startswith("torch") and function.name.startswith("_rebuild_") and arguments:
        rebuilt = _rebuilt(function, arguments)
        if rebuilt is not None:
            return rebuilt
    return Opaque(function.dotted, arguments)


def _rebuilt(function: Global, arguments: tuple[Any, ...]) -> Tensor | None:
    first = arguments[0]
    if isinstance(first, Storage):
        return _tensor(function, first, *arguments[1:])
    if isinstance(first, Tensor):
        if function.name.startswith("_rebuild_parameter"):
            return first.as_parameter(bool(arguments[1]) if len(arguments) > 1 else True)
        if function.name == "_rebuild_device_tensor_from_cpu_tensor":
            return _moved(first, _text(arguments[2]))
    if function.name == "_rebuild_from_type_v2" and isinstance(first, Global):
        inner = made(first, tuple(arguments[2]))
        return inner if isinstance(inner, Tensor) else None
    return None


def _tensor(
    function: Global, storage: Storage, offset: int, shape: Any, strides: Any, *others: Any
) -> Tensor:
    shape, strides = tuple(map(int, _sizes(shape))), tuple(map(int, strides))
    if len(shape) != len(strides) or min((*shape, *strides, offset), default=0) < 0:
        raise pickle.UnpicklingError("a tensor's shape, strides and offset don't fit each other")
    dtype = others[2] if function.name == "_rebuild_tensor_v3" else None
    return Tensor(
        storage,
        dtype.name if isinstance(dtype, Global) else storage.dtype,
        shape,
        strides,
        int(offset),
        storage.device,
        requires_grad=bool(others and others[0] is True),
        is_plain="qtensor" not in function.name,
    )


def _sizes(shape: Any) -> Any:
    return shape.arguments[0] if isinstance(shape, Known) else shape


def _moved(tensor: Tensor, device: str) -> Tensor:
    return replace(tensor, device=device)


def _ordered(pairs: Any = ()) -> Ordered:
    return Ordered((key, value) for key, value in pairs)


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode("latin-1" if encoding in ("latin1", "latin-1") else "utf-8")


_MAKERS: Mapping[str, Callable[..., object]] = {
    "collections.OrderedDict": _ordered,
    "builtins.set": lambda items=(): set(items),
    "builtins.frozenset": lambda items=(): frozenset(items),
    "builtins.complex": lambda real, imaginary: complex(real, imaginary),
    "builtins.bytearray": lambda *data: (
        bytearray(data[0]) if data and isinstance(data[0], bytes) else bytearray()
    ),
    "_codecs.encode": _encoded,
}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
